/* Quicksort of 100,000 signed keys, insertion sort below 16: recursion, comparisons and swaps. */
#include "kernel.h"

enum { N = 100000 };

static int32_t keys[N];

static void sort(int32_t *low, int32_t *high) {
    while (high - low > 16) {
        int32_t a = *low, b = low[(high - low) / 2], c = high[-1];
        int32_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int32_t *left = low, *right = high - 1;
        for (;;) {
            while (*left < pivot) left++;
            while (*right > pivot) right--;
            if (left >= right) break;
            int32_t key = *left;
            *left++ = *right;
            *right-- = key;
        }
        if (left - low < high - left) {
            sort(low, left);
            low = left;
        } else {
            sort(left, high);
            high = left;
        }
    }
    for (int32_t *next = low + 1; next < high; next++) {
        int32_t key = *next, *hole = next;
        for (; hole > low && hole[-1] > key; hole--) *hole = hole[-1];
        *hole = key;
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 160), state = 41, sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++) keys[i] = (int32_t)next_random(&state);
        sort(keys, keys + N);
        for (int i = 1; i < N; i++) {
            if (keys[i - 1] > keys[i]) return 1;
            sum = sum * 31 + (uint32_t)keys[i];
        }
    }
    number(sum, 16, 8);
    return finish();
}
