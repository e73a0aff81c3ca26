/* C += A·B of 160 × 160 doubles, with the loops in the order i, k, j: the innermost loop adds a multiple of one row to another. */
#include "kernel.h"

enum { N = 160 };

static double a[N][N], b[N][N], c[N][N];

static void multiply(double (*restrict into)[N], const double (*restrict left)[N], const double (*restrict right)[N]) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            double factor = left[i][k];
            for (int j = 0; j < N; j++) into[i][j] += factor * right[k][j];
        }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 2500), state = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(next_random(&state) % 1000) / 1000;
            b[i][j] = (double)(next_random(&state) % 1000) / 1000;
        }
    double trace = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        memset(c, 0, sizeof c);
        a[round % N][round % 7] += 0.001;
        multiply(c, a, b);
        trace += c[round % N][(round * 7) % N];
    }
    fixed(trace);
    return finish();
}
