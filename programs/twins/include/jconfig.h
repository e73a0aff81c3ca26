/* The configuration of mozjpeg, without assembly and arithmetic coding. */
#define JPEG_LIB_VERSION 62
#define LIBJPEG_TURBO_VERSION 0
#define BITS_IN_JSAMPLE 8
#define MEM_SRCDST_SUPPORTED 1
