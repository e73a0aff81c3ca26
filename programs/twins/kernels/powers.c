/* Powers modulo primes of 61 to 63 bits by Montgomery's multiplication, in products of 64 bits from 32-bit halves. */
#include "kernel.h"

static uint64_t high_product(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

static uint64_t reduced(uint64_t high, uint64_t low, uint64_t modulus, uint64_t inverse) {
    uint64_t difference = high - high_product(low * inverse, modulus);
    return difference + (difference > high ? modulus : 0);
}

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
    uint64_t inverse = modulus, one = -modulus % modulus, result = one;
    for (int i = 0; i < 5; i++) inverse *= 2 - modulus * inverse;
    uint64_t square = one;
    for (int i = 0; i < 64; i++) square = square >= modulus - square ? square - (modulus - square) : 2 * square;
    base = reduced(high_product(base, square), base * square, modulus, inverse);
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = reduced(high_product(result, base), result * base, modulus, inverse);
        base = reduced(high_product(base, base), base * base, modulus, inverse);
    }
    return reduced(0, result, modulus, inverse);
}

int main(int argc, char **argv) {
    static const uint64_t primes[] = {2305843009213693951u, 9223372036854775783u, 4611686018427387847u};
    uint32_t count = argument(argc, argv, 2600000);
    uint64_t sum = 0, x = 3;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t prime = primes[i % 3];
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t base = x % (prime - 2) + 2;
        if (i % 64 == 0 && power(base, prime - 1, prime) != 1) return 1;
        sum = sum * 31 + power(base, x | 1u << 31, prime);
    }
    number(sum, 16, 16);
    return finish();
}
