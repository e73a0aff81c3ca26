/* Fibonacci numbers by the definition: nothing but calls. */
#include "../kernel.h"

__attribute__((noinline)) static uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 40);
    text("fib "), decimal(n), text(": "), decimal(fib(n));
    return finish();
}
