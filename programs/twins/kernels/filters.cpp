/* A chain of sound filters, each an object with a virtual method for one sample, as plug-ins have it: one target at each place of the
   chain, which only a profile or the whole program can tell. */
#include "kernel.h"

namespace {

struct Filter {
    virtual float sample(float input) = 0;
};

struct Gain final : Filter {
    float factor = 0.7f;
    float sample(float input) override { return input * factor; }
};

struct LowPass final : Filter {
    float last = 0, share = 0.25f;
    float sample(float input) override { return last += share * (input - last); }
};

struct Clip final : Filter {
    float sample(float input) override { return input > 1 ? 1 : input < -1 ? -1 : input; }
};

struct Echo final : Filter {
    enum { LENGTH = 1 << 12 };
    float history[LENGTH] = {};
    uint32_t at = 0;
    float sample(float input) override {
        float output = input + 0.4f * history[at];
        history[at] = output;
        at = (at + 1) % LENGTH;
        return output;
    }
};

struct Resonance final : Filter {
    float x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    float sample(float input) override {
        float output = 0.2f * input + 0.1f * x1 + 0.2f * x2 + 0.9f * y1 - 0.6f * y2;
        x2 = x1, x1 = input, y2 = y1, y1 = output;
        return output;
    }
};

Gain gain;
LowPass low_pass;
Clip clip;
Echo echo;
Resonance resonance;

} // namespace

int main(int argc, char **argv) {
    uint32_t samples = argument(argc, argv, 81000000), state = 101;
    /* The chain depends on an argument that no run has, so that no compiler knows it. */
    Filter *chain[5] = {&gain, &low_pass, &resonance, &echo, &clip};
    if (argc > 2) chain[argc % 5] = chain[0];
    double energy = 0;
    for (uint32_t i = 0; i < samples; i++) {
        float sample = (float)(int32_t)next_random(&state) / 2147483648.0f;
        for (Filter *filter : chain) sample = filter->sample(sample);
        energy += (double)sample * sample;
    }
    fixed(energy / 1000);
    return finish();
}
