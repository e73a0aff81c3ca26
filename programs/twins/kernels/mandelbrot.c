/* The Mandelbrot set, up to 200 steps for each point: a loop of a few operations that ends after a number of rounds that is not
   known in advance. */
#include "kernel.h"

int main(int argc, char **argv) {
    uint32_t size = argument(argc, argv, 2500), inside = 0;
    uint64_t steps = 0;
    for (uint32_t row = 0; row < size; row++)
        for (uint32_t column = 0; column < size; column++) {
            double cx = 3.0 * column / size - 2, cy = 2.4 * row / size - 1.2, x = 0, y = 0;
            uint32_t step = 0;
            for (; step < 200; step++) {
                double xx = x * x, yy = y * y;
                if (xx + yy > 4) break;
                y = 2 * x * y + cy;
                x = xx - yy + cx;
            }
            inside += step == 200;
            steps += step;
        }
    decimal(inside);
    text(" ");
    decimal(steps);
    return finish();
}
