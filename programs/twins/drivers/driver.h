/* What the drivers of real programs share: generated inputs, and hashes of outputs. */
#ifndef DRIVER_H
#define DRIVER_H

#include "kernel.h"
#include <stdio.h>

/* Ends the program if a library did not do what it should. */
#define REQUIRE(condition)                                           \
    do {                                                             \
        if (!(condition)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);  \
            exit(1);                                                 \
        }                                                            \
    } while (0)

/* FNV-1a of eight bytes at a time. */
static inline uint64_t hash(const void *data, size_t size, uint64_t seed) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    while (size--) h = (h ^ *bytes++) * 0x100000001b3u;
    return h;
}

static inline void *allocate(size_t size) {
    void *block = malloc(size);
    if (!block) exit(3);
    return block;
}

/* A picture of three bytes per pixel: gradients, discs, lines of letters' size, and noise. */
static inline unsigned char *picture(int width, int height) {
    unsigned char *pixels = (unsigned char *)allocate((size_t)width * (size_t)height * 3), *at = pixels;
    uint32_t state = 99;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int dx = x % 97 - 48, dy = y % 89 - 44, disc = dx * dx + dy * dy < 900, letter = (x * 7 ^ y * 3) % 31 == 0 && y % 16 < 11;
            uint32_t noise = next_random(&state) & 7;
            *at++ = (unsigned char)((disc ? 200 : x * 255 / width) - letter * 100 + noise);
            *at++ = (unsigned char)((disc ? x + y : y * 255 / height) & 255);
            *at++ = (unsigned char)((disc ? 40 : (x + y) * 127 / (width + height)) + letter * 60 + (noise >> 1));
        }
    return pixels;
}

#endif
