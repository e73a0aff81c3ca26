/* Counts lines and words of a text and turns it to capitals, sixteen characters at a time, as many times as its argument
   says. */
#include "../text.h"

typedef uint8_t u8x16 __attribute__((vector_size(16)));

enum { SIZE = 1 << 16, VECTORS = SIZE / 16 };

static u8x16 document[VECTORS];

/* In each lane the character before the one in `now`. */
static u8x16 shifted(u8x16 before, u8x16 now) {
    return __builtin_shufflevector(before, now, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
}

static uint32_t sum(u8x16 lanes) {
    uint32_t total = 0;
    for (int i = 0; i < 16; i++) total += lanes[i];
    return total;
}

struct counts {
    uint64_t lines, words, letters;
};

/* Vectors of counts are added up before a lane can overflow. */
static void count(struct counts *total) {
    u8x16 before = {0};
    for (uint32_t block = 0; block < VECTORS; block += 128) {
        u8x16 lines = {0}, words = {0}, letters = {0};
        for (uint32_t i = block; i < block + 128; i++) {
            u8x16 now = document[i], letter = now > ' ';
            lines -= (u8x16)(now == '\n');
            words -= letter & ~(u8x16)(shifted(before, now) > ' ');
            letters -= letter;
            before = now;
        }
        total->lines += sum(lines), total->words += sum(words), total->letters += sum(letters);
    }
}

/* Swaps capitals and small letters. */
static void swap_case(void) {
    for (uint32_t i = 0; i < VECTORS; i++) {
        u8x16 small = document[i] | 0x20;
        u8x16 letter = (u8x16)(small >= 'a') & (u8x16)(small <= 'z');
        document[i] ^= letter & 0x20;
    }
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 40000);
    struct counts total = {0, 0, 0};
    fill_with_text((char *)document, SIZE, 179424673);
    for (uint32_t i = 0; i < times; i++) {
        ((char *)document)[(i * 7919u) % SIZE] = i % 3 ? ' ' : '\n';
        count(&total);
        swap_case();
    }
    text("lines-simd "), decimal(times), text(": "), decimal(total.lines), text(" lines, "), decimal(total.words);
    text(" words, "), decimal(total.letters), text(" letters, "), number(digest(document, SIZE), 16, 8);
    return finish();
}
