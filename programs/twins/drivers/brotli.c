/* Compresses a text at two qualities and expands it again. */
#include "driver.h"
#include "input.h"
#include <brotli/decode.h>
#include <brotli/encode.h>

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    size_t bound = BrotliEncoderMaxCompressedSize(INPUT_SIZE), total = 0;
    unsigned char *packed = allocate(bound), *output = allocate(INPUT_SIZE);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int quality = 4; quality < 10; quality += 3) {
            size_t size = bound, expanded = INPUT_SIZE;
            REQUIRE(BrotliEncoderCompress(quality, 20, BROTLI_MODE_TEXT, INPUT_SIZE, input, &size, packed));
            REQUIRE(BrotliDecoderDecompress(size, packed, &expanded, output) == BROTLI_DECODER_RESULT_SUCCESS);
            REQUIRE(expanded == INPUT_SIZE && !memcmp(input, output, INPUT_SIZE));
            seal = hash(packed, size, seal);
            total += size;
        }
    printf("%zu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
