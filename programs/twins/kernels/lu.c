/* LU factorisation of a matrix of 200 × 200 doubles with partial pivoting; rows are reached through pointers. */
#include "kernel.h"

enum { N = 200 };

static double storage[N][N];
static double *rows[N];

static double determinant(void) {
    double product = 1;
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int i = k + 1; i < N; i++)
            if (__builtin_fabs(rows[i][k]) > __builtin_fabs(rows[pivot][k])) pivot = i;
        if (pivot != k) {
            double *row = rows[k];
            rows[k] = rows[pivot];
            rows[pivot] = row;
            product = -product;
        }
        const double *upper = rows[k];
        product *= upper[k] / 8;
        for (int i = k + 1; i < N; i++) {
            double *row = rows[i];
            double factor = row[k] /= upper[k];
            for (int j = k + 1; j < N; j++) row[j] -= factor * upper[j];
        }
    }
    return product;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1500), state = 3;
    double sum = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++) {
            rows[i] = storage[i];
            for (int j = 0; j < N; j++) rows[i][j] = (double)(next_random(&state) % 2000) / 1000 - 1;
        }
        double found = determinant();
        sum += found > 0 ? 1 : 0;
        sum += __builtin_fabs(found) < 1e-6 ? 0 : 1000;
    }
    for (int i = 0; i < N; i++) sum += rows[i][i];
    fixed(sum);
    return finish();
}
