/* The product of two n × n matrices of floats in vectors of four, two rows and eight columns at a time; n is a multiple of
   8. Prints its trace. */
#include "../kernel.h"

typedef float f32x4 __attribute__((vector_size(16)));

static f32x4 *matrix(uint32_t n) {
    f32x4 *m = aligned_alloc(16, (size_t)n * n * sizeof(float));
    if (!m) abort();
    return m;
}

static void multiply(const float *a, const f32x4 *b, f32x4 *c, uint32_t n) {
    uint32_t width = n / 4; /* of a row in vectors */
    for (uint32_t i = 0; i < n; i += 2)
        for (uint32_t j = 0; j < width; j += 2) {
            f32x4 sum[4] = {0};
            for (uint32_t k = 0; k < n; k++) {
                f32x4 upper = {a[i * n + k], a[i * n + k], a[i * n + k], a[i * n + k]};
                f32x4 lower = {a[(i + 1) * n + k], a[(i + 1) * n + k], a[(i + 1) * n + k], a[(i + 1) * n + k]};
                f32x4 left = b[k * width + j], right = b[k * width + j + 1];
                sum[0] += upper * left, sum[1] += upper * right, sum[2] += lower * left, sum[3] += lower * right;
            }
            c[i * width + j] = sum[0], c[i * width + j + 1] = sum[1];
            c[(i + 1) * width + j] = sum[2], c[(i + 1) * width + j + 1] = sum[3];
        }
}

int main(int argc, char **argv) {
    uint32_t n = (argument(argc, argv, 800) + 7) & ~7u, random = 7;
    f32x4 *a = matrix(n), *b = matrix(n), *c = matrix(n);
    double trace = 0;
    for (uint32_t i = 0; i < n * n; i++) {
        ((float *)a)[i] = (float)(next_random(&random) >> 8) * 0x1p-24f - 0.5f;
        ((float *)b)[i] = (float)(next_random(&random) >> 8) * 0x1p-24f - 0.5f;
    }
    multiply((const float *)a, b, c, n);
    for (uint32_t i = 0; i < n; i++) trace += (double)((float *)c)[i * n + i];
    text("matmul-simd "), decimal(n), text(": "), fixed(trace);
    return finish();
}
