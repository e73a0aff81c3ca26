/* A filter of 64 coefficients over 16-bit samples as floats, one coefficient after the other over a block of the output. */
#include "kernel.h"

enum { TAPS = 64, BLOCK = 4096 };

static float input[BLOCK + TAPS], output[BLOCK], coefficients[TAPS];

__attribute__((noinline)) static void filter(float *to, const float *from, const float *weights, int samples) {
    for (int i = 0; i < samples; i++) to[i] = 0;
    for (int tap = 0; tap < TAPS; tap += 4) {
        float w0 = weights[tap], w1 = weights[tap + 1], w2 = weights[tap + 2], w3 = weights[tap + 3];
        for (int i = 0; i < samples; i++)
            to[i] += w0 * from[i + tap] + w1 * from[i + tap + 1] + w2 * from[i + tap + 2] + w3 * from[i + tap + 3];
    }
}

int main(int argc, char **argv) {
    uint32_t blocks = argument(argc, argv, 80000), state = 11;
    for (int i = 0; i < TAPS; i++) coefficients[i] = ((float)(next_random(&state) % 2000) - 1000) / 32000;
    double energy = 0;
    for (uint32_t block = 0; block < blocks; block++) {
        memmove(input, input + BLOCK, TAPS * sizeof *input);
        for (int i = 0; i < BLOCK; i += 16) input[TAPS + i] = (float)(int16_t)next_random(&state);
        filter(output, input, coefficients, BLOCK);
        energy += (double)output[block % BLOCK] * output[block % BLOCK] / 65536;
    }
    fixed(energy);
    return finish();
}
