/* Gravitation among 64 bodies, kept as structures of arrays: all pairs, then one step in time. */
#include "kernel.h"

enum { BODIES = 64 };

static double x[BODIES], y[BODIES], z[BODIES], vx[BODIES], vy[BODIES], vz[BODIES], mass[BODIES];

static void advance(double dt) {
    for (int i = 0; i < BODIES; i++) {
        double ax = 0, ay = 0, az = 0;
        for (int j = 0; j < BODIES; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            double square = dx * dx + dy * dy + dz * dz + 0.01;
            double pull = mass[j] / (square * __builtin_sqrt(square));
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        vx[i] += dt * ax;
        vy[i] += dt * ay;
        vz[i] += dt * az;
    }
    for (int i = 0; i < BODIES; i++) {
        x[i] += dt * vx[i];
        y[i] += dt * vy[i];
        z[i] += dt * vz[i];
    }
}

int main(int argc, char **argv) {
    uint32_t steps = argument(argc, argv, 54000), state = 13;
    for (int i = 0; i < BODIES; i++) {
        x[i] = (double)(next_random(&state) % 1000) / 500 - 1;
        y[i] = (double)(next_random(&state) % 1000) / 500 - 1;
        z[i] = (double)(next_random(&state) % 1000) / 500 - 1;
        mass[i] = (double)(1 + next_random(&state) % 100) / 3200;
    }
    for (uint32_t step = 0; step < steps; step++) advance(0.0001);
    double energy = 0;
    for (int i = 0; i < BODIES; i++) energy += mass[i] * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]);
    fixed(energy);
    return finish();
}
