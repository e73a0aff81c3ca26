/* Loads, hints and renders the glyphs of a font in several sizes. */
#include "driver.h"
#include "input.h"
#include <ft2build.h>
#include FT_FREETYPE_H

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uint64_t seal = 0;
    FT_Library library;
    FT_Face face;
    REQUIRE(!FT_Init_FreeType(&library) && !FT_New_Memory_Face(library, input, INPUT_SIZE, 0, &face));
    static const int modes[] = {FT_LOAD_RENDER, FT_LOAD_RENDER | FT_LOAD_FORCE_AUTOHINT, FT_LOAD_RENDER | FT_LOAD_NO_HINTING};
    for (uint32_t round = 0; round < rounds; round++)
        for (unsigned pixels = 11; pixels < 72; pixels += 17) {
            REQUIRE(!FT_Set_Pixel_Sizes(face, 0, pixels + round % 5));
            for (FT_Long glyph = 0; glyph < face->num_glyphs && glyph < 400; glyph++) {
                REQUIRE(!FT_Load_Glyph(face, (FT_UInt)glyph, modes[(round + pixels) % 3]));
                const FT_Bitmap *bitmap = &face->glyph->bitmap;
                for (unsigned row = 0; row < bitmap->rows; row++) seal = hash(bitmap->buffer + (int)row * bitmap->pitch, bitmap->width, seal);
            }
        }
    FT_Done_Face(face);
    FT_Done_FreeType(library);
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
