/* The Mandelbrot set on an n × n grid, two points at a time in vectors of two doubles; n is even. Prints how many points
   stay bounded and a hash of all escape times: those of `mandelbrot`. */
#include "../kernel.h"

typedef double f64x2 __attribute__((vector_size(16)));
typedef int64_t i64x2 __attribute__((vector_size(16)));

enum { LIMIT = 200 };

static i64x2 escape_times(f64x2 cx, f64x2 cy) {
    f64x2 x = {0, 0}, y = {0, 0}, xx = {0, 0}, yy = {0, 0}, four = {4, 4};
    i64x2 times = {0, 0};
    for (uint32_t i = 0; i < LIMIT; i++) {
        i64x2 bounded = xx + yy <= four; /* -1 in a lane where it holds */
        if (!(bounded[0] | bounded[1])) break;
        times -= bounded;
        y = (x + x) * y + cy;
        x = xx - yy + cx;
        xx = x * x, yy = y * y;
    }
    return times;
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 1200) & ~1u, inside = 0, sum = 0;
    for (uint32_t row = 0; row < n; row++)
        for (uint32_t column = 0; column < n; column += 2) {
            double y = 3.0 * row / n - 1.5;
            i64x2 times = escape_times((f64x2){3.0 * column / n - 2.25, 3.0 * (column + 1) / n - 2.25}, (f64x2){y, y});
            inside += (times[0] == LIMIT) + (times[1] == LIMIT);
            sum = sum * 31 + (uint32_t)times[0];
            sum = sum * 31 + (uint32_t)times[1];
        }
    text("mandelbrot-simd "), decimal(n), text(": "), decimal(inside), text(" "), number(sum, 16, 8);
    return finish();
}
