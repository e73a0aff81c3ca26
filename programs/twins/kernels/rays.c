/* Shoots rays at 24 spheres: dot products, square roots, branches that depend on floats. */
#include "kernel.h"

enum { SPHERES = 24 };

typedef struct {
    float x, y, z;
} Vector;

typedef struct {
    Vector centre;
    float radius, shade;
} Sphere;

static Sphere spheres[SPHERES];

static float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static Vector minus(Vector a, Vector b) { return (Vector){a.x - b.x, a.y - b.y, a.z - b.z}; }
static Vector along(Vector from, Vector direction, float t) {
    return (Vector){from.x + t * direction.x, from.y + t * direction.y, from.z + t * direction.z};
}

static float brightness(Vector from, Vector direction, int depth) {
    float nearest = 1e30f;
    const Sphere *hit = NULL;
    for (int i = 0; i < SPHERES; i++) {
        Vector to = minus(spheres[i].centre, from);
        float middle = dot(to, direction);
        float square = spheres[i].radius * spheres[i].radius - (dot(to, to) - middle * middle);
        if (middle <= 0 || square <= 0) continue;
        float t = middle - __builtin_sqrtf(square);
        if (t > 1e-3f && t < nearest) {
            nearest = t;
            hit = &spheres[i];
        }
    }
    if (!hit) return direction.y > 0 ? direction.y : 0.1f;
    if (depth == 3) return hit->shade;
    Vector at = along(from, direction, nearest), normal = minus(at, hit->centre);
    float scale = 1 / hit->radius;
    normal = (Vector){normal.x * scale, normal.y * scale, normal.z * scale};
    Vector mirrored = along(direction, normal, -2 * dot(direction, normal));
    return 0.4f * hit->shade + 0.6f * brightness(at, mirrored, depth + 1);
}

int main(int argc, char **argv) {
    uint32_t size = argument(argc, argv, 3000), state = 23;
    for (int i = 0; i < SPHERES; i++) {
        float x = (float)(next_random(&state) % 800) / 100 - 4, y = (float)(next_random(&state) % 600) / 100 - 3;
        float z = 6 + (float)(next_random(&state) % 800) / 100;
        spheres[i] = (Sphere){{x, y, z}, 0.3f + (float)(next_random(&state) % 100) / 100, (float)(i % 7) / 7};
    }
    double sum = 0;
    for (uint32_t row = 0; row < size; row++)
        for (uint32_t column = 0; column < size; column++) {
            Vector direction = {(float)column / size - 0.5f, 0.5f - (float)row / size, 1};
            float scale = 1 / __builtin_sqrtf(dot(direction, direction));
            direction = (Vector){direction.x * scale, direction.y * scale, direction.z * scale};
            sum += brightness((Vector){0, 0, 0}, direction, 0);
        }
    fixed(sum);
    return finish();
}
