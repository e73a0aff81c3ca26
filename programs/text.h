/* Pseudo-random text for the programs that read text: words of two to four syllables, some far more frequent than others. */
#ifndef TEXT_H
#define TEXT_H

#include "kernel.h"

/* Word number `n` as letters; at most eight of them. */
static inline size_t spell(uint32_t n, char *to) {
    size_t length = 0;
    do {
        to[length++] = "bdfgklmnprstvwzh"[n % 16], n /= 16;
        to[length++] = "aeiou"[n % 5], n /= 5;
    } while (n && length < 8);
    return length;
}

/* Number of the next word: half of all draws fall into the first 32, and ever fewer into each doubling of them. */
static inline uint32_t draw(uint32_t *random) {
    uint32_t bits = 5, r = next_random(random);
    while (r & 1 && bits < 14) bits++, r >>= 1;
    return (next_random(random) >> 3) & ((1u << bits) - 1);
}

/* Fills `to` with words, each followed by a blank or, one in ten, by a newline. */
static inline void fill_with_text(char *to, size_t length, uint32_t seed) {
    uint32_t random = seed;
    for (size_t at = 0; at < length;) {
        char word[9];
        size_t letters = spell(draw(&random), word);
        word[letters++] = next_random(&random) % 10 ? ' ' : '\n';
        if (letters > length - at) letters = length - at;
        memcpy(to + at, word, letters);
        at += letters;
    }
    to[length - 1] = '\n';
}

/* Fowler, Noll and Vo's FNV-1a, the 32-bit one. */
static inline uint32_t digest(const void *bytes, size_t length) {
    const uint8_t *p = bytes;
    uint32_t hash = 2166136261u;
    while (length--) hash = (hash ^ *p++) * 16777619u;
    return hash;
}

#endif
