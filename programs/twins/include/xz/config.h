/* The configuration of liblzma: that of its package, without threads. */
#include_next <config.h>
#undef MYTHREAD_POSIX

/* Without threads it still blocks signals, of which WebAssembly has none. */
#ifdef __wasm__
typedef int sigset_t;
#define sigprocmask(how, set, old) ((void)(how), (void)(set), (void)(old), 0)
#endif
