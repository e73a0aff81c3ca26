/* Compresses a text fast and thoroughly, and expands it again. */
#include "driver.h"
#include "input.h"
#include "lz4.h"
#include "lz4hc.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    int bound = LZ4_compressBound(INPUT_SIZE), total = 0;
    char *packed = allocate((size_t)bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int level = 0; level < 10; level += 3) {
            int size = level ? LZ4_compress_HC((const char *)input, packed, INPUT_SIZE, bound, level)
                             : LZ4_compress_default((const char *)input, packed, INPUT_SIZE, bound);
            REQUIRE(size > 0);
            for (int again = 0; again < 8; again++) REQUIRE(LZ4_decompress_safe(packed, output, size, INPUT_SIZE) == INPUT_SIZE);
            REQUIRE(!memcmp(input, output, INPUT_SIZE));
            seal = hash(packed, (size_t)size, seal);
            total += size;
        }
    printf("%d %016llx\n", total, (unsigned long long)seal);
    return 0;
}
