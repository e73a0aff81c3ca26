/* WebAssembly without exceptions has no longjmp. The programs of the list raise no error, so that setjmp need only return once; a
   longjmp ends the program. Both twins are compiled with this. */
#ifndef SETJMP_H
#define SETJMP_H

typedef int jmp_buf[1];
typedef jmp_buf sigjmp_buf;

static inline __attribute__((noreturn)) void longjmp(jmp_buf buffer, int value) {
    (void)buffer, (void)value;
    __builtin_trap();
}

#define setjmp(buffer) ((void)(buffer), 0)
#define _setjmp(buffer) setjmp(buffer)
#define sigsetjmp(buffer, mask) setjmp(buffer)
#define _longjmp longjmp
#define siglongjmp longjmp

#endif
