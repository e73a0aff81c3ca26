/* Counts the lines of a text that match each of some regular expressions, as many times as its argument says. An expression
   becomes a nondeterministic automaton, and all its states are followed at once (Thompson, CACM 1968). */
#include "../text.h"

enum { SIZE = 1 << 13, STATES = 64 };
enum { ANY = 256, SPLIT, MATCH };

struct state {
    int what; /* a character, or one of the above */
    int next, other;
};

static char document[SIZE];
static struct state states[STATES];
static int count;
static const char *pattern;

static int add_state(int what, int next, int other) {
    states[count] = (struct state){what, next, other};
    return count++;
}

/* The parsers return where the automaton for their part begins. It leaves through `next`, which exists already: so an
   expression is compiled from its end to its beginning, and `pattern` is read backwards. */
static int alternatives(int next);

static int repeated(int next) {
    char op = *pattern;
    if (op == '*' || op == '+' || op == '?') pattern--;
    int split = op == '*' || op == '+' ? add_state(SPLIT, -1, next) : -1;
    int after = split >= 0 ? split : next, begin;
    if (*pattern == ')') pattern--, begin = alternatives(after), pattern--;
    else begin = add_state(*pattern == '.' ? ANY : *pattern, after, -1), pattern--;
    if (op == '*') return states[split].next = begin, split;
    if (op == '+') return states[split].next = begin;
    return op == '?' ? add_state(SPLIT, begin, next) : begin;
}

static int sequence(int next) {
    while (*pattern && *pattern != '(' && *pattern != '|') next = repeated(next);
    return next;
}

static int alternatives(int next) {
    int begin = sequence(next);
    while (*pattern == '|') pattern--, begin = add_state(SPLIT, begin, sequence(next));
    return begin;
}

/* `expression` begins with a zero byte. */
static int compile(const char *expression, size_t length) {
    count = 0, pattern = expression + length - 1;
    return alternatives(add_state(MATCH, -1, -1));
}

static int members[2][STATES], sizes[2];
static uint32_t added[STATES], generation;

/* Adds what can be reached without reading. */
static void follow(int list, int state) {
    if (added[state] == generation) return;
    added[state] = generation;
    if (states[state].what == SPLIT) follow(list, states[state].next), follow(list, states[state].other);
    else members[list][sizes[list]++] = state;
}

/* Whether the line from `at` matches somewhere; `at` moves behind it. */
static int matches(int begin, const char **at) {
    int found = 0, now = 0;
    sizes[now] = 0, generation++;
    for (const char *p = *at;; p++) {
        if (!found) follow(now, begin);
        sizes[!now] = 0, generation++;
        for (int i = 0; i < sizes[now] && !found; i++) {
            const struct state *state = &states[members[now][i]];
            if (state->what == MATCH) found = 1;
            else if (*p != '\n' && (state->what == ANY || state->what == *p)) follow(!now, state->next);
        }
        now = !now;
        if (*p == '\n') return *at = p + 1, found;
    }
}

int main(int argc, char **argv) {
    static const char expressions[][24] = {
        "\0(na|ni)+ ", "\0 .a .a .a ", "\0ze(s|w|n)?.? w", "\0(b|d|f|g)e .* (wa|ze) ", "\0v?a.u .+ l",
    };
    uint32_t times = argument(argc, argv, 600);
    uint64_t total = 0;
    fill_with_text(document, SIZE, 362436069);
    text("regex "), decimal(times), text(":");
    for (uint32_t i = 0; i < times; i++) {
        for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++) {
            int begin = compile(expressions[e], 1 + strlen(expressions[e] + 1));
            uint32_t lines = 0;
            for (const char *at = document; at < document + SIZE;) lines += (uint32_t)matches(begin, &at);
            if (i == 0) text(" "), decimal(lines);
            total += lines;
        }
    }
    text(", "), decimal(total);
    return finish();
}
