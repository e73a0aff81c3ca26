/* Prepares a mesh for drawing: order for the cache of vertices, overdraw, simplification, and compression of its buffers. */
#include "driver.h"
#include "meshoptimizer.h"

enum { SIDE = 120, VERTICES = SIDE * SIDE, INDICES = (SIDE - 1) * (SIDE - 1) * 6 };

struct Vertex {
    float x, y, z;
    uint32_t normal;
};

static Vertex vertices[VERTICES], ordered[VERTICES];
static unsigned indices[INDICES], better[INDICES], simple[INDICES];
static unsigned char packed[1 << 20];

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1), state = 7;
    for (int i = 0; i < VERTICES; i++) {
        int x = i % SIDE, y = i / SIDE;
        /* Heights in eighths, so that no sum of them is rounded. */
        vertices[i] = {(float)x, (float)y, (float)((x * x / 9 + y * y / 7) % 40 + (int)(next_random(&state) % 3)) / 8, next_random(&state)};
    }
    unsigned *to = indices;
    for (unsigned y = 0; y + 1 < SIDE; y++)
        for (unsigned x = 0; x + 1 < SIDE; x++) {
            unsigned at = y * SIDE + x, quad[6] = {at, at + 1, at + SIDE, at + 1, at + SIDE + 1, at + SIDE};
            for (unsigned index : quad) *to++ = index;
        }
    uint64_t seal = 0;
    size_t total = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 1000; i++) {
            unsigned a = next_random(&state) % (INDICES / 3) * 3, b = next_random(&state) % (INDICES / 3) * 3;
            for (int j = 0; j < 3; j++) {
                unsigned index = indices[a + j];
                indices[a + j] = indices[b + j];
                indices[b + j] = index;
            }
        }
        meshopt_optimizeVertexCache(better, indices, INDICES, VERTICES);
        meshopt_optimizeOverdraw(better, better, INDICES, &vertices[0].x, VERTICES, sizeof(Vertex), 1.05f);
        meshopt_optimizeVertexFetch(ordered, better, INDICES, vertices, VERTICES, sizeof(Vertex));
        size_t left = meshopt_simplify(simple, better, INDICES, &ordered[0].x, VERTICES, sizeof(Vertex), INDICES / 4, 1.0f, 0, nullptr);
        size_t size = meshopt_encodeIndexBuffer(packed, sizeof packed, better, INDICES);
        REQUIRE(size && !meshopt_decodeIndexBuffer(indices, INDICES, 4, packed, size));
        seal = hash(packed, size, seal + left);
        size = meshopt_encodeVertexBuffer(packed, sizeof packed, ordered, VERTICES, sizeof(Vertex));
        REQUIRE(size && !meshopt_decodeVertexBuffer(vertices, VERTICES, sizeof(Vertex), packed, size));
        REQUIRE(!memcmp(vertices, ordered, sizeof vertices));
        seal = hash(packed, size, hash(simple, left * sizeof *simple, seal));
        total += size + left;
    }
    printf("%zu %016llx\n", total, (unsigned long long)seal);
    return 0;
}
