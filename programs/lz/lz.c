/* Compresses text and decompresses it again, as many times as its argument says. LZ77 with one candidate for each hash of
   four bytes. A sequence is the number of literals, the literals, the length of a copy (0 at the end) and its distance. */
#include "../text.h"

enum { SIZE = 1 << 16, HASH_BITS = 14, WINDOW = 65535, SHORTEST = 4 };

static uint8_t plain[SIZE], packed[SIZE + SIZE / 64 + 16], unpacked[SIZE];
static uint32_t latest[1 << HASH_BITS]; /* where this hash was last seen, plus 1 */

static uint8_t *put_number(uint8_t *to, uint32_t n) {
    for (; n >= 128; n >>= 7) *to++ = (uint8_t)(n | 128);
    *to++ = (uint8_t)n;
    return to;
}

static const uint8_t *get_number(const uint8_t *from, uint32_t *n) {
    uint32_t shift = 0;
    *n = 0;
    do *n |= (*from & 127u) << shift, shift += 7;
    while (*from++ & 128);
    return from;
}

static uint32_t load4(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static size_t compress(void) {
    uint8_t *out = packed;
    uint32_t at = 0, literals = 0;
    memset(latest, 0, sizeof latest);
    while (at + SHORTEST <= SIZE) {
        uint32_t hash = load4(plain + at) * 2654435761u >> (32 - HASH_BITS);
        uint32_t candidate = latest[hash];
        latest[hash] = at + 1;
        if (!candidate || at - --candidate > WINDOW || load4(plain + candidate) != load4(plain + at)) {
            at++;
            continue;
        }
        uint32_t length = SHORTEST;
        while (at + length < SIZE && plain[candidate + length] == plain[at + length]) length++;
        out = put_number(out, at - literals);
        memcpy(out, plain + literals, at - literals), out += at - literals;
        out = put_number(put_number(out, length), at - candidate);
        literals = at += length;
    }
    out = put_number(out, SIZE - literals);
    memcpy(out, plain + literals, SIZE - literals), out += SIZE - literals;
    return (size_t)(put_number(out, 0) - packed);
}

static size_t decompress(void) {
    const uint8_t *in = packed;
    uint8_t *out = unpacked;
    for (;;) {
        uint32_t length, distance;
        in = get_number(in, &length);
        memcpy(out, in, length), out += length, in += length;
        in = get_number(in, &length);
        if (!length) return (size_t)(out - unpacked);
        in = get_number(in, &distance);
        for (const uint8_t *from = out - distance; length; length--) *out++ = *from++;
    }
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 1000);
    uint64_t total = 0;
    fill_with_text((char *)plain, SIZE, 2463534242);
    for (uint32_t i = 0; i < times; i++) {
        plain[(i * 7919u) % SIZE] ^= 1;
        total += compress();
        if (decompress() != SIZE || memcmp(plain, unpacked, SIZE)) abort();
    }
    text("lz "), decimal(times), text(": "), decimal(total), text(" "), number(digest(packed, 4096), 16, 8);
    return finish();
}
