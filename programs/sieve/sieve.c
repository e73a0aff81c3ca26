/* Counts the primes up to its argument with a segmented sieve of Eratosthenes: byte stores at a stride, then a scan. */
#include "../kernel.h"

enum { SEGMENT = 1 << 15 };

/* Of a segment that starts at the even number `low`, entry i stands for the odd number low + 2i + 1. */
static uint8_t composite[SEGMENT];

struct prime {
    uint32_t p;
    uint64_t next; /* the next odd multiple to strike out */
};

/* The odd primes whose square is at most `limit`. */
static uint32_t small_primes(uint64_t limit, struct prime **primes) {
    uint32_t capacity = 64, count = 0;
    struct prime *list = malloc(capacity * sizeof *list);
    for (uint32_t n = 3; list && (uint64_t)n * n <= limit; n += 2) {
        uint32_t i = 0;
        while (i < count && (uint64_t)list[i].p * list[i].p <= n && n % list[i].p) i++;
        if (i < count && n % list[i].p == 0) continue;
        if (count == capacity) list = realloc(list, (capacity *= 2) * sizeof *list);
        if (list) list[count++] = (struct prime){n, (uint64_t)n * n};
    }
    if (!list) abort();
    *primes = list;
    return count;
}

static uint64_t count_primes(uint64_t limit) {
    struct prime *primes;
    uint32_t count = small_primes(limit, &primes);
    uint64_t total = limit >= 2; /* 2 itself; the entry for 1 is struck out below */
    for (uint64_t low = 0; low < limit; low += 2 * SEGMENT) {
        uint64_t end = low + 2 * SEGMENT;
        memset(composite, 0, SEGMENT);
        if (low == 0) composite[0] = 1;
        for (uint32_t i = 0; i < count && (uint64_t)primes[i].p * primes[i].p < end; i++) {
            uint64_t at = (primes[i].next - low) / 2;
            for (; at < SEGMENT; at += primes[i].p) composite[at] = 1;
            primes[i].next = low + 2 * at + 1;
        }
        uint32_t entries = end <= limit ? SEGMENT : (uint32_t)((limit - low + 1) / 2);
        for (uint32_t i = 0; i < entries; i++) total += !composite[i];
    }
    free(primes);
    return total;
}

int main(int argc, char **argv) {
    uint32_t limit = argument(argc, argv, 100000000);
    text("sieve "), decimal(limit), text(": "), decimal(count_primes(limit));
    return finish();
}
