// Loops over 16,384 numbers each, one of which is chosen by the first argument, as compilers find them in
// programs that process pixels, samples, text and matrices. The second argument scales the number of
// repetitions. Without arguments the names are printed.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;

#define N 16384
static u8 a8[N], b8[N], c8[4 * N];
static i16 s16[N], t16[2 * N];
static i32 a32[N], b32[N], c32[N];
static u64 a64[N], b64[N];
static float f[N], g[N], h[N];
static double d[N], e[N];

static u32 state = 12345;
static u32 next_random(void) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

static void fill(void) {
  for (int i = 0; i < N; i++) {
    a8[i] = next_random();
    b8[i] = next_random();
    s16[i] = next_random();
    a32[i] = next_random();
    b32[i] = next_random();
    c32[i] = next_random();
    a64[i] = next_random();
    b64[i] = next_random();
    f[i] = (i32)next_random() / 1e4f - 500;
    g[i] = (i32)next_random() / 1e4f - 500;
    d[i] = next_random() / 65536.0;
    e[i] = next_random() / 65536.0;
  }
  for (int i = 0; i < 4 * N; i++)
    c8[i] = next_random();
  for (int i = 0; i < 2 * N; i++)
    t16[i] = next_random();
}

// A loop and its name. `r` is the number of the repetition.
#define K(name) __attribute__((noinline)) static u64 name(int r)

K(sum_bytes) {
  u32 s = 0;
  for (int i = 0; i < N; i++)
    s += a8[i];
  return s;
}

K(greatest) {
  i32 m = -1;
  for (int i = 0; i < N; i++)
    if (a32[i] > m)
      m = a32[i];
  return m;
}

K(extremes_16) {
  int m = 1 << 30, M = -1;
  for (int i = 0; i < N; i++) {
    if (s16[i] < m)
      m = s16[i];
    if (s16[i] > M)
      M = s16[i];
  }
  return m * 31 + M;
}

K(blend_bytes) {
  int al = r & 255;
  for (int i = 0; i < N; i++)
    a8[i] = (a8[i] * al + b8[i] * (256 - al)) >> 8;
  return a8[r % N];
}

K(gray_of_rgba) {
  for (int i = 0; i < N; i++)
    b8[i] = (c8[4 * i] * 77 + c8[4 * i + 1] * 150 + c8[4 * i + 2] * 29) >> 8;
  return b8[r % N];
}

K(gray_of_rgb) {
  for (int i = 0; i < N; i++)
    b8[i] = (c8[3 * i] * 77 + c8[3 * i + 1] * 150 + c8[3 * i + 2] * 29) >> 8;
  return b8[r % N];
}

K(threshold) {
  int t = r & 255;
  for (int i = 0; i < N; i++)
    b8[i] = a8[i] > t ? 255 : 0;
  return b8[r % N];
}

K(add_saturated) {
  for (int i = 0; i < N; i++) {
    int v = a8[i] + b8[i];
    c8[i] = v > 255 ? 255 : v;
  }
  return c8[r % N];
}

K(mix_samples) {
  for (int i = 0; i < N; i++) {
    int v = s16[i] + ((t16[i] * (r & 127)) >> 7);
    s16[i] = v > 32767 ? 32767 : v < -32768 ? -32768 : v;
  }
  return s16[r % N];
}

K(dot_16) {
  i32 s = 0;
  for (int i = 0; i < N; i++)
    s += s16[i] * t16[i];
  return s;
}

K(mono_of_stereo) {
  for (int i = 0; i < N; i++)
    s16[i] = (t16[2 * i] + t16[2 * i + 1]) / 2;
  return s16[r % N];
}

K(bytes_to_floats) {
  for (int i = 0; i < N; i++)
    f[i] = a8[i] * (1 / 255.f);
  return (i32)(f[r % N] * 16);
}

K(floats_to_bytes) {
  for (int i = 0; i < N; i++) {
    float v = g[i] * 255.f;
    a8[i] = (u8)(v < 0 ? 0 : v > 255 ? 255 : v);
  }
  return a8[r % N];
}

K(scale_in_double) {
  for (int i = 0; i < N; i++)
    f[i] = g[i] * 1.0001;
  return (i32)(f[r % N] * 16);
}

