/* The spectral norm of the infinite matrix a(i, j) = 1 / ((i+j)(i+j+1)/2 + i + 1), cut at n × n, by the power method:
   one division per element. */
#include "../kernel.h"
#include <math.h>

static double element(uint32_t i, uint32_t j) { return 1.0 / (double)((i + j) * (i + j + 1) / 2 + i + 1); }

static void times(const double *v, double *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++) sum += element(i, j) * v[j];
        out[i] = sum;
    }
}

static void times_transposed(const double *v, double *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++) sum += element(j, i) * v[j];
        out[i] = sum;
    }
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 2000);
    double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), *scratch = malloc(n * sizeof *scratch);
    if (!u || !v || !scratch) abort();
    for (uint32_t i = 0; i < n; i++) u[i] = 1;
    for (int i = 0; i < 10; i++) {
        times(u, scratch, n), times_transposed(scratch, v, n);
        times(v, scratch, n), times_transposed(scratch, u, n);
    }
    double uv = 0, vv = 0;
    for (uint32_t i = 0; i < n; i++) uv += u[i] * v[i], vv += v[i] * v[i];
    text("spectral-norm "), decimal(n), text(": "), fixed(sqrt(uv / vv));
    return finish();
}
