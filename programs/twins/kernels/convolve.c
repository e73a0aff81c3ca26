/* Filters a picture of 512 × 512 floats with a kernel of 5 × 5, whose weights are known at run time only. */
#include "kernel.h"

enum { WIDTH = 512, HEIGHT = 512, SIZE = 5 };

static float picture[HEIGHT + SIZE][WIDTH + SIZE], filtered[HEIGHT][WIDTH];

__attribute__((noinline)) static void convolve(float (*to)[WIDTH], float (*from)[WIDTH + SIZE], const float *weights) {
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) to[y][x] = 0;
        for (int dy = 0; dy < SIZE; dy++)
            for (int dx = 0; dx < SIZE; dx++) {
                float weight = weights[dy * SIZE + dx];
                const float *row = from[y + dy] + dx;
                for (int x = 0; x < WIDTH; x++) to[y][x] += weight * row[x];
            }
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 2500), state = 7;
    float weights[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++) weights[i] = (float)(next_random(&state) % 64) / 1024;
    for (int y = 0; y < HEIGHT + SIZE; y++)
        for (int x = 0; x < WIDTH + SIZE; x++) picture[y][x] = (float)(next_random(&state) % 256);
    double sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        convolve(filtered, picture, weights);
        picture[round % HEIGHT][round % 31] += filtered[round % 53][round % 97] / 16;
        sum += filtered[round % HEIGHT][(round * 3) % WIDTH];
    }
    fixed(sum);
    return finish();
}
