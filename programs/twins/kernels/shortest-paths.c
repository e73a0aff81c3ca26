/* Shortest paths between all pairs of 256 nodes, by Floyd and Warshall, in integers. */
#include "kernel.h"

enum { N = 256 };

static int32_t distances[N][N];

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 85), state = 71, sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) distances[i][j] = i == j ? 0 : (int32_t)(next_random(&state) % 10000) + 1;
        for (int k = 0; k < N; k++)
            for (int i = 0; i < N; i++) {
                int32_t start = distances[i][k];
                for (int j = 0; j < N; j++) {
                    int32_t length = start + distances[k][j];
                    if (length < distances[i][j]) distances[i][j] = length;
                }
            }
        for (int i = 0; i < N; i++) sum = sum * 31 + (uint32_t)distances[i][(i * 17 + 1) % N];
    }
    number(sum, 16, 8);
    return finish();
}
