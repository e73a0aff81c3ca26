/* The distance of Levenshtein between two texts of 2,000 letters: a table of which two rows are kept. */
#include "kernel.h"

enum { N = 2000 };

static uint8_t first[N], second[N];
static int32_t row[N + 1];

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

static int32_t distance(void) {
    for (int j = 0; j <= N; j++) row[j] = j;
    for (int i = 1; i <= N; i++) {
        int32_t diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= N; j++) {
            int32_t above = row[j];
            row[j] = smaller(smaller(above, row[j - 1]) + 1, diagonal + (first[i - 1] != second[j - 1]));
            diagonal = above;
        }
    }
    return row[N];
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 150), state = 47, sum = 0;
    for (int i = 0; i < N; i++) {
        first[i] = 'a' + next_random(&state) % 6;
        second[i] = i % 5 ? first[i] : 'a' + next_random(&state) % 6;
    }
    for (uint32_t round = 0; round < rounds; round++) {
        first[round * 7 % N] = 'a' + round % 6;
        sum += (uint32_t)distance();
    }
    decimal(sum);
    return finish();
}
