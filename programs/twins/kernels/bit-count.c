/* Distances of Hamming between fingerprints of 1,024 bits: exclusive or, and a count of bits by shifts, masks and sums. */
#include "kernel.h"

enum { WORDS = 32, PRINTS = 256 };

static uint32_t prints[PRINTS][WORDS];

static uint32_t bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    x += x >> 8;
    return (x + (x >> 16)) & 63;
}

static uint32_t apart(const uint32_t *a, const uint32_t *b) {
    uint32_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum += bits(a[i] ^ b[i]);
    return sum;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1900), state = 53, sum = 0;
    for (int i = 0; i < PRINTS; i++)
        for (int j = 0; j < WORDS; j++) prints[i][j] = next_random(&state);
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < PRINTS; i++) {
            uint32_t nearest = ~0u;
            for (int j = 0; j < PRINTS; j++) {
                uint32_t bits = apart(prints[i], prints[j]);
                if (j != i && bits < nearest) nearest = bits;
            }
            sum = sum * 31 + nearest;
        }
        prints[round % PRINTS][round % WORDS] ^= sum;
    }
    number(sum, 16, 8);
    return finish();
}
