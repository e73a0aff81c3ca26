/* A bytecode interpreter: one loop around one switch. Its bytecode counts the primes below 4096 and the ways to place seven
   queens, as many times as the argument says. */
#include "../kernel.h"

enum op { HALT, PUSH, LOAD, STORE, ADD, XOR, AND, OR, NOT, NEGATE, LEFT, RIGHT, LESS, EQUAL, JUMP, UNLESS, ENTER, CALL, RETURN,
          GET, PUT };

struct instruction {
    enum op op;
    int32_t operand;
};

enum { PRIMES_BELOW = 4096, ALL_COLUMNS = (1 << 7) - 1, ARGUMENTS = 3, FRAME = 6 };

enum label { START = 0, SOLVE = 10, SEARCH = 17, LOOP = 28, DONE = 57, SIEVE = 59, OUTER = 64, NEXT = 71, PRIME = 76,
             STRIKE = 84, OUT = 96, END = 98 };

static const struct instruction code[] = {
    [START] = {PUSH, PRIMES_BELOW}, {PUSH, 0}, {PUSH, 0}, {CALL, SIEVE},
        {PUSH, 0}, {PUSH, 0}, {PUSH, 0}, {CALL, SOLVE}, {ADD, 0}, {HALT, 0},
    /* solve(0 columns taken, 1 left diagonals, 2 right diagonals); 3 free columns, 4 one of them, 5 ways so far */
    [SOLVE] = {ENTER, 0}, {LOAD, 0}, {PUSH, ALL_COLUMNS}, {EQUAL, 0}, {UNLESS, SEARCH}, {PUSH, 1}, {RETURN, 0},
    [SEARCH] = {PUSH, ALL_COLUMNS}, {LOAD, 0}, {LOAD, 1}, {OR, 0}, {LOAD, 2}, {OR, 0}, {NOT, 0}, {AND, 0}, {STORE, 3},
        {PUSH, 0}, {STORE, 5},
    [LOOP] = {LOAD, 3}, {UNLESS, DONE},
        {LOAD, 3}, {LOAD, 3}, {NEGATE, 0}, {AND, 0}, {STORE, 4}, {LOAD, 3}, {LOAD, 4}, {XOR, 0}, {STORE, 3},
        {LOAD, 0}, {LOAD, 4}, {OR, 0}, {LOAD, 1}, {LOAD, 4}, {OR, 0}, {PUSH, 1}, {LEFT, 0},
        {LOAD, 2}, {LOAD, 4}, {OR, 0}, {PUSH, 1}, {RIGHT, 0},
        {CALL, SOLVE}, {LOAD, 5}, {ADD, 0}, {STORE, 5}, {JUMP, LOOP},
    [DONE] = {LOAD, 5}, {RETURN, 0},
    /* sieve(0 limit); 3 candidate, 4 multiple, 5 primes so far */
    [SIEVE] = {ENTER, 0}, {PUSH, 2}, {STORE, 3}, {PUSH, 0}, {STORE, 5},
    [OUTER] = {LOAD, 3}, {LOAD, 0}, {LESS, 0}, {UNLESS, OUT}, {LOAD, 3}, {GET, 0}, {UNLESS, PRIME},
    [NEXT] = {LOAD, 3}, {PUSH, 1}, {ADD, 0}, {STORE, 3}, {JUMP, OUTER},
    [PRIME] = {LOAD, 5}, {PUSH, 1}, {ADD, 0}, {STORE, 5}, {LOAD, 3}, {LOAD, 3}, {ADD, 0}, {STORE, 4},
    [STRIKE] = {LOAD, 4}, {LOAD, 0}, {LESS, 0}, {UNLESS, NEXT},
        {PUSH, 1}, {LOAD, 4}, {PUT, 0}, {LOAD, 4}, {LOAD, 3}, {ADD, 0}, {STORE, 4}, {JUMP, STRIKE},
    [OUT] = {LOAD, 5}, {RETURN, 0},
};
_Static_assert(sizeof code / sizeof *code == END, "the labels fit the code");

static int32_t stack[1024], array[PRIMES_BELOW];

/* Runs the code from START; what is on top of the stack in the end. `executed` counts instructions. */
static int32_t interpret(uint64_t *executed) {
    struct {
        uint32_t pc;
        int32_t *frame;
    } calls[64], *call = calls;
    int32_t *top = stack, *frame = stack; /* `top` points at the topmost operand */
    uint32_t pc = START;
    for (uint64_t n = 1;; n++) {
        struct instruction i = code[pc++];
        switch (i.op) {
        case HALT: *executed += n; return *top;
        case PUSH: *++top = i.operand; break;
        case LOAD: *++top = frame[i.operand]; break;
        case STORE: frame[i.operand] = *top--; break;
        case ADD: top--, top[0] += top[1]; break;
        case XOR: top--, top[0] ^= top[1]; break;
        case AND: top--, top[0] &= top[1]; break;
        case OR: top--, top[0] |= top[1]; break;
        case NOT: top[0] = ~top[0]; break;
        case NEGATE: top[0] = -top[0]; break;
        case LEFT: top--, top[0] <<= top[1]; break;
        case RIGHT: top--, top[0] >>= top[1]; break;
        case LESS: top--, top[0] = top[0] < top[1]; break;
        case EQUAL: top--, top[0] = top[0] == top[1]; break;
        case JUMP: pc = (uint32_t)i.operand; break;
        case UNLESS: pc = *top-- ? pc : (uint32_t)i.operand; break;
        case CALL: call->pc = pc, call++->frame = frame, pc = (uint32_t)i.operand; break;
        case ENTER: frame = top - ARGUMENTS + 1, top = frame + FRAME - 1; break;
        case RETURN: frame[0] = *top, top = frame, frame = (--call)->frame, pc = call->pc; break;
        case GET: top[0] = array[top[0]]; break;
        case PUT: array[top[0]] = top[-1], top -= 2; break;
        }
    }
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 1000);
    uint64_t executed = 0, sum = 0;
    for (uint32_t i = 0; i < times; i++) {
        memset(array, 0, sizeof array);
        sum += (uint64_t)interpret(&executed);
    }
    text("switch "), decimal(times), text(": "), decimal(sum), text(" after "), decimal(executed), text(" instructions");
    return finish();
}
