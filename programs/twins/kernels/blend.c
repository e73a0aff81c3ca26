/* Lays a translucent picture over another: bytes, widened, multiplied by weights and narrowed again. */
#include "kernel.h"

enum { SIZE = 1 << 16 };

static uint8_t bottom[SIZE], top[SIZE], cover[SIZE], result[SIZE];

__attribute__((noinline)) static void blend(uint8_t *to, const uint8_t *under, const uint8_t *over, const uint8_t *alpha, int size) {
    for (int i = 0; i < size; i++) {
        uint16_t sum = (uint16_t)(under[i] * (255 - alpha[i]) + over[i] * alpha[i] + 128);
        to[i] = (uint8_t)((sum + (sum >> 8)) >> 8);
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 190000), state = 61, sum = 0;
    for (int i = 0; i < SIZE; i++) {
        bottom[i] = (uint8_t)next_random(&state);
        top[i] = (uint8_t)(i >> 5);
        cover[i] = (uint8_t)(next_random(&state) >> 8);
    }
    for (uint32_t round = 0; round < rounds; round++) {
        blend(result, bottom, top, cover, SIZE);
        sum = sum * 31 + result[round * 4099 % SIZE];
        cover[round * 257 % SIZE] += (uint8_t)round;
    }
    number(sum, 16, 8);
    return finish();
}
