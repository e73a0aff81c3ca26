/* Compresses a text at two presets and expands it again. */
#include "driver.h"
#include "input.h"
#include <lzma.h>

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    size_t bound = lzma_stream_buffer_bound(INPUT_SIZE), total = 0;
    unsigned char *packed = allocate(bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t preset = 1; preset < 6; preset += 3) {
            size_t size = 0, from = 0, to = 0;
            uint64_t memory = UINT64_MAX;
            REQUIRE(lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, NULL, input, INPUT_SIZE, packed, &size, bound) == LZMA_OK);
            REQUIRE(lzma_stream_buffer_decode(&memory, 0, NULL, packed, &from, size, output, &to, INPUT_SIZE) == LZMA_OK);
            REQUIRE(to == INPUT_SIZE && !memcmp(input, output, INPUT_SIZE));
            seal = hash(packed, size, seal);
            total += size;
        }
    printf("%zu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
