/* A first-fit allocator with boundary tags over one array (Knuth, TAOCP 2.5), kept busy: blocks of random sizes are
   allocated, filled and freed as many times as the argument says. */
#include "../kernel.h"

enum { WORDS = 1 << 16, LIVE = 512 };

/* A block is its size in words, tags included, with the low bit set while it is in use; what it holds; the size again. A
   free block holds its neighbours in the ring of free blocks. Sizes are even, so the low bit is free. */
static uint32_t heap[WORDS];
enum { SIZE = 0, NEXT = 1, PREVIOUS = 2, SMALLEST = 4 };
static uint32_t ring; /* some free block, or 0 if there is none */

static void tag(uint32_t block, uint32_t size, uint32_t in_use) {
    heap[block + SIZE] = heap[block + size - 1] = size | in_use;
}

static void link_free(uint32_t block) {
    if (!ring) heap[block + NEXT] = heap[block + PREVIOUS] = ring = block;
    uint32_t previous = heap[ring + PREVIOUS];
    heap[block + NEXT] = ring, heap[block + PREVIOUS] = previous;
    heap[previous + NEXT] = heap[ring + PREVIOUS] = block;
}

static void unlink_free(uint32_t block) {
    uint32_t next = heap[block + NEXT], previous = heap[block + PREVIOUS];
    heap[previous + NEXT] = next, heap[next + PREVIOUS] = previous;
    if (ring == block) ring = next == block ? 0 : next;
}

/* A block that holds so many words, or 0. The search goes on where the last one ended. */
static uint32_t allocate(uint32_t words) {
    uint32_t size = (words + 3) & ~1u, block = ring;
    if (size < SMALLEST) size = SMALLEST;
    if (!block) return 0;
    while (heap[block + SIZE] < size)
        if ((block = heap[block + NEXT]) == ring) return 0;
    uint32_t rest = heap[block + SIZE] - size;
    ring = heap[block + NEXT];
    unlink_free(block);
    if (rest < SMALLEST) size += rest;
    else tag(block + size, rest, 0), link_free(block + size);
    tag(block, size, 1);
    return block;
}

/* Joins the block with free neighbours. The words at both ends of the heap count as blocks in use. */
static void release(uint32_t block) {
    uint32_t size = heap[block + SIZE] & ~1u, after = block + size, before = heap[block - 1];
    if (!(heap[after + SIZE] & 1)) unlink_free(after), size += heap[after + SIZE];
    if (!(before & 1)) block -= before, unlink_free(block), size += before;
    tag(block, size, 0);
    link_free(block);
}

int main(int argc, char **argv) {
    static uint32_t live[LIVE], fill[LIVE];
    uint32_t times = argument(argc, argv, 10000000), random = 123456789, failed = 0;
    uint64_t sum = 0;
    heap[1] = heap[WORDS - 2] = 1;
    tag(2, WORDS - 4, 0), link_free(2);
    for (uint32_t i = 0; i < times; i++) {
        uint32_t r = next_random(&random), slot = r % LIVE, words = 1 + (r >> 12) % (r & 0xc00 ? 40 : 400);
        uint32_t block = live[slot];
        if (block) {
            if (heap[block + 1] != fill[slot]) abort();
            release(block);
        }
        live[slot] = block = allocate(words);
        failed += !block;
        sum += block;
        if (block) fill[slot] = heap[block + 1] = heap[block + words] = r;
        if (block && words == 1) fill[slot] = r;
    }
    text("freelist "), decimal(times), text(": "), decimal(sum), text(" "), decimal(failed), text(" failed");
    return finish();
}
