/* Compresses a picture as WebP, with and without loss, and expands it. */
#include "driver.h"
#include "webp/decode.h"
#include "webp/encode.h"

enum { WIDTH = 256, HEIGHT = 192 };

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    unsigned char *pixels = picture(WIDTH, HEIGHT);
    uint64_t seal = 0;
    size_t total = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int lossless = 0; lossless < 2; lossless++) {
            unsigned char *file = NULL;
            size_t size = lossless ? WebPEncodeLosslessRGB(pixels, WIDTH, HEIGHT, WIDTH * 3, &file)
                                   : WebPEncodeRGB(pixels, WIDTH, HEIGHT, WIDTH * 3, 70, &file);
            REQUIRE(size > 0);
            for (int i = 0; i < 4; i++) {
                int width, height;
                unsigned char *again = WebPDecodeRGB(file, size, &width, &height);
                REQUIRE(again && width == WIDTH && height == HEIGHT);
                seal = hash(again, WIDTH * HEIGHT * 3, seal);
                WebPFree(again);
            }
            total += size;
            WebPFree(file);
        }
    printf("%zu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