K(sum_32_in_64) {
  u64 s = 0;
  for (int i = 0; i < N; i++)
    s += (u32)a32[i];
  return s;
}

K(deltas_down) {
  for (int i = N - 1; i > 0; i--)
    b32[i] = a32[i] - a32[i - 1];
  return b32[r % N];
}

K(deltas) {
  for (int i = 1; i < N; i++)
    b32[i] = a32[i] - a32[i - 1];
  return b32[r % N];
}

K(prefix_sums) {
  u32 s = 0;
  for (int i = 0; i < N; i++) {
    s += a32[i];
    c32[i] = s;
  }
  return c32[r % N];
}

K(count_equal) {
  int n = 0;
  u8 t = r;
  for (int i = 0; i < N; i++)
    n += a8[i] == t;
  return n;
}

K(count_both) {
  int n = 0;
  for (int i = 0; i < N; i++)
    if (a32[i] > r * 1000 && b32[i] < 8000000)
      n++;
  return n;
}

K(sum_of_excess) {
  i32 n = 0;
  for (int i = 0; i < N; i++)
    if (a32[i] > b32[i])
      n += a32[i] - b32[i];
  return n;
}

K(ramp) {
  for (int i = 0; i < N; i++)
    c32[i] = i * 3 + r;
  return c32[r % N];
}

K(polynomial) {
  for (int i = 0; i < N; i++) {
    double v = d[i];
    e[i] = ((0.1 * v + 0.2) * v + 0.3) * v + 0.4;
  }
  return (u64)fabs(e[r % N]);
}

K(sum_of_differences) {
  u32 s = 0;
  for (int i = 0; i < N; i++) {
    int v = a8[i] - b8[i];
    s += v < 0 ? -v : v;
  }
  return s;
}

K(reverse) {
  for (int i = 0; i < N; i++)
    c32[i] = a32[N - 1 - i];
  return c32[r % N];
}

K(sum_of_pairs) {
  for (int i = 0; i < N / 2; i++)
    c32[i] = a32[2 * i] + a32[2 * i + 1];
  return c32[r % (N / 2)];
}

K(hashes) {
  for (int i = 0; i < N; i++) {
    u32 v = a32[i];
    v ^= v >> 16;
    v *= 0x85ebca6b;
    v ^= v >> 13;
    v *= 0xc2b2ae35;
    v ^= v >> 16;
    c32[i] = v;
  }
  return c32[r % N];
}

K(xor_shifted) {
  for (int i = 0; i < N; i++)
    a64[i] ^= b64[i] << 1;
  return a64[r % N];
}

K(rotate) {
  for (int i = 0; i < N; i++) {
    u32 v = a32[i];
    c32[i] = (v << 7) | (v >> 25);
  }
  return c32[r % N];
}

K(popcounts) {
  u64 n = 0;
  for (int i = 0; i < N; i++)
    n += __builtin_popcount(a32[i]);
  return n;
}

K(upper_case) {
  for (int i = 0; i < N; i++) {
    u8 c = a8[i];
    b8[i] = c >= 'a' && c <= 'z' ? c - 32 : c;
  }
  return b8[r % N];
}

K(fade_pixels) {
  u32 *p = (u32 *)c8;
  for (int i = 0; i < N; i++) {
    u32 v = p[i];
    u32 rb = v & 0xff00ff, gg = v & 0xff00;
    rb = (rb * (r & 255) >> 8) & 0xff00ff;
    gg = (gg * (r & 255) >> 8) & 0xff00;
    p[i] = rb | gg | (v & 0xff000000);
  }
  return c8[r % N];
}

K(lengths) {
  for (int i = 0; i < N; i++)
    h[i] = sqrtf(f[i] * f[i] + g[i] * g[i]);
  return (u32)(h[r % N] * 16 + 1e6f);
}

K(moving_average) {
  for (int i = 2; i < N - 2; i++)
    e[i] = (d[i - 2] + d[i - 1] + d[i] + d[i + 1] + d[i + 2]) * 0.2;
  return (u64)fabs(e[r % N]);
}

