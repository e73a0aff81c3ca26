/* The shortest paths between all pairs of as many nodes as its argument says (Floyd, CACM 1962). */
#include "../kernel.h"

enum { FAR = 1 << 28 };

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 800), random = 2545678901u;
    int32_t *distance = malloc((size_t)n * n * sizeof *distance);
    if (!distance) return 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            uint32_t r = next_random(&random);
            distance[i * n + j] = i == j ? 0 : r % 8 ? FAR : (int32_t)(1 + (r >> 8) % 1000);
        }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                int32_t through = distance[i * n + k] + distance[k * n + j];
                if (through < distance[i * n + j]) distance[i * n + j] = through;
            }
    uint64_t sum = 0;
    int32_t longest = 0;
    for (uint32_t i = 0; i < n * n; i++) {
        sum += (uint32_t)distance[i];
        if (distance[i] < FAR && distance[i] > longest) longest = distance[i];
    }
    text("floyd-warshall "), decimal(n), text(": "), decimal(sum), text(" "), decimal((uint32_t)longest);
    free(distance);
    return finish();
}
