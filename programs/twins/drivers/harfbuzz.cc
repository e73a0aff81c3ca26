/* Shapes texts in Latin and Arabic script with fonts for them. */
#include "driver.h"
#include "hb.h"

static const char roboto[] = {
#embed "perf/fonts/Roboto-Regular.ttf"
};
static const char amiri[] = {
#embed "perf/fonts/Amiri-Regular.ttf"
};
static const char english[] = {
#embed "perf/texts/en-thelittleprince.txt" limit(40000)
};
static const char persian[] = {
#embed "perf/texts/fa-thelittleprince.txt" limit(40000)
};

static uint64_t shape(const char *font_file, size_t font_size, const char *text, size_t size) {
    uint64_t seal = 0;
    hb_blob_t *blob = hb_blob_create(font_file, (unsigned)font_size, HB_MEMORY_MODE_READONLY, nullptr, nullptr);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_font_t *font = hb_font_create(face);
    hb_buffer_t *buffer = hb_buffer_create();
    for (const char *line = text, *end = text + size; line < end;) {
        const char *stop = line;
        while (stop < end && *stop != '\n') stop++;
        hb_buffer_clear_contents(buffer);
        hb_buffer_add_utf8(buffer, line, (int)(stop - line), 0, -1);
        hb_buffer_guess_segment_properties(buffer);
        hb_shape(font, buffer, nullptr, 0);
        unsigned count;
        const hb_glyph_info_t *glyphs = hb_buffer_get_glyph_infos(buffer, &count);
        const hb_glyph_position_t *places = hb_buffer_get_glyph_positions(buffer, nullptr);
        for (unsigned i = 0; i < count; i++) {
            uint32_t glyph[4] = {glyphs[i].codepoint, glyphs[i].cluster, (uint32_t)places[i].x_advance, (uint32_t)places[i].y_offset};
            seal = hash(glyph, sizeof glyph, seal);
        }
        line = stop + 1;
    }
    hb_buffer_destroy(buffer);
    hb_font_destroy(font);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
    return seal;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        seal = seal * 31 + shape(roboto, sizeof roboto, english, sizeof english);
        seal = seal * 31 + shape(amiri, sizeof amiri, persian, sizeof persian);
    }
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
