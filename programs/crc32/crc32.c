/* CRC-32 (IEEE 802.3) of as many kibibytes as its argument says: one table load per byte, each waiting for the last. */
#include "../kernel.h"

static uint32_t table[256];

static void make_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        table[byte] = crc;
    }
}

static uint32_t update(uint32_t crc, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
    return crc;
}

int main(int argc, char **argv) {
    static uint8_t stream[1024];
    uint32_t kibibytes = argument(argc, argv, 400000), random = 1, crc = ~0u;
    make_table();
    for (size_t i = 0; i < sizeof stream; i++) stream[i] = (uint8_t)next_random(&random);
    for (uint32_t i = 0; i < kibibytes; i++) {
        memcpy(stream, &i, sizeof i);
        crc = update(crc, stream, sizeof stream);
    }
    text("crc32 "), decimal(kibibytes), text(": "), number(~crc, 16, 8);
    return finish();
}
