/* Encrypts as many kibibytes as its argument says with ChaCha20 (RFC 8439), over and over the same buffer. */
#include "../text.h"

static uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
static uint8_t buffer[1024];

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

#define QUARTER_ROUND(a, b, c, d)                                                                                            \
    (a += b, d = rotate(d ^ a, 16), c += d, b = rotate(b ^ c, 12), a += b, d = rotate(d ^ a, 8), c += d, b = rotate(b ^ c, 7))

static void encrypt_block(uint8_t *block) {
    uint32_t x[16];
    memcpy(x, state, sizeof x);
    for (int i = 0; i < 10; i++) {
        QUARTER_ROUND(x[0], x[4], x[8], x[12]);
        QUARTER_ROUND(x[1], x[5], x[9], x[13]);
        QUARTER_ROUND(x[2], x[6], x[10], x[14]);
        QUARTER_ROUND(x[3], x[7], x[11], x[15]);
        QUARTER_ROUND(x[0], x[5], x[10], x[15]);
        QUARTER_ROUND(x[1], x[6], x[11], x[12]);
        QUARTER_ROUND(x[2], x[7], x[8], x[13]);
        QUARTER_ROUND(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 16; i++) {
        uint32_t word = x[i] + state[i];
        for (int byte = 0; byte < 4; byte++) block[4 * i + byte] ^= (uint8_t)(word >> 8 * byte);
    }
    state[12]++;
}

int main(int argc, char **argv) {
    uint32_t kibibytes = argument(argc, argv, 400000);
    for (int i = 0; i < 8; i++) state[4 + i] = 0x03020100 + 0x04040404u * (uint32_t)i;
    state[13] = 0x09000000, state[14] = 0x4a000000;
    for (uint32_t i = 0; i < kibibytes; i++)
        for (size_t at = 0; at < sizeof buffer; at += 64) encrypt_block(buffer + at);
    text("chacha20 "), decimal(kibibytes), text(" KiB: "), number(digest(buffer, sizeof buffer), 16, 8);
    return finish();
}
