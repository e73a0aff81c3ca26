/* Paints a picture in the terminal: a path tracer with shapes and materials behind function pointers, two pixels to the
 * character cell. The same arguments give the same picture, to the bit.
 *
 *     picture [WIDTH [HEIGHT [SAMPLES [colour|plain]]]]
 *
 * HEIGHT is in pixels; SAMPLES is paths per pixel. `colour` is 24-bit ANSI, `plain` is ASCII; without either it is colour
 * when the output is a terminal and NO_COLOR is not set. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BOUNCES = 8, MAX_SIZE = 2000, MAX_SAMPLES = 100000 };

static const double PI = 3.141592653589793;
static const double FAR = 1e30;
static const double NEAR = 1e-6;
static const double HAZE = 0.006; /* how much of what is a unit away the air hides */

/* Vectors, also used as colours in linear RGB. */

typedef struct {
    double x, y, z;
} vec;

static vec make(double x, double y, double z) { return (vec){x, y, z}; }
static vec add(vec a, vec b) { return make(a.x + b.x, a.y + b.y, a.z + b.z); }
static vec sub(vec a, vec b) { return make(a.x - b.x, a.y - b.y, a.z - b.z); }
static vec mul(vec a, vec b) { return make(a.x * b.x, a.y * b.y, a.z * b.z); }
static vec scale(vec a, double s) { return make(a.x * s, a.y * s, a.z * s); }
static double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec cross(vec a, vec b) { return make(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
static vec normalize(vec a) { return scale(a, 1 / sqrt(dot(a, a))); }
static vec reflect(vec d, vec normal) { return sub(d, scale(normal, 2 * dot(d, normal))); }
static vec mix(vec a, vec b, double t) { return add(scale(a, 1 - t), scale(b, t)); }

/* Random numbers: a 64-bit linear congruential generator, its output permuted (O'Neill's PCG-XSH-RR). */

static uint64_t random_state;

static uint32_t random_bits(void) {
    uint64_t old = random_state;
    random_state = old * 6364136223846793005u + 1442695040888963407u;
    uint32_t folded = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return folded >> turn | folded << (-turn & 31);
}

static double random_unit(void) { return random_bits() * 0x1p-32; }

static vec random_direction(void) {
    double z = 2 * random_unit() - 1, angle = 2 * PI * random_unit(), r = sqrt(1 - z * z);
    return make(r * cos(angle), r * sin(angle), z);
}

/* Noise: random values at the points of a grid, smoothly interpolated; octaves of it make marble and clouds. */

static double lattice(int x, int y, int z) {
    uint32_t h = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u ^ (uint32_t)z * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return (h ^ h >> 15) * 0x1p-32;
}

static double smooth(double t) { return t * t * (3 - 2 * t); }
static double between(double a, double b, double t) { return a + (b - a) * t; }

static double noise(vec p) {
    double fx = floor(p.x), fy = floor(p.y), fz = floor(p.z);
    int x = (int)fx, y = (int)fy, z = (int)fz;
    double tx = smooth(p.x - fx), ty = smooth(p.y - fy), tz = smooth(p.z - fz);
    double near = between(between(lattice(x, y, z), lattice(x + 1, y, z), tx),
                          between(lattice(x, y + 1, z), lattice(x + 1, y + 1, z), tx), ty);
    double far = between(between(lattice(x, y, z + 1), lattice(x + 1, y, z + 1), tx),
                         between(lattice(x, y + 1, z + 1), lattice(x + 1, y + 1, z + 1), tx), ty);
    return between(near, far, tz);
}

static double turbulence(vec p, int octaves) {
    double sum = 0, weight = 0.5;
    for (int i = 0; i < octaves; i++, weight *= 0.5) {
        sum += weight * noise(p);
        p = scale(p, 2.03);
    }
    return sum;
}

/* The scene. A shape answers where a ray meets it first and what the normal is there; a material, where the ray goes on
 * and with what colour. */

typedef struct {
    vec origin, direction;
} ray;

struct object;

typedef double intersect_fn(const struct object *, ray);
typedef vec normal_fn(const struct object *, vec point);

/* What a material does with a ray. A diffuse surface is lit by the sun directly; any other passes its ray on. */
typedef struct {
    vec colour, direction;
    int diffuse;
} bounce;

typedef bounce scatter_fn(const struct object *, vec point, vec normal, vec incoming);

struct object {
    intersect_fn *intersect;
    normal_fn *normal;
    scatter_fn *scatter;
    vec center, colour;
    double size, thickness; /* the radius, and the radius of a torus's tube */
};

static double intersect_sphere(const struct object *o, ray r) {
    vec to_center = sub(o->center, r.origin);
    double middle = dot(to_center, r.direction);
    double half_square = o->size * o->size - dot(to_center, to_center) + middle * middle;
    if (half_square <= 0) return FAR;
    double half = sqrt(half_square);
    if (middle - half > NEAR) return middle - half;
    return middle + half > NEAR ? middle + half : FAR;
}

static vec normal_of_sphere(const struct object *o, vec p) { return scale(sub(p, o->center), 1 / o->size); }

static double intersect_floor(const struct object *o, ray r) {
    double t = (o->center.y - r.origin.y) / r.direction.y;
    return t > NEAR ? t : FAR;
}

static vec normal_of_floor(const struct object *o, vec p) {
    (void)o, (void)p;
    return make(0, 1, 0);
}

/* The torus stands upright and faces the camera, turned a little about the vertical. */
static vec torus_space(const struct object *o, vec p) {
    vec q = sub(p, o->center);
    return make(0.8 * q.x + 0.6 * q.z, q.y, 0.8 * q.z - 0.6 * q.x);
}

static double torus_distance(const struct object *o, vec p) {
    vec q = torus_space(o, p);
    double ring = sqrt(q.x * q.x + q.y * q.y) - o->size;
    return sqrt(ring * ring + q.z * q.z) - o->thickness;
}

/* Marches along the ray by what is certainly free, within the sphere around the torus. */
static double intersect_torus(const struct object *o, ray r) {
    double reach = o->size + o->thickness, middle = dot(sub(o->center, r.origin), r.direction);
    vec closest = sub(add(r.origin, scale(r.direction, middle)), o->center);
    double half_square = reach * reach - dot(closest, closest);
    if (half_square <= 0) return FAR;
    double end = middle + sqrt(half_square), t = middle - sqrt(half_square);
    if (t < 1e-3) t = 1e-3;
    while (t < end) {
        double d = torus_distance(o, add(r.origin, scale(r.direction, t)));
        if (d < 1e-4) return t;
        t += d;
    }
    return FAR;
}

static vec normal_of_torus(const struct object *o, vec p) {
    const double e = 1e-4;
    return normalize(make(torus_distance(o, make(p.x + e, p.y, p.z)) - torus_distance(o, make(p.x - e, p.y, p.z)),
                          torus_distance(o, make(p.x, p.y + e, p.z)) - torus_distance(o, make(p.x, p.y - e, p.z)),
                          torus_distance(o, make(p.x, p.y, p.z + e)) - torus_distance(o, make(p.x, p.y, p.z - e))));
}

/* How much a dielectric reflects at this angle, by Schlick's approximation. */
static double reflectance(double cosine, double at_right_angle) {
    return at_right_angle + (1 - at_right_angle) * pow(1 - cosine, 5);
}

static bounce scatter_diffuse(vec colour, vec normal) {
    return (bounce){colour, normalize(add(normal, scale(random_direction(), 0.999))), 1};
}

static bounce scatter_matte(const struct object *o, vec p, vec normal, vec incoming) {
    (void)p, (void)incoming;
    return scatter_diffuse(o->colour, normal);
}

static bounce scatter_lacquer(const struct object *o, vec p, vec normal, vec incoming) {
    if (random_unit() < reflectance(-dot(incoming, normal), 0.05))
        return (bounce){make(1, 1, 1), reflect(incoming, normal), 0};
    return scatter_matte(o, p, normal, incoming);
}

static bounce scatter_metal(const struct object *o, vec p, vec normal, vec incoming) {
    (void)p;
    vec direction = add(reflect(incoming, normal), scale(random_direction(), 0.04));
    if (dot(direction, normal) <= 0) direction = reflect(incoming, normal);
    return (bounce){o->colour, normalize(direction), 0};
}

static bounce scatter_marble(const struct object *o, vec p, vec normal, vec incoming) {
    double vein = sin(5 * p.x + 9 * p.y + 16 * turbulence(scale(p, 2.2), 5));
    struct object painted = *o;
    painted.colour = mix(make(0.07, 0.13, 0.19), o->colour, pow(0.5 + 0.5 * vein, 0.6));
    return scatter_lacquer(&painted, p, normal, incoming);
}

static bounce scatter_glass(const struct object *o, vec p, vec normal, vec incoming) {
    (void)p;
    double cosine = -dot(incoming, normal), ratio = 1 / 1.5;
    if (cosine < 0) normal = scale(normal, -1), cosine = -cosine, ratio = 1.5;
    double refracted_square = 1 - ratio * ratio * (1 - cosine * cosine);
    double outer_cosine = ratio > 1 && refracted_square > 0 ? sqrt(refracted_square) : cosine;
    if (refracted_square <= 0 || random_unit() < reflectance(outer_cosine, 0.04))
        return (bounce){make(1, 1, 1), reflect(incoming, normal), 0};
    vec direction = add(scale(incoming, ratio), scale(normal, ratio * cosine - sqrt(refracted_square)));
    return (bounce){o->colour, normalize(direction), 0};
}

static bounce scatter_tiles(const struct object *o, vec p, vec normal, vec incoming) {
    int white = ((int)floor(p.x * 0.8) + (int)floor(p.z * 0.8)) & 1;
    double worn = 0.75 + 0.5 * turbulence(scale(p, 3), 3);
    struct object painted = *o;
    painted.colour = scale(white ? make(0.60, 0.57, 0.52) : o->colour, worn);
    return scatter_lacquer(&painted, p, normal, incoming);
}

#define SPHERE intersect_sphere, normal_of_sphere
#define TORUS intersect_torus, normal_of_torus
#define FLOOR intersect_floor, normal_of_floor

static const struct object objects[] = {
    {FLOOR, scatter_tiles, {0, 0, 0}, {0.05, 0.09, 0.14}, 0, 0},
    {SPHERE, scatter_metal, {1.75, 1.1, 0.7}, {0.95, 0.93, 0.90}, 1.1, 0},
    {SPHERE, scatter_glass, {-0.25, 0.8, -1.3}, {0.97, 1.0, 0.98}, 0.8, 0},
    {SPHERE, scatter_marble, {-2.2, 1.25, 0.9}, {0.93, 0.90, 0.84}, 1.25, 0},
    {TORUS, scatter_metal, {0.05, 1.0, 2.6}, {1.0, 0.72, 0.28}, 0.75, 0.25},
    {SPHERE, scatter_lacquer, {-1.55, 0.35, -1.6}, {0.85, 0.10, 0.08}, 0.35, 0},
    {SPHERE, scatter_lacquer, {1.05, 0.30, -1.75}, {0.05, 0.45, 0.30}, 0.30, 0},
    {SPHERE, scatter_matte, {2.35, 0.28, -1.1}, {0.95, 0.62, 0.08}, 0.28, 0},
    {SPHERE, scatter_lacquer, {-3.3, 0.45, -0.5}, {0.12, 0.20, 0.75}, 0.45, 0},
    {SPHERE, scatter_matte, {3.6, 0.5, -0.4}, {0.55, 0.15, 0.55}, 0.5, 0},
};

enum { OBJECTS = sizeof objects / sizeof *objects };

static vec sun;
static const vec sunlight = {4.6, 3.1, 1.7};

/* Evening: a gradient, drifting clouds lit from the side, and the sun. */
static vec sky(vec direction) {
    double height = direction.y > 0 ? direction.y : 0, towards = dot(direction, sun);
    vec colour = mix(make(1.15, 0.55, 0.24), make(0.08, 0.20, 0.55), pow(height, 0.45));
    if (towards > 0) colour = add(colour, scale(make(0.9, 0.45, 0.15), 0.8 * pow(towards, 12)));
    if (height > 0.01) {
        vec at = add(scale(direction, 1.6 / (height + 0.12)), make(3.7, 0, 9.1));
        double cover = (turbulence(at, 5) - 0.47) * 5;
        if (cover > 0) {
            vec cloud = add(make(0.62, 0.50, 0.55), scale(make(0.8, 0.42, 0.2), towards > 0 ? towards : 0));
            colour = mix(colour, cloud, smooth(cover < 1 ? cover : 1) * (height < 0.1 ? height * 10 : 1));
        }
    }
    if (towards > 0.9985) colour = add(colour, scale(sunlight, 6));
    return colour;
}

static const struct object *first_hit(ray r, double *distance) {
    const struct object *hit = NULL;
    *distance = FAR;
    for (int i = 0; i < OBJECTS; i++) {
        double t = objects[i].intersect(&objects[i], r);
        if (t < *distance) *distance = t, hit = &objects[i];
    }
    return hit;
}

static int in_shadow(ray r) {
    for (int i = 0; i < OBJECTS; i++)
        if (objects[i].intersect(&objects[i], r) < FAR) return 1;
    return 0;
}

/* The light that comes back along a ray, estimated by following one path. The sun is seen directly only where the path
 * did not already ask for it at a diffuse surface. */
static vec trace(ray r) {
    vec light = {0, 0, 0}, filter = {1, 1, 1};
    int asked_sun = 0;
    for (int depth = 0; depth < MAX_BOUNCES; depth++) {
        double distance;
        const struct object *o = first_hit(r, &distance);
        if (o && random_unit() > exp(-distance * HAZE)) {
            r.direction = normalize(make(r.direction.x, 0, r.direction.z));
            o = NULL;
        }
        if (!o) {
            vec from_sky = sky(r.direction);
            if (asked_sun && dot(r.direction, sun) > 0.9985) from_sky = sub(from_sky, scale(sunlight, 6));
            return add(light, mul(filter, from_sky));
        }
        vec p = add(r.origin, scale(r.direction, distance)), normal = o->normal(o, p);
        if (o->scatter != scatter_glass && dot(normal, r.direction) > 0) normal = scale(normal, -1);
        bounce b = o->scatter(o, p, normal, r.direction);
        filter = mul(filter, b.colour);
        if (b.diffuse) {
            vec to_sun = normalize(add(sun, scale(random_direction(), 0.05)));
            double cosine = dot(normal, to_sun);
            ray shadow = {add(p, scale(normal, 1e-3)), to_sun};
            if (cosine > 0 && !in_shadow(shadow)) light = add(light, mul(filter, scale(sunlight, cosine)));
        }
        asked_sun = b.diffuse;
        r = (ray){add(p, scale(b.direction, 1e-3)), b.direction};
    }
    return light;
}

/* From linear light to a byte: a filmic curve (Narkowicz's fit to ACES), then the display's gamma. */
static int to_byte(double x) {
    x = x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14);
    if (!(x > 0)) x = 0;
    if (x > 1) x = 1;
    return (int)(255 * pow(x, 1 / 2.2) + 0.5);
}

typedef struct {
    uint8_t r, g, b;
} pixel;

static void render(pixel *pixels, int width, int height, int samples) {
    const vec eye = {0.3, 2.1, -7.6}, target = {0.05, 1.45, 0.0};
    vec forward = normalize(sub(target, eye)), right = normalize(cross(make(0, 1, 0), forward)), up = cross(forward, right);
    double zoom = 0.54 * width / (width > height ? width : height);
    sun = normalize(make(-0.75, 0.42, 0.6));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            vec sum = {0, 0, 0};
            random_state = ((uint64_t)y << 32 | (uint32_t)x) * 0x9e3779b97f4a7c15u;
            for (int i = 0; i < samples; i++) {
                double u = (x + random_unit() - 0.5 * width) / width * 2 * zoom;
                double v = (0.5 * height - y - random_unit()) / width * 2 * zoom;
                vec direction = add(forward, add(scale(right, u), scale(up, v)));
                sum = add(sum, trace((ray){eye, normalize(direction)}));
            }
            sum = scale(sum, 0.36 / samples);
            pixels[y * width + x] = (pixel){(uint8_t)to_byte(sum.x), (uint8_t)to_byte(sum.y), (uint8_t)to_byte(sum.z)};
        }
}

