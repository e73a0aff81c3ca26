/* Writes a pseudo-random JSON document, parses it into a tree and prints the tree again, as many times as its argument says. */
#include "../text.h"

enum { SIZE = 1 << 17, NODES = 1 << 13 };
enum kind { NIL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT };

struct node {
    enum kind kind;
    uint32_t length;     /* of a string in bytes */
    const char *key;     /* within an object, else NULL; still escaped, up to the closing quote */
    struct node *next;   /* sibling */
    union {
        int64_t number;
        const char *string;
        struct node *child;
    };
};

static char document[SIZE], printed[SIZE];
static struct node nodes[NODES];
static uint32_t used;
static const char *in;
static char *out;

static void put(const char *s) {
    while (*s) *out++ = *s++;
}

static void put_quoted(const char *s, size_t length) {
    *out++ = '"';
    memcpy(out, s, length), out += length;
    *out++ = '"';
}

static void put_number(int64_t n) {
    char digits[20];
    int count = 0;
    if (n < 0) *out++ = '-', n = -n;
    do digits[count++] = (char)('0' + n % 10);
    while (n /= 10);
    while (count) *out++ = digits[--count];
}

static void generate(int depth, uint32_t *random) {
    uint32_t r = next_random(random) >> 8, count = 2 + r / 8 % 7;
    switch (depth ? r % 8 : 0) {
    case 0: put("null"); break;
    case 1: put(r & 64 ? "true" : "false"); break;
    case 2: put_number((int32_t)next_random(random)); break;
    case 3: put(r & 64 ? "\"caf\\u00e9 \\\"quoted\\\"\"" : "\"plain text, a little longer\""); break;
    default:
        *out++ = r & 1 ? '[' : '{';
        for (uint32_t i = 0; i < count; i++) {
            char word[8];
            if (i) *out++ = ',';
            if (!(r & 1)) put_quoted(word, spell(draw(random), word)), *out++ = ':';
            generate(depth - 1, random);
        }
        *out++ = r & 1 ? ']' : '}';
    }
}

static void skip_space(void) {
    while (*in == ' ' || *in == '\n' || *in == '\t' || *in == '\r') in++;
}

static void expect(const char *word) {
    while (*word)
        if (*in++ != *word++) abort();
}

/* Moves behind the closing quote; the length of what is between. */
static uint32_t parse_string(const char **start) {
    expect("\"");
    *start = in;
    for (; *in != '"'; in++)
        if ((uint8_t)*in < ' ' || (*in == '\\' && !*++in)) abort();
    return (uint32_t)(in++ - *start);
}

static int64_t parse_number(void) {
    int negative = *in == '-';
    int64_t n = 0;
    in += negative;
    if (*in < '0' || *in > '9') abort();
    while (*in >= '0' && *in <= '9') n = n * 10 + (*in++ - '0');
    return negative ? -n : n;
}

static struct node *parse_value(void);

/* The elements up to the closing bracket, as a list. */
static struct node *parse_elements(char close) {
    struct node *head = NULL, **tail = &head;
    for (in++, skip_space(); *in != close; skip_space()) {
        const char *key = NULL;
        if (head) expect(","), skip_space();
        if (close == '}') parse_string(&key), skip_space(), expect(":");
        *tail = parse_value();
        (*tail)->key = key, tail = &(*tail)->next;
    }
    in++;
    return head;
}

static struct node *parse_value(void) {
    if (used == NODES) abort();
    struct node *node = &nodes[used++];
    node->next = NULL;
    skip_space();
    switch (*in) {
    case 'n': node->kind = NIL, expect("null"); break;
    case 'f': node->kind = FALSE, expect("false"); break;
    case 't': node->kind = TRUE, expect("true"); break;
    case '"': node->kind = STRING, node->length = parse_string(&node->string); break;
    case '[': node->kind = ARRAY, node->child = parse_elements(']'); break;
    case '{': node->kind = OBJECT, node->child = parse_elements('}'); break;
    default: node->kind = NUMBER, node->number = parse_number();
    }
    return node;
}

static void print(const struct node *node) {
    switch (node->kind) {
    case NIL: put("null"); return;
    case FALSE: put("false"); return;
    case TRUE: put("true"); return;
    case NUMBER: put_number(node->number); return;
    case STRING: put_quoted(node->string, node->length); return;
    default: break;
    }
    *out++ = node->kind == ARRAY ? '[' : '{';
    for (const struct node *child = node->child; child; child = child->next) {
        if (child != node->child) *out++ = ',';
        if (child->key) {
            const char *end = child->key;
            while (*end != '"') end += *end == '\\' ? 2 : 1;
            put_quoted(child->key, (size_t)(end - child->key)), *out++ = ':';
        }
        print(child);
    }
    *out++ = node->kind == ARRAY ? ']' : '}';
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 3200), random = 521288629;
    out = document;
    *out++ = '[';
    while (out < document + SIZE / 4) generate(6, &random), *out++ = ',';
    put("0]");
    size_t length = (size_t)(out - document);
    uint64_t values = 0;
    for (uint32_t i = 0; i < times; i++) {
        used = 0, in = document, out = printed;
        print(parse_value());
        if ((size_t)(out - printed) != length || memcmp(document, printed, length)) abort();
        values += used;
    }
    text("json "), decimal(times), text(": "), decimal(length), text(" bytes, "), decimal(values), text(" values, ");
    number(digest(printed, length), 16, 8);
    return finish();
}
