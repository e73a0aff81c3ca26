/* The edit distance of two random strings as long as the argument says (Wagner and Fischer, JACM 1974), two rows at a time. */
#include "../kernel.h"

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static char *random_letters(uint32_t length, uint32_t *random) {
    char *letters = malloc(length);
    if (!letters) abort();
    for (uint32_t i = 0; i < length; i++) letters[i] = "acgt"[next_random(random) >> 5 & 3];
    return letters;
}

static uint32_t distance(const char *a, const char *b, uint32_t length) {
    uint32_t *row = malloc((length + 1) * sizeof *row);
    if (!row) abort();
    for (uint32_t j = 0; j <= length; j++) row[j] = j;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t diagonal = row[0], left = row[0] = i + 1;
        for (uint32_t j = 0; j < length; j++) {
            uint32_t above = row[j + 1];
            left = smaller(smaller(left, above) + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
            row[j + 1] = left;
        }
    }
    uint32_t result = row[length];
    free(row);
    return result;
}

int main(int argc, char **argv) {
    uint32_t length = argument(argc, argv, 20000), random = 777767777;
    char *a = random_letters(length, &random), *b = random_letters(length, &random);
    text("edit-distance "), decimal(length), text(": "), decimal(distance(a, b, length));
    free(a), free(b);
    return finish();
}
