/* Compresses a text at two levels and expands it again. */
#include "driver.h"
#include "input.h"
#include "zlib.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uLong bound = compressBound(INPUT_SIZE), total = 0;
    unsigned char *packed = allocate(bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int level = 1; level < 8; level += 5) {
            uLong size = bound, expanded = INPUT_SIZE;
            REQUIRE(compress2(packed, &size, input, INPUT_SIZE, level) == Z_OK);
            for (int again = 0; again < 4; again++) REQUIRE(uncompress(output, &expanded, packed, size) == Z_OK);
            REQUIRE(expanded == INPUT_SIZE && !memcmp(input, output, INPUT_SIZE));
            seal = hash(packed, size, seal);
            total += size;
        }
    printf("%lu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
