/* Prices of European options by the formula of Black and Scholes. Logarithm and exponential are polynomials of this file, so that
   every compiler has the same ones; nothing in the loop branches. */
#include "kernel.h"

enum { OPTIONS = 4096 };

static double spot[OPTIONS], strike[OPTIONS], years[OPTIONS], price[OPTIONS];

static inline double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t to_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* For |x| < 700: 2^n · e^r, where adding 1.5 · 2^52 rounds x / log 2 to the integer n. */
static inline double exponential(double x) {
    const double shift = 6755399441055744.0;
    double n = x * 1.4426950408889634 + shift;
    uint64_t exponent = to_bits(n) << 52;
    n -= shift;
    double r = x - n * 0.6931471805599453;
    double p = 1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r / 5040))))));
    return from_bits(to_bits(p) + exponent);
}

/* For x between 0.25 and 4: twice the inverse hyperbolic tangent of (x - 1) / (x + 1). */
static inline double logarithm(double x) {
    double t = (x - 1) / (x + 1), u = t * t;
    return 2 * t * (1 + u * (1.0 / 3 + u * (1.0 / 5 + u * (1.0 / 7 + u * (1.0 / 9 + u * (1.0 / 11 + u / 13))))));
}

/* The normal distribution, by the approximation of Abramowitz and Stegun (26.2.17). */
static inline double normal(double x) {
    double size = __builtin_fabs(x), k = 1 / (1 + 0.2316419 * size);
    double tail = 0.3989422804014327 * exponential(-0.5 * size * size) * k *
                  (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    return x < 0 ? tail : 1 - tail;
}

static void calls(double rate, double volatility) {
    for (int i = 0; i < OPTIONS; i++) {
        double deviation = volatility * __builtin_sqrt(years[i]);
        double d = (logarithm(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / deviation;
        price[i] = spot[i] * normal(d) - strike[i] * exponential(-rate * years[i]) * normal(d - deviation);
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 6300), state = 5;
    for (int i = 0; i < OPTIONS; i++) {
        spot[i] = 80 + next_random(&state) % 40;
        strike[i] = 80 + next_random(&state) % 40;
        years[i] = (double)(1 + next_random(&state) % 24) / 12;
    }
    double sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        calls(0.01 + (double)(round % 5) / 100, 0.1 + (double)(round % 10) / 50);
        sum += price[round % OPTIONS];
    }
    fixed(sum);
    return finish();
}
