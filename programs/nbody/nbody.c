/* The sun and the four outer planets, advanced by a symplectic integrator for as many steps of 1/100 year as the argument
   says; prints the total energy, which should hardly change. Units: astronomical unit, year, G·(mass of the sun) = 4π². */
#include "../kernel.h"
#include <math.h>

enum { BODIES = 5 };

struct body {
    double x[3], v[3], mass;
};

#define PI 3.141592653589793
#define SOLAR_MASS (4 * PI * PI)
#define DAYS 365.24

/* Positions and velocities per day of Jupiter, Saturn, Uranus and Neptune, masses in suns. */
static struct body bodies[BODIES] = {
    {{0}, {0}, 1},
    {{4.84143144246472090, -1.16032004402742839, -0.103622044471123109},
     {0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023}, 0.000954791938424326609},
    {{8.34336671824457987, 4.12479856412430479, -0.403523417114321381},
     {-0.00276742510726411, 0.00499852801234917, 0.0000230417297573763929}, 0.000285885980666130812},
    {{12.8943695621391310, -15.1111514016986312, -0.223307578892655734},
     {0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556}, 0.0000436624404335156298},
    {{15.3796971148509165, -25.9193146099879641, 0.179258772950371181},
     {0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870}, 0.0000515138902046611451},
};

/* Scales the units and takes the drift out of the whole. */
static void prepare(void) {
    double momentum[3] = {0};
    for (int i = 0; i < BODIES; i++) {
        bodies[i].mass *= SOLAR_MASS;
        for (int d = 0; d < 3; d++) {
            bodies[i].v[d] *= DAYS;
            momentum[d] += bodies[i].v[d] * bodies[i].mass;
        }
    }
    for (int d = 0; d < 3; d++) bodies[0].v[d] = -momentum[d] / SOLAR_MASS;
}

static double energy(void) {
    double e = 0;
    for (int i = 0; i < BODIES; i++) {
        const struct body *a = &bodies[i];
        e += 0.5 * a->mass * (a->v[0] * a->v[0] + a->v[1] * a->v[1] + a->v[2] * a->v[2]);
        for (int j = i + 1; j < BODIES; j++) {
            const struct body *b = &bodies[j];
            double dx = a->x[0] - b->x[0], dy = a->x[1] - b->x[1], dz = a->x[2] - b->x[2];
            e -= a->mass * b->mass / sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return e;
}

static void advance(double dt) {
    for (int i = 0; i < BODIES; i++) {
        struct body *a = &bodies[i];
        for (int j = i + 1; j < BODIES; j++) {
            struct body *b = &bodies[j];
            double dx = a->x[0] - b->x[0], dy = a->x[1] - b->x[1], dz = a->x[2] - b->x[2];
            double square = dx * dx + dy * dy + dz * dz;
            double pull = dt / (square * sqrt(square));
            a->v[0] -= dx * b->mass * pull, a->v[1] -= dy * b->mass * pull, a->v[2] -= dz * b->mass * pull;
            b->v[0] += dx * a->mass * pull, b->v[1] += dy * a->mass * pull, b->v[2] += dz * a->mass * pull;
        }
    }
    for (int i = 0; i < BODIES; i++)
        for (int d = 0; d < 3; d++) bodies[i].x[d] += dt * bodies[i].v[d];
}

int main(int argc, char **argv) {
    uint32_t steps = argument(argc, argv, 10000000);
    prepare();
    for (uint32_t i = 0; i < steps; i++) advance(0.01);
    text("nbody "), decimal(steps), text(": "), fixed(energy());
    return finish();
}
