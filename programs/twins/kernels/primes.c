/* The sieve of Eratosthenes over odd numbers, in segments of 32 KiB. */
#include "kernel.h"

enum { SEGMENT = 1 << 15, ROOT = 1 << 14 };

static uint8_t composite[SEGMENT], small[ROOT];
static uint32_t primes[ROOT], next[ROOT];

static uint32_t count_to(uint32_t limit) {
    uint32_t count = 1, known = 0, candidate = 3;
    for (uint32_t low = 0; low < limit / 2; low += SEGMENT) {
        memset(composite, 0, SEGMENT);
        uint32_t end = 2 * (low + SEGMENT);
        for (; candidate < ROOT && candidate * candidate < end; candidate += 2)
            if (!small[candidate]) {
                primes[known] = candidate;
                next[known++] = candidate * candidate / 2 - low;
            }
        for (uint32_t i = 0; i < known; i++) {
            uint32_t at = next[i], prime = primes[i];
            for (; at < SEGMENT; at += prime) composite[at] = 1;
            next[i] = at - SEGMENT;
        }
        for (uint32_t i = low == 0; i < SEGMENT && low + i < limit / 2; i++) count += !composite[i];
    }
    return count;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 20), sum = 0;
    for (uint32_t i = 3; i < ROOT; i += 2)
        for (uint32_t j = i * i; !small[i] && j < ROOT; j += 2 * i) small[j] = 1;
    for (uint32_t round = 0; round < rounds; round++) sum += count_to(100000000 + 1000 * round);
    decimal(sum);
    return finish();
}
