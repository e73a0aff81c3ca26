/* Equalises the brightness of a picture: a histogram, its sums, a table, and the lookup of each byte. */
#include "kernel.h"

enum { SIZE = 1 << 18 };

static uint8_t picture[SIZE];

static void equalise(uint8_t *pixels) {
    uint32_t counts[256] = {0}, sum = 0;
    uint8_t map[256];
    for (int i = 0; i < SIZE; i++) counts[pixels[i]]++;
    for (int i = 0; i < 256; i++) {
        sum += counts[i];
        map[i] = (uint8_t)((uint64_t)sum * 255 / SIZE);
    }
    for (int i = 0; i < SIZE; i++) pixels[i] = map[pixels[i]];
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 6200), state = 43, sum = 0;
    for (int i = 0; i < SIZE; i++) picture[i] = (uint8_t)((next_random(&state) & 127) + (i >> 13));
    for (uint32_t round = 0; round < rounds; round++) {
        equalise(picture);
        for (int i = 0; i < 64; i++) picture[(round * 4099 + i * 31) % SIZE] ^= (uint8_t)(round + i);
        sum = sum * 31 + picture[round * 1021 % SIZE];
    }
    number(sum, 16, 8);
    return finish();
}
