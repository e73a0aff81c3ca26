/* Streams of numbers that pull from each other: generators, maps, filters and joins, each element by virtual calls; the call site of
   each class sees one or two others. */
#include "kernel.h"

namespace {

struct Stream {
    /* The next number, or false at the end. */
    virtual bool next(uint32_t &number) = 0;
    virtual void restart() = 0;
};

struct Range final : Stream {
    uint32_t from, to, at;
    Range(uint32_t from, uint32_t to) : from(from), to(to), at(from) {}
    bool next(uint32_t &number) override { return at < to && (number = at++, true); }
    void restart() override { at = from; }
};

struct Random final : Stream {
    uint32_t seed, state, count, left;
    Random(uint32_t seed, uint32_t count) : seed(seed), state(seed), count(count), left(count) {}
    bool next(uint32_t &number) override { return left && (left--, number = next_random(&state), true); }
    void restart() override { left = count; }
};

struct Scale final : Stream {
    Stream &from;
    uint32_t factor;
    Scale(Stream &from, uint32_t factor) : from(from), factor(factor) {}
    bool next(uint32_t &number) override { return from.next(number) && (number *= factor, true); }
    void restart() override { from.restart(); }
};

struct Multiples final : Stream {
    Stream &from;
    uint32_t mask;
    Multiples(Stream &from, uint32_t mask) : from(from), mask(mask) {}
    bool next(uint32_t &number) override {
        while (from.next(number))
            if (!(number & mask)) return true;
        return false;
    }
    void restart() override { from.restart(); }
};

struct Pairs final : Stream {
    Stream &left, &right;
    Pairs(Stream &left, Stream &right) : left(left), right(right) {}
    bool next(uint32_t &number) override {
        uint32_t other;
        return left.next(number) && right.next(other) && (number = number * 31 + other, true);
    }
    void restart() override { left.restart(), right.restart(); }
};

struct Sums final : Stream {
    Stream &from;
    uint32_t sum = 0;
    explicit Sums(Stream &from) : from(from) {}
    bool next(uint32_t &number) override { return from.next(number) && (number = sum += number, true); }
    void restart() override { from.restart(); }
};

} // namespace

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 410), total = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        Range range(round, round + 300000);
        Random random(97 + round, 300000);
        Scale scale(range, 2654435761u);
        Multiples multiples(scale, 3);
        Sums sums(random);
        Pairs pairs(multiples, sums);
        Multiples last(pairs, 1);
        Stream &stream = last;
        for (uint32_t number; stream.next(number);) total = total * 17 + number;
    }
    number(total, 16, 8);
    return finish();
}
