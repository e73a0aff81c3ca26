/* Relaxation by Gauss and Seidel on 300 × 300 doubles: each point needs the one before it, so that no loop can be vectorised. */
#include "kernel.h"

enum { N = 300 };

static double grid[N][N];

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 3000);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) grid[i][j] = (double)((i * 7 + j * 13) % 100);
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                grid[i][j] = 0.25 * (grid[i - 1][j] + grid[i][j - 1] + grid[i][j + 1] + grid[i + 1][j]);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += grid[i][i] + grid[i][N - 1 - i];
    fixed(sum);
    return finish();
}
