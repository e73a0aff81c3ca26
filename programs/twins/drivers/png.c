/* Writes and reads a picture as PNG in memory, with every filter. */
#include "driver.h"
#include "png.h"

enum { WIDTH = 512, HEIGHT = 384 };

static unsigned char file[4 << 20];
static size_t end, at;

static void append(png_structp png, png_bytep data, size_t length) {
    REQUIRE(end + length <= sizeof file);
    memcpy(file + end, data, length);
    end += length;
    (void)png;
}

static void take(png_structp png, png_bytep data, size_t length) {
    REQUIRE(at + length <= end);
    memcpy(data, file + at, length);
    at += length;
    (void)png;
}

static void flush(png_structp png) { (void)png; }

static void save(unsigned char *pixels, int level) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    end = 0;
    png_set_write_fn(png, NULL, append, flush);
    png_set_compression_level(png, level);
    png_set_filter(png, 0, PNG_ALL_FILTERS);
    png_set_IHDR(png, info, WIDTH, HEIGHT, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < HEIGHT; y++) png_write_row(png, pixels + y * WIDTH * 3);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

static void load(unsigned char *pixels) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    at = 0;
    png_set_read_fn(png, NULL, take);
    png_read_info(png, info);
    for (int y = 0; y < HEIGHT; y++) png_read_row(png, pixels + y * WIDTH * 3, NULL);
    png_read_end(png, info);
    png_destroy_read_struct(&png, &info, NULL);
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    unsigned char *pixels = picture(WIDTH, HEIGHT), *again = allocate(WIDTH * HEIGHT * 3);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        save(pixels, 1 + round % 6);
        for (int i = 0; i < 3; i++) load(again);
        REQUIRE(!memcmp(pixels, again, WIDTH * HEIGHT * 3));
        seal = hash(file, end, seal);
        pixels[round * 4099 % (WIDTH * HEIGHT)] ^= 85;
    }
    printf("%zu %016llx\n", end, (unsigned long long)seal);
    return 0;
}
