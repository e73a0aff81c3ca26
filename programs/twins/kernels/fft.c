/* Fourier transforms of 4096 complex doubles, in place, radix 2; the twiddle factors come from a recurrence in advance. */
#include "kernel.h"

enum { LOG = 12, N = 1 << LOG };

typedef struct {
    double re, im;
} Complex;

static Complex data[N], twiddles[N / 2];

static Complex times(Complex a, Complex b) {
    return (Complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* The root of unity of order N, by halving the angle from order 4. */
static void prepare(void) {
    double re = 0, im = 1;
    for (int i = 2; i < LOG; i++) {
        double half = __builtin_sqrt((1 + re) / 2);
        im = im / (2 * half);
        re = half;
    }
    twiddles[0] = (Complex){1, 0};
    for (int i = 1; i < N / 2; i++) twiddles[i] = times(twiddles[i - 1], (Complex){re, -im});
}

static void transform(Complex *values) {
    for (uint32_t i = 0, j = 0; i < N; i++) {
        if (i < j) {
            Complex value = values[i];
            values[i] = values[j];
            values[j] = value;
        }
        uint32_t bit = N >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j |= bit;
    }
    for (int size = 2; size <= N; size *= 2) {
        int half = size / 2, step = N / size;
        for (int start = 0; start < N; start += size)
            for (int k = 0; k < half; k++) {
                Complex even = values[start + k], odd = times(values[start + k + half], twiddles[k * step]);
                values[start + k] = (Complex){even.re + odd.re, even.im + odd.im};
                values[start + k + half] = (Complex){even.re - odd.re, even.im - odd.im};
            }
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 23000), state = 17;
    prepare();
    double sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++) data[i] = (Complex){(double)(next_random(&state) & 1023) / 1024, 0};
        transform(data);
        sum += data[round % N].re;
    }
    fixed(sum);
    return finish();
}
