/* Simulates a network of 64 nodes: a heap of events, and a handler for each kind of event, from a table. */
#include "kernel.h"

enum { NODES = 64, CAPACITY = 4096, KINDS = 12 };

typedef struct {
    uint32_t time, kind, node, data;
} Event;

typedef struct {
    uint32_t queue, received, sent, dropped, credit, checksum;
} Node;

static Event heap[CAPACITY];
static uint32_t pending, state = 89;
static Node nodes[NODES];

static void schedule(uint32_t time, uint32_t kind, uint32_t node, uint32_t data) {
    if (pending == CAPACITY) return;
    uint32_t at = pending++;
    for (; at && heap[(at - 1) / 2].time > time; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = (Event){time, kind, node, data};
}

static Event first(void) {
    Event result = heap[0], last = heap[--pending];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < pending; at = child) {
        if (child + 1 < pending && heap[child + 1].time < heap[child].time) child++;
        if (heap[child].time >= last.time) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return result;
}

typedef void Handler(const Event *event, Node *node);

static void arrive(const Event *e, Node *n) { n->queue < 16 ? (void)n->queue++ : (void)n->dropped++; schedule(e->time + 3, 1, e->node, e->data); }
static void serve(const Event *e, Node *n) {
    if (n->queue) n->queue--;
    n->received++;
    schedule(e->time + 2, 2 + (e->data & 3), e->node, e->data);
}
static void forward(const Event *e, Node *n) { n->sent++; schedule(e->time + 5, 0, (e->node * 5 + 1) % NODES, e->data * 3 + 1); }
static void reply(const Event *e, Node *n) { n->sent++; schedule(e->time + 7, 0, (e->node + NODES - 7) % NODES, e->data >> 1 | e->data << 31); }
static void split(const Event *e, Node *n) {
    n->checksum += e->data;
    schedule(e->time + 4, 6, (e->node + 9) % NODES, e->data);
    if (pending < 512) schedule(e->time + 4, 7, (e->node + 11) % NODES, ~e->data);
}
static void audit(const Event *e, Node *n) { n->checksum ^= n->received * 31 + n->sent; schedule(e->time + 1, 8, e->node, e->data + n->checksum); }
static void credit(const Event *e, Node *n) { n->credit += e->data & 15; schedule(e->time + 6, 9, e->node, e->data); }
static void spend(const Event *e, Node *n) { n->credit -= n->credit > 3 ? 3 : 0; schedule(e->time + 6, 0, e->node, e->data + 7); }
static void hash(const Event *e, Node *n) { n->checksum = (n->checksum ^ e->data) * 16777619; schedule(e->time + 2, 10, e->node, e->data ^ n->checksum >> 9); }
static void settle(const Event *e, Node *n) { n->queue = n->queue > 2 ? n->queue - 2 : 0; schedule(e->time + 3, 11, e->node, e->data); }
static void spread(const Event *e, Node *n) { n->sent++; schedule(e->time + 1 + e->data % 13, 0, e->data % NODES, e->data * 5 + 3); }
static void rest(const Event *e, Node *n) { n->credit++; schedule(e->time + 9, e->data % 5, (e->node + 1) % NODES, e->data * 9 + 5); }

static Handler *const handlers[KINDS] = {arrive, serve, forward, reply, split, audit, credit, spend, hash, settle, spread, rest};

int main(int argc, char **argv) {
    uint32_t count = argument(argc, argv, 18000000), sum = 0;
    for (uint32_t i = 0; i < 256; i++) schedule(next_random(&state) % 100, next_random(&state) % KINDS, i % NODES, next_random(&state));
    for (uint32_t i = 0; i < count && pending; i++) {
        Event event = first();
        handlers[event.kind](&event, &nodes[event.node]);
    }
    for (int i = 0; i < NODES; i++) sum = sum * 31 + nodes[i].checksum + nodes[i].received + nodes[i].sent + nodes[i].dropped + nodes[i].credit;
    number(sum, 16, 8);
    return finish();
}
