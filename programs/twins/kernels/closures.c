/* Interprets programs of a small machine that were turned into closures: each step has a function and its operands, and calls the
   next one through its pointer. */
#include "kernel.h"

typedef struct Step Step;

struct Step {
    uint32_t (*run)(const Step *step, uint32_t *registers);
    const Step *next, *other;
    uint8_t to, a, b;
    uint32_t constant;
};

static uint32_t set(const Step *s, uint32_t *r) {
    r[s->to] = s->constant;
    return s->next->run(s->next, r);
}
static uint32_t add(const Step *s, uint32_t *r) {
    r[s->to] = r[s->a] + r[s->b];
    return s->next->run(s->next, r);
}
static uint32_t add_constant(const Step *s, uint32_t *r) {
    r[s->to] = r[s->a] + s->constant;
    return s->next->run(s->next, r);
}
static uint32_t multiply(const Step *s, uint32_t *r) {
    r[s->to] = r[s->a] * r[s->b];
    return s->next->run(s->next, r);
}
static uint32_t mix(const Step *s, uint32_t *r) {
    r[s->to] = r[s->a] ^ r[s->b] >> 5;
    return s->next->run(s->next, r);
}
static uint32_t if_odd(const Step *s, uint32_t *r) {
    const Step *next = r[s->a] & 1 ? s->next : s->other;
    return next->run(next, r);
}
static uint32_t done(const Step *s, uint32_t *r) { return r[s->a]; }

/* Collatz's sequence in a body that the driver repeats: a closure cannot loop without using up the stack. */
static const Step steps[] = {
    {if_odd, steps + 1, steps + 4, 0, 0, 0, 0},       {add, steps + 2, NULL, 1, 0, 0, 0},
    {add, steps + 3, NULL, 0, 0, 1, 0},               {add_constant, steps + 5, NULL, 0, 0, 0, 1},
    {mix, steps + 5, NULL, 0, 0, 2, 0},               {set, steps + 6, NULL, 3, 0, 0, 2654435761u},
    {multiply, steps + 7, NULL, 2, 2, 3, 0},          {add_constant, steps + 8, NULL, 2, 2, 0, 12345},
    {if_odd, steps + 9, steps + 10, 0, 2, 0, 0},      {mix, steps + 11, NULL, 4, 4, 0, 0},
    {add, steps + 11, NULL, 4, 4, 0, 0},              {done, NULL, NULL, 0, 4, 0, 0},
};

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 38000000), registers[8] = {27, 0, 1, 0, 0, 0, 0, 0}, sum = 0;
    for (uint32_t round = 0; round < rounds; round++) sum = sum * 31 + steps->run(steps, registers);
    number(sum, 16, 8);
    return finish();
}