/* Two pixels per cell: the upper half block in the colour of the upper, on the colour of the lower. */
static void print_colour(const pixel *pixels, int width, int height) {
    for (int y = 0; y < height; y += 2) {
        const pixel *above = pixels + y * width, *below = y + 1 < height ? above + width : above;
        for (int x = 0; x < width; x++) {
            if (x == 0 || memcmp(&above[x], &above[x - 1], sizeof *above))
                printf("\033[38;2;%d;%d;%dm", above[x].r, above[x].g, above[x].b);
            if (x == 0 || memcmp(&below[x], &below[x - 1], sizeof *below))
                printf("\033[48;2;%d;%d;%dm", below[x].r, below[x].g, below[x].b);
            fputs("\342\226\200", stdout);
        }
        puts("\033[0m");
    }
}

/* A character of about the brightness of the two pixels. */
static void print_plain(const pixel *pixels, int width, int height) {
    static const char ramp[] = " .,:;-~=+*oxO#%@";
    for (int y = 0; y < height; y += 2) {
        const pixel *above = pixels + y * width, *below = y + 1 < height ? above + width : above;
        for (int x = 0; x < width; x++) {
            int red = above[x].r + below[x].r, green = above[x].g + below[x].g, blue = above[x].b + below[x].b;
            int luma = (2126 * red + 7152 * green + 722 * blue) / 20000;
            putchar(ramp[luma * (int)(sizeof ramp - 1) / 256]);
        }
        putchar('\n');
    }
}

static int number(const char *text, int max) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || *end || end == text || n < 1 || n > max) {
        fprintf(stderr, "picture: '%s' is not a number from 1 to %d\n", text, max);
        exit(2);
    }
    return (int)n;
}

int main(int argc, char **argv) {
    int width = argc > 1 ? number(argv[1], MAX_SIZE) : 80;
    int height = argc > 2 ? number(argv[2], MAX_SIZE) : 46;
    int samples = argc > 3 ? number(argv[3], MAX_SAMPLES) : 600;
    int colour = isatty(1) && !getenv("NO_COLOR");
    if (argc > 4) {
        colour = !strcmp(argv[4], "colour");
        if (!colour && strcmp(argv[4], "plain")) {
            fprintf(stderr, "picture: '%s' is neither 'colour' nor 'plain'\n", argv[4]);
            return 2;
        }
    }
    pixel *pixels = malloc((size_t)width * height * sizeof *pixels);
    if (!pixels) {
        perror("picture");
        return 1;
    }
    render(pixels, width, height, samples);
    if (colour) print_colour(pixels, width, height);
    else print_plain(pixels, width, height);
    free(pixels);
    return fflush(stdout) ? 1 : 0;
}
