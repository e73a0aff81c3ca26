/* What the kernels share: one argument in, one line out, without the weight of printf. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first command line argument as a number, or `fallback` without one. */
static inline uint32_t argument(int argc, char **argv, uint32_t fallback) {
    return argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : fallback;
}

static char line[256];
static size_t line_length;

static inline void text(const char *s) {
    size_t n = strlen(s);
    if (n > sizeof line - line_length) n = sizeof line - line_length;
    memcpy(line + line_length, s, n);
    line_length += n;
}

static inline void number(uint64_t n, unsigned base, int width) {
    char digits[65];
    char *p = digits + sizeof digits;
    *--p = 0;
    while (n || width > 0) {
        *--p = "0123456789abcdef"[n % base];
        n /= base;
        width--;
    }
    text(p);
}

static inline void decimal(uint64_t n) { number(n, 10, 1); }

/* Nine digits after the point, truncated. */
static inline void fixed(double x) {
    if (x < 0) text("-");
    if (x < 0) x = -x;
    uint64_t scaled = (uint64_t)(x * 1e9);
    decimal(scaled / 1000000000);
    text(".");
    number(scaled % 1000000000, 10, 9);
}

/* Ends the line and writes it; the exit status of the program. */
static inline int finish(void) {
    text("\n");
    return write(1, line, line_length) == (ssize_t)line_length ? 0 : 1;
}

/* Marsaglia's xorshift: small, and the same everywhere. */
static inline uint32_t next_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

#endif
