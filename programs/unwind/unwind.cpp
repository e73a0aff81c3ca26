// Throws through a hundred frames, as many times as the argument says. A frame has nothing to do, an object to destroy, a
// handler of another type, or a handler that throws on; which one it is differs from frame to frame.
extern "C" {
#include "../kernel.h"
}

namespace {

constexpr uint32_t DEPTH = 100;
uint32_t order; // a hash of what has been destroyed and caught, in order

void note(uint32_t what) { order = (order ^ what) * 16777619; }

class Guard {
public:
    explicit Guard(uint32_t name) : name(name) { note(name); }
    ~Guard() { note(~name); }
    Guard(const Guard &) = delete;

private:
    uint32_t name;
};

class Failure {
public:
    explicit Failure(uint32_t at) : depth(at) {}
    virtual ~Failure() = default;
    virtual uint32_t code() const { return depth; }

protected:
    uint32_t depth;
};

class Deep : public Failure {
public:
    Deep(uint32_t at, uint32_t seed) : Failure(at), seed(seed) {}
    uint32_t code() const override { return depth ^ seed; }

private:
    uint32_t seed;
};

struct Unrelated {
    uint32_t payload;
};

uint32_t descend(uint32_t depth, uint32_t seed);

[[gnu::noinline]] uint32_t plain(uint32_t depth, uint32_t seed) { return descend(depth - 1, seed) + 1; }

[[gnu::noinline]] uint32_t guarded(uint32_t depth, uint32_t seed) {
    Guard guard(depth);
    return descend(depth - 1, seed) + depth;
}

[[gnu::noinline]] uint32_t guarded_twice(uint32_t depth, uint32_t seed) {
    Guard outer(depth);
    uint32_t below = 0;
    for (uint32_t i = 0; i < 2; i++) {
        Guard inner(depth << 8 | i);
        below += descend(depth - 1, i ? seed : 0);
    }
    return below;
}

[[gnu::noinline]] uint32_t other_type(uint32_t depth, uint32_t seed) {
    try {
        return descend(depth - 1, seed) + 2;
    } catch (const Unrelated &unrelated) {
        note(unrelated.payload);
        return unrelated.payload;
    }
}

[[gnu::noinline]] uint32_t throws_on(uint32_t depth, uint32_t seed) {
    try {
        return descend(depth - 1, seed) + 3;
    } catch (...) {
        note(depth * 3);
        throw;
    }
}

[[gnu::noinline]] uint32_t replaces(uint32_t depth, uint32_t seed) {
    try {
        return descend(depth - 1, seed) + 4;
    } catch (const Failure &failure) {
        throw Deep(depth, failure.code());
    }
}

// A seed of zero returns at once. Most frames are plain or guarded, as they are in C++.
uint32_t descend(uint32_t depth, uint32_t seed) {
    if (seed == 0) return depth;
    if (depth == 0) {
        if (seed % 4 == 0) return seed;
        if (seed % 8 == 1) throw Failure(seed);
        throw Deep(0, seed);
    }
    switch ((seed >> depth % 16 ^ depth) % 32) {
    case 0: return other_type(depth, seed);
    case 1: return throws_on(depth, seed);
    case 2: return replaces(depth, seed);
    case 3: return guarded_twice(depth, seed);
    case 4: case 5: case 6: case 7: case 8: case 9: case 10: case 11: return guarded(depth, seed);
    default: return plain(depth, seed);
    }
}

} // namespace

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 5000), random = 271828182, caught = 0, sum = 0;
    for (uint32_t i = 0; i < times; i++) {
        try {
            sum += descend(DEPTH, next_random(&random));
        } catch (const Failure &failure) {
            caught++;
            sum += failure.code();
        }
    }
    text("unwind "), decimal(times), text(": "), decimal(caught), text(" caught, "), number(order, 16, 8), text(" "), decimal(sum);
    return finish();
}
