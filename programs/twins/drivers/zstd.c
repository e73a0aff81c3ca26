/* Compresses a text at three levels and expands it again. */
#include "driver.h"
#include "input.h"
#include "zstd.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    static const int levels[] = {1, 5, 13};
    size_t bound = ZSTD_compressBound(INPUT_SIZE), total = 0;
    unsigned char *packed = allocate(bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < 3; i++) {
            size_t size = ZSTD_compress(packed, bound, input, INPUT_SIZE, levels[i]);
            REQUIRE(!ZSTD_isError(size));
            for (int again = 0; again < 4; again++) REQUIRE(ZSTD_decompress(output, INPUT_SIZE, packed, size) == INPUT_SIZE);
            REQUIRE(!memcmp(input, output, INPUT_SIZE));
            seal = hash(packed, size, seal);
            total += size;
        }
    printf("%zu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
