/* Evaluates expressions as trees of objects: a virtual call for each node, of eight classes. */
#include "kernel.h"

/* Without the header <new>. */
inline void *operator new(size_t, void *place) noexcept { return place; }

namespace {

struct Node {
    virtual int64_t value(const int64_t *variables) const = 0;
};

struct Constant final : Node {
    int64_t number;
    explicit Constant(int64_t number) : number(number) {}
    int64_t value(const int64_t *) const override { return number; }
};

struct Variable final : Node {
    unsigned index;
    explicit Variable(unsigned index) : index(index) {}
    int64_t value(const int64_t *variables) const override { return variables[index]; }
};

struct Binary : Node {
    const Node *left, *right;
    Binary(const Node *left, const Node *right) : left(left), right(right) {}
};

template <typename Operation> struct Arithmetic final : Binary {
    using Binary::Binary;
    int64_t value(const int64_t *variables) const override {
        return Operation::of(left->value(variables), right->value(variables));
    }
};

struct Sum { static int64_t of(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); } };
struct Difference { static int64_t of(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); } };
struct Product { static int64_t of(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); } };
struct Least { static int64_t of(int64_t a, int64_t b) { return a < b ? a : b; } };
struct Mixed { static int64_t of(int64_t a, int64_t b) { return a ^ (b >> 3); } };

struct Choice final : Node {
    const Node *condition, *yes, *no;
    Choice(const Node *condition, const Node *yes, const Node *no) : condition(condition), yes(yes), no(no) {}
    int64_t value(const int64_t *variables) const override {
        return condition->value(variables) > 0 ? yes->value(variables) : no->value(variables);
    }
};

alignas(16) char arena[1 << 20];
size_t used;

template <typename T, typename... Arguments> const Node *make(Arguments... arguments) {
    void *place = arena + used;
    used += (sizeof(T) + 15) / 16 * 16;
    return ::new (place) T(arguments...);
}

const Node *tree(uint32_t *state, int depth) {
    uint32_t kind = next_random(state) % 8;
    if (depth == 0 || kind == 0) {
        return next_random(state) % 2 ? make<Constant>((int64_t)(next_random(state) % 100)) : make<Variable>(next_random(state) % 8);
    }
    const Node *left = tree(state, depth - 1), *right = tree(state, depth - 1);
    switch (kind) {
    case 1: return make<Arithmetic<Sum>>(left, right);
    case 2: return make<Arithmetic<Difference>>(left, right);
    case 3: return make<Arithmetic<Product>>(left, right);
    case 4: return make<Arithmetic<Least>>(left, right);
    case 5: return make<Arithmetic<Mixed>>(left, right);
    default: return make<Choice>(tree(state, depth - 2 < 0 ? 0 : depth - 2), left, right);
    }
}

} // namespace

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 5100000), state = 79;
    const Node *trees[8];
    for (const Node *&one : trees) one = tree(&state, 7);
    int64_t variables[8], sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 8; i++) variables[i] = (int64_t)((round * 2654435761u >> i) % 1000) - 500;
        sum = (int64_t)((uint64_t)sum * 31 + (uint64_t)trees[round % 8]->value(variables));
    }
    number((uint64_t)sum, 16, 16);
    return finish();
}
