/* Compresses and expands a picture as JPEG in memory. */
#include "driver.h"
#include <jpeglib.h>

enum { WIDTH = 640, HEIGHT = 480 };

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    unsigned char *pixels = picture(WIDTH, HEIGHT), *again = allocate(WIDTH * HEIGHT * 3);
    uint64_t seal = 0;
    unsigned long size = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        struct jpeg_error_mgr errors;
        struct jpeg_compress_struct to = {.err = jpeg_std_error(&errors)};
        struct jpeg_decompress_struct from = {.err = &errors};
        unsigned char *file = NULL;
        size = 0;
        jpeg_create_compress(&to);
        jpeg_mem_dest(&to, &file, &size);
        to.image_width = WIDTH, to.image_height = HEIGHT, to.input_components = 3, to.in_color_space = JCS_RGB;
        jpeg_c_set_int_param(&to, JINT_COMPRESS_PROFILE, JCP_FASTEST);
        jpeg_set_defaults(&to);
        jpeg_set_quality(&to, 60 + (int)(round % 35), TRUE);
        jpeg_start_compress(&to, TRUE);
        while (to.next_scanline < HEIGHT) {
            JSAMPROW row = pixels + to.next_scanline * WIDTH * 3;
            jpeg_write_scanlines(&to, &row, 1);
        }
        jpeg_finish_compress(&to);
        jpeg_destroy_compress(&to);
        for (int i = 0; i < 3; i++) {
            jpeg_create_decompress(&from);
            jpeg_mem_src(&from, file, size);
            REQUIRE(jpeg_read_header(&from, TRUE) == JPEG_HEADER_OK);
            jpeg_start_decompress(&from);
            while (from.output_scanline < HEIGHT) {
                JSAMPROW row = again + from.output_scanline * WIDTH * 3;
                jpeg_read_scanlines(&from, &row, 1);
            }
            jpeg_finish_decompress(&from);
            jpeg_destroy_decompress(&from);
        }
        seal = hash(again, WIDTH * HEIGHT * 3, hash(file, size, seal));
        free(file);
    }
    printf("%lu %016llx\n", size, (unsigned long long)seal);
    return 0;
}
