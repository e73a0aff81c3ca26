/* Compresses a text and expands it again. */
#include "driver.h"
#include "input.h"
#include "bzlib.h"

/* bzip2 without its standard library calls this. */
void bz_internal_error(int code) { exit(code); }

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    unsigned bound = INPUT_SIZE + INPUT_SIZE / 50 + 600, total = 0;
    char *packed = allocate(bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        unsigned size = bound, expanded = INPUT_SIZE;
        REQUIRE(BZ2_bzBuffToBuffCompress(packed, &size, (char *)input, INPUT_SIZE, 1 + round % 9, 0, 0) == BZ_OK);
        REQUIRE(BZ2_bzBuffToBuffDecompress(output, &expanded, packed, size, 0, 0) == BZ_OK);
        REQUIRE(expanded == INPUT_SIZE && !memcmp(input, output, INPUT_SIZE));
        seal = hash(packed, size, seal);
        total += size;
    }
    printf("%u %016llx\n", total, (unsigned long long)seal);
    return 0;
}
