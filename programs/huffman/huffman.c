/* Encodes text with a canonical Huffman code made for it and decodes it again, as many times as its argument says. */
#include "../text.h"

enum { SIZE = 1 << 15, SYMBOLS = 256, LONGEST = 32 };

static uint8_t plain[SIZE], coded[SIZE + 8], decoded[SIZE];
static uint8_t lengths[SYMBOLS];        /* of each symbol's code in bits; 0 if it does not occur */
static uint32_t codes[SYMBOLS];
static uint32_t first[LONGEST + 2];     /* by length: the first code */
static uint32_t index_of[LONGEST + 2];  /* by length: where its symbols begin in `ordered` */
static uint8_t ordered[SYMBOLS];

/* Repeatedly joins the two rarest nodes; a leaf's depth is then the length of its code. */
static void find_lengths(void) {
    static uint32_t weight[2 * SYMBOLS], parent[2 * SYMBOLS], depth[2 * SYMBOLS];
    static uint8_t symbol[SYMBOLS];
    uint32_t counts[SYMBOLS] = {0}, leaves = 0;
    for (size_t i = 0; i < SIZE; i++) counts[plain[i]]++;
    for (uint32_t s = 0; s < SYMBOLS; s++) {
        if (!counts[s]) continue;
        uint32_t at = leaves++;
        for (; at && weight[at - 1] > counts[s]; at--) weight[at] = weight[at - 1], symbol[at] = symbol[at - 1];
        weight[at] = counts[s], symbol[at] = (uint8_t)s;
    }
    /* Leaves ascend, and so do the joined nodes behind them: the rarest is at the front of one of two queues. */
    uint32_t leaf = 0, joined = leaves, end = leaves;
    for (; end < 2 * leaves - 1; end++) {
        weight[end] = 0;
        for (int i = 0; i < 2; i++) {
            uint32_t rarest = leaf < leaves && (joined == end || weight[leaf] <= weight[joined]) ? leaf++ : joined++;
            weight[end] += weight[rarest], parent[rarest] = end;
        }
    }
    memset(lengths, 0, sizeof lengths);
    depth[end - 1] = 0;
    for (uint32_t i = end - 1; i-- > 0;) {
        depth[i] = depth[parent[i]] + 1;
        if (i < leaves) lengths[symbol[i]] = (uint8_t)depth[i];
    }
}

/* Codes of one length are consecutive numbers, in the order of their symbols. */
static void assign_codes(void) {
    uint32_t code = 0, count = 0;
    for (uint32_t length = 1; length <= LONGEST; length++) {
        first[length] = code, index_of[length] = count;
        for (uint32_t s = 0; s < SYMBOLS; s++)
            if (lengths[s] == length) ordered[count++] = (uint8_t)s, codes[s] = code++;
        code <<= 1;
    }
    index_of[LONGEST + 1] = count;
}

static size_t encode(void) {
    uint64_t bits = 0;
    uint32_t held = 0;
    uint8_t *out = coded;
    for (size_t i = 0; i < SIZE; i++) {
        uint8_t s = plain[i];
        bits = bits << lengths[s] | codes[s], held += lengths[s];
        for (; held >= 8; held -= 8) *out++ = (uint8_t)(bits >> (held - 8));
    }
    *out++ = (uint8_t)(bits << (8 - held));
    return (size_t)(out - coded);
}

static void decode(void) {
    const uint8_t *in = coded;
    uint32_t byte = 0, held = 0;
    for (size_t i = 0; i < SIZE; i++) {
        uint32_t code = 0, length = 0;
        do {
            if (!held) byte = *in++, held = 8;
            code = code << 1 | (byte >> --held & 1), length++;
        } while (code - first[length] >= index_of[length + 1] - index_of[length]);
        decoded[i] = ordered[index_of[length] + code - first[length]];
    }
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 800);
    uint64_t total = 0;
    fill_with_text((char *)plain, SIZE, 88675123);
    for (uint32_t i = 0; i < times; i++) {
        plain[(i * 7919u) % SIZE] = (uint8_t)(i * 31);
        find_lengths(), assign_codes();
        total += encode();
        decode();
        if (memcmp(plain, decoded, SIZE)) abort();
    }
    text("huffman "), decimal(times), text(": "), decimal(total), text(" "), number(digest(coded, 4096), 16, 8);
    return finish();
}
