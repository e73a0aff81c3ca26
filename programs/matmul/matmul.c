/* The product of two n × n matrices of doubles, by rows so that the inner loop runs along memory; prints its trace. */
#include "../kernel.h"

static void multiply(const double *restrict a, const double *restrict b, double *restrict c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            double x = a[i * n + k];
            for (uint32_t j = 0; j < n; j++) c[i * n + j] += x * b[k * n + j];
        }
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 800), random = 7;
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = calloc(n * n, sizeof *c), trace = 0;
    if (!a || !b || !c) abort();
    for (uint32_t i = 0; i < n * n; i++) {
        a[i] = next_random(&random) * 0x1p-32 - 0.5;
        b[i] = next_random(&random) * 0x1p-32 - 0.5;
    }
    multiply(a, b, c, n);
    for (uint32_t i = 0; i < n; i++) trace += c[i * n + i];
    text("matmul "), decimal(n), text(": "), fixed(trace);
    return finish();
}