K(complex_products) {
  for (int i = 0; i < N / 2; i++) {
    float ar = f[2 * i], ai = f[2 * i + 1], br = g[2 * i], bi = g[2 * i + 1];
    h[2 * i] = ar * br - ai * bi;
    h[2 * i + 1] = ar * bi + ai * br;
  }
  u32 bits;
  memcpy(&bits, &h[r % N], 4);
  return bits;
}

K(wide_products) {
  for (int i = 0; i < N; i++)
    a64[i] += (u64)(u32)a32[i] * b32[i];
  return a64[r % N];
}

K(look_up) {
  for (int i = 0; i < N; i++)
    b8[i] = c8[a8[i]];
  return b8[r % N];
}

K(sum_if) {
  i32 n = 0;
  for (int i = 0; i < N; i++)
    if (a32[i] > r * 1000)
      n += b32[i] * c32[i];
  return n;
}

K(relu) {
  for (int i = 0; i < N; i++)
    if (f[i] < 0)
      f[i] = 0;
  return (i32)(f[r % N] * 16);
}

K(shorter) {
  float w = f[r % N];
  for (int i = 0; i < N; i++)
    if (w + g[i] < f[i])
      f[i] = w + g[i];
  return (i32)(f[r % N] * 16);
}

K(clamp_bytes) {
  for (int i = 0; i < N; i++) {
    if (a8[i] > 200)
      b8[i] = 200;
    else if (a8[i] < 20)
      b8[i] = 20;
    else
      b8[i] = a8[i];
  }
  return b8[r % N];
}

K(copy_if) {
  for (int i = 0; i < N; i++)
    if (b8[i])
      a8[i] = b8[i];
  return a8[r % N];
}

K(either) {
  for (int i = 0; i < N; i++)
    if (a32[i] & 1)
      c32[i] = a32[i] * 3 + b32[i];
    else
      c32[i] = a32[i] >> 1;
  return c32[r % N];
}

K(raise_to) {
  for (int i = 0; i < N; i++)
    if (a32[i] > c32[i])
      c32[i] = a32[i];
  return c32[r % N];
}

K(saturate) {
  int over = 0;
  for (int i = 0; i < N; i++) {
    int v = a32[i] + b32[i];
    if (v > 1000000) {
      v = 1000000;
      over++;
    }
    c32[i] = v;
  }
  return over + c32[r % N];
}

#define LOOPS(X)                                                                                             \
  X(sum_bytes)                                                                                               \
  X(greatest) X(extremes_16) X(blend_bytes) X(gray_of_rgba) X(gray_of_rgb) X(threshold) X(add_saturated)     \
      X(mix_samples) X(dot_16) X(mono_of_stereo) X(bytes_to_floats) X(floats_to_bytes) X(scale_in_double)    \
          X(sum_32_in_64) X(deltas_down) X(deltas) X(prefix_sums) X(count_equal) X(count_both)               \
              X(sum_of_excess) X(ramp) X(polynomial) X(sum_of_differences) X(reverse) X(sum_of_pairs)        \
                  X(hashes) X(xor_shifted) X(rotate) X(popcounts) X(upper_case) X(fade_pixels) X(lengths)    \
                      X(moving_average) X(complex_products) X(wide_products) X(look_up) X(sum_if) X(relu)    \
                          X(shorter) X(clamp_bytes) X(copy_if) X(either) X(raise_to) X(saturate)

int main(int count, char **arguments) {
#define NAME(name) puts(#name);
#define RUN(name)                                                                                            \
  if (!strcmp(arguments[1], #name)) {                                                                        \
    u64 sum = 0;                                                                                             \
    int repetitions = 20000 * (count > 2 ? atof(arguments[2]) : 1);                                          \
    for (int r = 0; r < repetitions; r++) {                                                                  \
      f[r % N] -= 3;                                                                                         \
      c32[r % N] -= 100;                                                                                     \
      sum = sum * 31 + name(r);                                                                              \
      __asm__ volatile("" ::: "memory");                                                                     \
    }                                                                                                        \
    printf("%s %llu\n", #name, (unsigned long long)sum);                                                     \
    return 0;                                                                                                \
  }
  if (count < 2) {
    LOOPS(NAME)
    return 0;
  }
  fill();
  LOOPS(RUN)
  return 1;
}
