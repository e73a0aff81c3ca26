/* In how many ways do n queens fit on an n × n board? Recursion over bit masks. */
#include "../kernel.h"

/* `columns` taken so far; `left` and `right` are the diagonals as they cross this row. */
static uint64_t place(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
    if (columns == all) return 1;
    uint64_t ways = 0;
    for (uint32_t free = all & ~(columns | left | right); free; free &= free - 1) {
        uint32_t queen = free & -free;
        ways += place(all, columns | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    return ways;
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 13);
    if (n > 31) n = 31;
    text("nqueens "), decimal(n), text(": "), decimal(place((1u << n) - 1, 0, 0, 0));
    return finish();
}
