/* BLAKE3 of many messages of different lengths, with the portable code. */
#include "driver.h"
#include "blake3.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1), state = 9;
    enum { SIZE = 1 << 18 };
    static unsigned char message[SIZE];
    uint8_t digest[BLAKE3_OUT_LEN] = {0};
    for (int i = 0; i < SIZE; i++) message[i] = (unsigned char)next_random(&state);
    for (uint32_t round = 0; round < rounds; round++)
        for (size_t size = 64; size <= SIZE; size *= 8) {
            blake3_hasher hasher;
            blake3_hasher_init(&hasher);
            blake3_hasher_update(&hasher, digest, sizeof digest);
            blake3_hasher_update(&hasher, message, size - round % 61);
            blake3_hasher_finalize(&hasher, digest, sizeof digest);
        }
    for (size_t i = 0; i < sizeof digest; i++) printf("%02x", digest[i]);
    putchar('\n');
    return 0;
}
