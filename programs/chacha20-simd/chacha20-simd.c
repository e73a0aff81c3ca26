/* Encrypts as many kibibytes as its argument says with ChaCha20 (RFC 8439), a row of the state in a vector of four words:
   rotations, shuffles and exclusive ors. Same output as `chacha20`. */
#include "../text.h"

typedef uint32_t u32x4 __attribute__((vector_size(16)));

static u32x4 state[4] = {{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}};
static u32x4 buffer[1024 / sizeof(u32x4)];

static u32x4 rotate(u32x4 x, int n) { return x << n | x >> (32 - n); }

static void quarter_rounds(u32x4 *a, u32x4 *b, u32x4 *c, u32x4 *d) {
    *a += *b, *d = rotate(*d ^ *a, 16);
    *c += *d, *b = rotate(*b ^ *c, 12);
    *a += *b, *d = rotate(*d ^ *a, 8);
    *c += *d, *b = rotate(*b ^ *c, 7);
}

static void encrypt_block(u32x4 *block) {
    u32x4 a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 10; i++) {
        quarter_rounds(&a, &b, &c, &d);
        b = __builtin_shufflevector(b, b, 1, 2, 3, 0);
        c = __builtin_shufflevector(c, c, 2, 3, 0, 1);
        d = __builtin_shufflevector(d, d, 3, 0, 1, 2);
        quarter_rounds(&a, &b, &c, &d);
        b = __builtin_shufflevector(b, b, 3, 0, 1, 2);
        c = __builtin_shufflevector(c, c, 2, 3, 0, 1);
        d = __builtin_shufflevector(d, d, 1, 2, 3, 0);
    }
    block[0] ^= a + state[0], block[1] ^= b + state[1], block[2] ^= c + state[2], block[3] ^= d + state[3];
    state[3][0]++;
}

int main(int argc, char **argv) {
    uint32_t kibibytes = argument(argc, argv, 400000);
    for (uint32_t i = 0; i < 8; i++) state[1 + i / 4][i % 4] = 0x03020100 + 0x04040404u * i;
    state[3] = (u32x4){0, 0x09000000, 0x4a000000, 0};
    for (uint32_t i = 0; i < kibibytes; i++)
        for (size_t at = 0; at < sizeof buffer / sizeof *buffer; at += 4) encrypt_block(buffer + at);
    text("chacha20-simd "), decimal(kibibytes), text(" KiB: "), number(digest(buffer, sizeof buffer), 16, 8);
    return finish();
}
