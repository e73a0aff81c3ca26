/* Sorts 200,000 keys of 32 bits by their bytes: counts, sums of the counts, then a scatter, four times. */
#include "kernel.h"

enum { N = 200000 };

static uint32_t keys[N], others[N];

static void sort(uint32_t *from, uint32_t *to) {
    for (int shift = 0; shift < 32; shift += 8) {
        uint32_t starts[256] = {0}, sum = 0;
        for (int i = 0; i < N; i++) starts[from[i] >> shift & 255]++;
        for (int i = 0; i < 256; i++) {
            uint32_t count = starts[i];
            starts[i] = sum;
            sum += count;
        }
        for (int i = 0; i < N; i++) to[starts[from[i] >> shift & 255]++] = from[i];
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 750), state = 37, sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++) keys[i] = next_random(&state);
        sort(keys, others);
        for (int i = 1; i < N; i += 997) {
            if (keys[i - 1] > keys[i]) return 1;
            sum = sum * 31 + keys[i];
        }
    }
    number(sum, 16, 8);
    return finish();
}
