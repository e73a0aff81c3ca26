#define BUILD ""
#define INLINE inline
#define THREAD_LOCAL
#define HIDDEN
#define FALLTHROUGH
#define PACKAGE_NAME "mozjpeg"
#define VERSION "4"
/* Both twins buffer 32 bits of Huffman codes. */
#define SIZEOF_SIZE_T 4
