/* The Mandelbrot set on an n × n grid; prints how many points stay bounded and a hash of all escape times. */
#include "../kernel.h"

enum { LIMIT = 200 };

static uint32_t escape_time(double cx, double cy) {
    double x = 0, y = 0, xx = 0, yy = 0;
    uint32_t i = 0;
    for (; i < LIMIT && xx + yy <= 4; i++) {
        y = 2 * x * y + cy;
        x = xx - yy + cx;
        xx = x * x, yy = y * y;
    }
    return i;
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 1200), inside = 0, sum = 0;
    for (uint32_t row = 0; row < n; row++)
        for (uint32_t column = 0; column < n; column++) {
            uint32_t time = escape_time(3.0 * column / n - 2.25, 3.0 * row / n - 1.5);
            inside += time == LIMIT;
            sum = sum * 31 + time;
        }
    text("mandelbrot "), decimal(n), text(": "), decimal(inside), text(" "), number(sum, 16, 8);
    return finish();
}
