/* CRC-32 of a buffer, eight bytes at a time, with eight tables. */
#include "kernel.h"

enum { SIZE = 1 << 16 };

static uint32_t tables[8][256];
static uint8_t buffer[SIZE];

static void prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        tables[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

static uint32_t checksum(uint32_t crc, const uint8_t *bytes, size_t length) {
    crc = ~crc;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 4);
        low ^= crc;
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
              tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    while (length--) crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 255];
    return ~crc;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 25000), state = 29, crc = 0;
    prepare();
    for (int i = 0; i < SIZE; i++) buffer[i] = (uint8_t)next_random(&state);
    for (uint32_t round = 0; round < rounds; round++) crc = checksum(crc, buffer + round % 8, SIZE - 16 + round % 5);
    number(crc, 16, 8);
    return finish();
}
