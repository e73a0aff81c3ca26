/* Compresses a picture as JPEG 2000 without loss, and expands it. */
#include "driver.h"
#include "openjpeg.h"

enum { WIDTH = 256, HEIGHT = 256, CAPACITY = 1 << 20 };

static unsigned char file[CAPACITY];
static size_t size, at;

static OPJ_SIZE_T take(void *to, OPJ_SIZE_T count, void *context) {
    if (at >= size) return (OPJ_SIZE_T)-1;
    if (count > size - at) count = size - at;
    memcpy(to, file + at, count);
    at += count;
    return (void)context, count;
}

static OPJ_SIZE_T put(void *from, OPJ_SIZE_T count, void *context) {
    REQUIRE(at + count <= CAPACITY);
    memcpy(file + at, from, count);
    at += count;
    if (at > size) size = at;
    return (void)context, count;
}

static OPJ_OFF_T skip(OPJ_OFF_T count, void *context) {
    at += (size_t)count;
    return (void)context, count;
}

static OPJ_BOOL seek(OPJ_OFF_T to, void *context) {
    at = (size_t)to;
    return (void)context, OPJ_TRUE;
}

static opj_stream_t *stream(OPJ_BOOL reads) {
    opj_stream_t *made = opj_stream_create(1 << 16, reads);
    at = 0;
    opj_stream_set_read_function(made, take);
    opj_stream_set_write_function(made, put);
    opj_stream_set_skip_function(made, skip);
    opj_stream_set_seek_function(made, seek);
    opj_stream_set_user_data_length(made, size);
    return made;
}

static void save(const unsigned char *pixels, int irreversible) {
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.tcp_rates[0] = irreversible ? 20 : 0;
    parameters.cp_disto_alloc = 1;
    parameters.irreversible = irreversible;
    parameters.tcp_mct = 1;
    opj_image_cmptparm_t component = {.dx = 1, .dy = 1, .w = WIDTH, .h = HEIGHT, .prec = 8};
    opj_image_cmptparm_t components[3] = {component, component, component};
    opj_image_t *image = opj_image_create(3, components, OPJ_CLRSPC_SRGB);
    image->x1 = WIDTH, image->y1 = HEIGHT;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        for (int c = 0; c < 3; c++) image->comps[c].data[i] = pixels[3 * i + c];
    size = 0;
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
    opj_stream_t *to = stream(OPJ_FALSE);
    REQUIRE(opj_setup_encoder(codec, &parameters, image) && opj_start_compress(codec, image, to));
    REQUIRE(opj_encode(codec, to) && opj_end_compress(codec, to));
    opj_stream_destroy(to);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
}

static uint64_t load(const unsigned char *pixels, int irreversible) {
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_J2K);
    opj_image_t *image = NULL;
    opj_stream_t *from = stream(OPJ_TRUE);
    REQUIRE(opj_setup_decoder(codec, &parameters) && opj_read_header(from, codec, &image) && opj_decode(codec, from, image));
    uint64_t seal = 0;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            seal = seal * 31 + (uint64_t)image->comps[c].data[i];
            REQUIRE(irreversible || image->comps[c].data[i] == pixels[3 * i + c]);
        }
    opj_stream_destroy(from);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    return seal;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    unsigned char *pixels = picture(WIDTH, HEIGHT);
    uint64_t seal = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int irreversible = 0; irreversible < 2; irreversible++) {
            save(pixels, irreversible);
            seal = hash(file, size, seal + load(pixels, irreversible));
        }
    printf("%zu %016llx\n", size, (unsigned long long)seal);
    return 0;
}
