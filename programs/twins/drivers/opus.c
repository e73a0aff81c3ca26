/* Compresses and expands sound: music at 96 and speech at 20 kilobits per second, in fixed point. */
#include "driver.h"
#include "opus.h"

enum { RATE = 48000, FRAME = RATE / 50 };

int main(int argc, char **argv) {
    uint32_t frames = argument(argc, argv, 100), state = 5;
    uint64_t seal = 0;
    for (int speech = 0; speech < 2; speech++) {
        int error;
        OpusEncoder *encoder = opus_encoder_create(RATE, 1, speech ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO, &error);
        REQUIRE(error == OPUS_OK);
        OpusDecoder *decoder = opus_decoder_create(RATE, 1, &error);
        REQUIRE(error == OPUS_OK);
        opus_encoder_ctl(encoder, OPUS_SET_BITRATE(speech ? 20000 : 96000));
        int32_t sound = 0, speed = 0;
        for (uint32_t frame = 0; frame < frames; frame++) {
            opus_int16 samples[FRAME], again[FRAME];
            unsigned char packet[1500];
            for (int i = 0; i < FRAME; i++) {
                /* An oscillator of which the pitch wanders, and noise. */
                speed -= sound * (int32_t)(40 + frame % 64) >> 14;
                sound += speed;
                samples[i] = (opus_int16)(sound / 2 + (int32_t)(next_random(&state) % 512) - 256);
                if (sound > 12000 || sound < -12000) sound /= 2, speed /= 2;
                if (i == 0) sound += 4000;
            }
            int size = opus_encode(encoder, samples, FRAME, packet, sizeof packet);
            REQUIRE(size > 0);
            REQUIRE(opus_decode(decoder, packet, size, again, FRAME, 0) == FRAME);
            seal = hash(packet, (size_t)size, hash(again, sizeof again, seal));
        }
        opus_encoder_destroy(encoder);
        opus_decoder_destroy(decoder);
    }
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
