/* The configuration of libpng: the one that comes with it. */
#include "scripts/pnglibconf.h.prebuilt"
