/* Conway's game of life on 256 × 256 cells of one byte, by sums of eight neighbours. */
#include "kernel.h"

enum { N = 256, WIDTH = N + 2 };

static uint8_t boards[2][WIDTH][WIDTH];

static void generation(uint8_t (*restrict to)[WIDTH], uint8_t (*restrict from)[WIDTH]) {
    for (int y = 1; y <= N; y++)
        for (int x = 1; x <= N; x++) {
            const uint8_t *up = from[y - 1] + x, *here = from[y] + x, *down = from[y + 1] + x;
            uint8_t sum = (uint8_t)(up[-1] + up[0] + up[1] + here[-1] + here[1] + down[-1] + down[0] + down[1]);
            to[y][x] = (sum | here[0]) == 3;
        }
}

int main(int argc, char **argv) {
    uint32_t generations = argument(argc, argv, 200000), state = 67, alive = 0;
    for (int y = 1; y <= N; y++)
        for (int x = 1; x <= N; x++) boards[0][y][x] = next_random(&state) % 3 == 0;
    for (uint32_t i = 0; i < generations; i++) {
        generation(boards[1 - i % 2], boards[i % 2]);
        boards[1 - i % 2][1 + i * 7 % N][1 + i * 13 % N] = 1;
    }
    for (int y = 1; y <= N; y++)
        for (int x = 1; x <= N; x++) alive += boards[generations % 2][y][x] << (x + y) % 8;
    decimal(alive);
    return finish();
}
