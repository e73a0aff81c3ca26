/* Looks for blocks of 16 × 16 pixels of one picture in another, by the sum of absolute differences. */
#include "kernel.h"

enum { WIDTH = 320, HEIGHT = 192, BLOCK = 16, REACH = 8 };

static uint8_t before[HEIGHT][WIDTH], after[HEIGHT][WIDTH];

static uint32_t difference(const uint8_t *a, const uint8_t *b) {
    uint32_t sum = 0;
    for (int y = 0; y < BLOCK; y++)
        for (int x = 0; x < BLOCK; x++) {
            int apart = a[y * WIDTH + x] - b[y * WIDTH + x];
            sum += (uint32_t)(apart < 0 ? -apart : apart);
        }
    return sum;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 420), state = 73, sum = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) before[y][x] = (uint8_t)((x * y >> 4) + (next_random(&state) & 31));
    for (uint32_t round = 0; round < rounds; round++) {
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                after[y][x] = before[(y + round % 5) % HEIGHT][(x + round % 7) % WIDTH] + (uint8_t)(next_random(&state) & 3);
        for (int y = BLOCK; y + 2 * BLOCK <= HEIGHT; y += BLOCK)
            for (int x = BLOCK; x + 2 * BLOCK <= WIDTH; x += BLOCK) {
                uint32_t best = ~0u;
                for (int dy = -REACH; dy <= REACH; dy++)
                    for (int dx = -REACH; dx <= REACH; dx++) {
                        uint32_t found = difference(&after[y][x], &before[y + dy][x + dx]);
                        if (found < best) best = found;
                    }
                sum = sum * 31 + best;
            }
    }
    number(sum, 16, 8);
    return finish();
}
