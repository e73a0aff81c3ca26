/* Jacobi's method on a grid of 400 × 400 doubles: each point becomes the mean of itself and its four neighbours. */
#include "kernel.h"

enum { N = 400 };

static double grids[2][N][N];

__attribute__((noinline)) static void relax(double (*to)[N], double (*from)[N]) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = 0.2 * (from[i][j] + from[i][j - 1] + from[i][j + 1] + from[i + 1][j] + from[i - 1][j]);
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 17000), state = 2;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) grids[0][i][j] = grids[1][i][j] = (double)(next_random(&state) % 10000) / 100;
    for (uint32_t round = 0; round < rounds; round++) relax(grids[1 - round % 2], grids[round % 2]);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += grids[0][i][N - 1 - i] + grids[1][i][i];
    fixed(sum);
    return finish();
}
