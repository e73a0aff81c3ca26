/* Compresses text by references to earlier text, found through a hash table, and copies it back. */
#include "kernel.h"

enum { SIZE = 1 << 18, TABLE = 1 << 13 };

static uint8_t input[SIZE + 8], packed[2 * SIZE], output[SIZE + 8];
static uint32_t table[TABLE];

static uint32_t four(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* A literal is 0 and a byte; a reference is its length and two bytes of distance. */
static size_t pack(void) {
    uint8_t *to = packed;
    memset(table, 0, sizeof table);
    for (uint32_t at = 0; at < SIZE;) {
        uint32_t word = four(input + at), *slot = &table[word * 2654435761u >> 19], found = *slot, length = 0;
        *slot = at + 1;
        if (found && at + 1 - found < 65536 && four(input + found - 1) == word)
            for (length = 4; length < 255 && at + length < SIZE && input[found - 1 + length] == input[at + length];) length++;
        if (at + length > SIZE) length = 0;
        *to++ = (uint8_t)length;
        if (length) {
            uint32_t distance = at + 1 - found;
            *to++ = (uint8_t)distance;
            *to++ = (uint8_t)(distance >> 8);
            at += length;
        } else {
            *to++ = input[at++];
        }
    }
    return (size_t)(to - packed);
}

static void unpack(size_t size) {
    uint8_t *to = output;
    for (const uint8_t *from = packed, *end = packed + size; from < end;) {
        uint32_t length = *from++;
        if (!length) {
            *to++ = *from++;
            continue;
        }
        const uint8_t *copy = to - (from[0] | from[1] << 8);
        from += 2;
        while (length--) *to++ = *copy++;
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 810), state = 59, sum = 0;
    for (int i = 0; i < SIZE;) {
        uint32_t word = next_random(&state) % 300 * next_random(&state) % 300;
        for (uint32_t j = 0; j < 2 + word % 8 && i < SIZE; j++) input[i++] = 'a' + (word * 7 + j * j) % 26;
        if (i < SIZE) input[i++] = ' ';
    }
    for (uint32_t round = 0; round < rounds; round++) {
        input[round * 1013 % SIZE] = 'A' + round % 26;
        size_t size = pack();
        unpack(size);
        if (memcmp(input, output, SIZE)) return 1;
        sum += (uint32_t)size;
    }
    decimal(sum);
    return finish();
}
