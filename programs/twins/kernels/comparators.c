/* Sorts records by merging, with a comparison that is passed as a pointer: six of them, in turn. */
#include "kernel.h"

enum { N = 20000 };

typedef struct {
    uint32_t key, order;
    float weight;
    char name[12];
} Record;

typedef int Compare(const Record *a, const Record *b);

static Record records[N];
static Record *sorted[N], *scratch[N];

static int by_key(const Record *a, const Record *b) { return a->key < b->key ? -1 : a->key > b->key; }
static int by_weight(const Record *a, const Record *b) { return a->weight < b->weight ? -1 : a->weight > b->weight; }
static int by_name(const Record *a, const Record *b) { return strcmp(a->name, b->name); }
static int by_order(const Record *a, const Record *b) { return a->order < b->order ? -1 : a->order > b->order; }
static int by_low_bits(const Record *a, const Record *b) { return (int)(a->key & 0xffff) - (int)(b->key & 0xffff); }
static int by_key_down(const Record *a, const Record *b) { return by_key(b, a); }

static Compare *const comparisons[] = {by_key, by_weight, by_name, by_order, by_low_bits, by_key_down};

__attribute__((noinline)) static void sort(Record **from, Record **to, int count, Compare *compare) {
    if (count < 2) return;
    int half = count / 2;
    sort(to, from, half, compare);
    sort(to + half, from + half, count - half, compare);
    for (int i = 0, left = 0, right = half; i < count; i++) {
        int take_left = right == count || (left < half && compare(from[left], from[right]) <= 0);
        to[i] = from[take_left ? left++ : right++];
    }
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 410), state = 83, sum = 0;
    for (int i = 0; i < N; i++) {
        records[i].key = next_random(&state);
        records[i].order = (uint32_t)i;
        records[i].weight = (float)(next_random(&state) % 100000) / 7;
        for (int j = 0; j < 8; j++) records[i].name[j] = 'a' + next_random(&state) % 4;
    }
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++) sorted[i] = scratch[i] = &records[(i * 7919 + (int)round) % N];
        sort(scratch, sorted, N, comparisons[round % 6]);
        sum = sum * 31 + sorted[round * 37 % N]->order;
    }
    number(sum, 16, 8);
    return finish();
}
