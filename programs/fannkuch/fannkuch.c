/* For every permutation of 1 to n: reverses as many of the first elements as the first one says until that is 1. Prints the
   largest number of reversals and a checksum (Anderson and Rettig, "Performing Lisp analysis of the FANNKUCH benchmark"). */
#include "../kernel.h"

enum { LONGEST = 12 };

static uint32_t reversals(const uint32_t *permutation, uint32_t n) {
    uint32_t p[LONGEST], count = 0;
    memcpy(p, permutation, n * sizeof *p);
    for (uint32_t top; (top = p[0]) != 0; count++)
        for (uint32_t i = 0, j = top; i < j; i++, j--) {
            uint32_t swapped = p[i];
            p[i] = p[j], p[j] = swapped;
        }
    return count;
}

/* The next permutation in the order of rotations: turn the first two, after two turns the first three, and so on. */
static int advance(uint32_t *p, uint32_t *turns, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t front = p[0];
        for (uint32_t j = 0; j < i; j++) p[j] = p[j + 1];
        p[i] = front;
        if (++turns[i] <= i) return 1;
        turns[i] = 0;
    }
    return 0;
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 10), most = 0, p[LONGEST], turns[LONGEST] = {0};
    int64_t checksum = 0;
    if (n < 1 || n > LONGEST) return 1;
    for (uint32_t i = 0; i < n; i++) p[i] = i;
    int sign = 1;
    do {
        uint32_t count = reversals(p, n);
        if (count > most) most = count;
        checksum += sign * (int64_t)count, sign = -sign;
    } while (advance(p, turns, n));
    text("fannkuch "), decimal(n), text(": "), decimal(most), text(" "), decimal((uint64_t)checksum);
    return finish();
}
