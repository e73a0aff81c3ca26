/* The heat equation on a grid of 48 × 48 × 48 doubles, second differences in three directions. */
#include "kernel.h"

enum { N = 48 };

static double a[N][N][N], b[N][N][N];

static void step(double (*restrict to)[N][N], double (*restrict from)[N][N]) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            for (int k = 1; k < N - 1; k++) {
                double middle = from[i][j][k];
                to[i][j][k] = 0.125 * (from[i + 1][j][k] - 2.0 * middle + from[i - 1][j][k]) +
                              0.125 * (from[i][j + 1][k] - 2.0 * middle + from[i][j - 1][k]) +
                              0.125 * (from[i][j][k + 1] - 2.0 * middle + from[i][j][k - 1]) + middle;
            }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 7700), state = 2;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++) a[i][j][k] = b[i][j][k] = (double)(next_random(&state) % 1000) / 100;
    for (uint32_t round = 0; round < rounds; round++) {
        step(b, a);
        step(a, b);
    }
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i][(i * 5) % N][(i * 11) % N];
    fixed(sum);
    return finish();
}
