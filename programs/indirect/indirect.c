/* A small stack machine whose instructions are functions, called through their address: one indirect call each. It runs a
   program that finds the number below the argument with the longest Collatz sequence. */
#include "../kernel.h"

struct machine {
    uint32_t pc;
    uint64_t *top; /* the topmost operand */
    uint64_t variables[6];
    uint64_t stack[16];
    int running;
};

typedef void instruction(struct machine *, uint32_t operand);

static void push(struct machine *m, uint32_t value) { *++m->top = value; }
static void load(struct machine *m, uint32_t variable) { *++m->top = m->variables[variable]; }
static void store(struct machine *m, uint32_t variable) { m->variables[variable] = *m->top--; }
static void add(struct machine *m, uint32_t n) { m->top[0] += n; }
static void multiply(struct machine *m, uint32_t n) { m->top[0] *= n; }
static void halve(struct machine *m, uint32_t n) { m->top[0] >>= n; }
static void odd(struct machine *m, uint32_t bit) { m->top[0] &= bit; }
static void less(struct machine *m, uint32_t unused) { (void)unused, m->top--, m->top[0] = m->top[0] < m->top[1]; }
static void jump(struct machine *m, uint32_t target) { m->pc = target; }
static void jump_if(struct machine *m, uint32_t target) { m->pc = *m->top-- ? target : m->pc; }
static void stop(struct machine *m, uint32_t unused) { (void)unused, m->running = 0; }

enum variable { LIMIT, START, N, LENGTH, BEST, LONGEST };

/* Where the blocks of the program begin. */
enum label { NEXT = 0, BEGIN = 5, STEP = 9, DONE = 13, RECORD = 18, ADVANCE = 22, ONWARD = 26, ODD = 33, COUNT = 37 };

static const struct step {
    instruction *run;
    uint32_t operand;
} program[] = {
    [NEXT] = {load, START}, {load, LIMIT}, {less, 0}, {jump_if, BEGIN}, {stop, 0},
    [BEGIN] = {load, START}, {store, N}, {push, 1}, {store, LENGTH},
    [STEP] = {push, 1}, {load, N}, {less, 0}, {jump_if, ONWARD},
    [DONE] = {load, LONGEST}, {load, LENGTH}, {less, 0}, {jump_if, RECORD}, {jump, ADVANCE},
    [RECORD] = {load, START}, {store, BEST}, {load, LENGTH}, {store, LONGEST},
    [ADVANCE] = {load, START}, {add, 1}, {store, START}, {jump, NEXT},
    [ONWARD] = {load, N}, {odd, 1}, {jump_if, ODD}, {load, N}, {halve, 1}, {store, N}, {jump, COUNT},
    [ODD] = {load, N}, {multiply, 3}, {add, 1}, {store, N},
    [COUNT] = {load, LENGTH}, {add, 1}, {store, LENGTH}, {jump, STEP},
};

int main(int argc, char **argv) {
    uint32_t limit = argument(argc, argv, 150000);
    struct machine m = {.pc = 0, .top = m.stack, .running = 1};
    m.variables[LIMIT] = limit, m.variables[START] = 1;
    while (m.running) {
        const struct step *step = &program[m.pc++];
        step->run(&m, step->operand);
    }
    text("indirect "), decimal(limit), text(": "), decimal(m.variables[BEST]), text(" "), decimal(m.variables[LONGEST]);
    return finish();
}
