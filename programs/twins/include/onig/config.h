/* The configuration of Oniguruma. */
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define SIZEOF_INT 4
#define SIZEOF_SHORT 2
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_VOIDP __SIZEOF_POINTER__
#define SIZEOF_LONG_LONG 8
