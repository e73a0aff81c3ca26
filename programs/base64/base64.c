/* Encodes a block of bytes in base64 (RFC 4648) and decodes it again, as many times as its argument says. */
#include "../text.h"

enum { SIZE = 3 * 16384, CODED = SIZE / 3 * 4 };

static uint8_t plain[SIZE], decoded[SIZE];
static char coded[CODED];
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static int8_t values[256]; /* -1: not in the alphabet */

static void encode(void) {
    char *out = coded;
    for (const uint8_t *in = plain; in < plain + SIZE; in += 3, out += 4) {
        uint32_t bits = (uint32_t)in[0] << 16 | in[1] << 8 | in[2];
        out[0] = alphabet[bits >> 18], out[1] = alphabet[bits >> 12 & 63];
        out[2] = alphabet[bits >> 6 & 63], out[3] = alphabet[bits & 63];
    }
}

/* Whether every character was of the alphabet. */
static int decode(void) {
    uint8_t *out = decoded;
    int32_t seen = 0;
    for (const char *in = coded; in < coded + CODED; in += 4, out += 3) {
        int32_t a = values[(uint8_t)in[0]], b = values[(uint8_t)in[1]], c = values[(uint8_t)in[2]], d = values[(uint8_t)in[3]];
        seen |= a | b | c | d;
        out[0] = (uint8_t)(a << 2 | b >> 4), out[1] = (uint8_t)(b << 4 | c >> 2), out[2] = (uint8_t)(c << 6 | d);
    }
    return seen >= 0;
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 4000), random = 1812433253, sum = 0;
    memset(values, -1, sizeof values);
    for (int8_t i = 0; i < 64; i++) values[(uint8_t)alphabet[i]] = i;
    for (size_t i = 0; i < SIZE; i++) plain[i] = (uint8_t)(next_random(&random) >> 7);
    for (uint32_t i = 0; i < times; i++) {
        plain[(i * 7919u) % SIZE] += 1;
        encode();
        if (!decode() || memcmp(plain, decoded, SIZE)) abort();
        sum += (uint8_t)coded[(i * 104729u) % CODED];
    }
    text("base64 "), decimal(times), text(": "), decimal(sum), text(" "), number(digest(coded, CODED), 16, 8);
    return finish();
}
