/* The text that compressors and parsers get: the file INPUT of a package, or LIMIT bytes of it. */
static const unsigned char input[] = {
#ifdef LIMIT
#embed INPUT limit(LIMIT)
#else
#embed INPUT
#endif
    , 0};
enum { INPUT_SIZE = sizeof input - 1 };
