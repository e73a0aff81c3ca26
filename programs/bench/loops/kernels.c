// Small programs of integers, floats, calls through pointers and interpreters, one of which is chosen by the
// first argument. The second argument scales the work. Without arguments the names are printed.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
static u64 seed = 88172645463325252ull;
static u32 rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (u32)(seed >> 16);
}
static double rf(void) {
  return (rnd() & 0xffffff) / 16777216.0;
}
// A kernel, its name, and the amount of work.
#define K(name) static u64 k_##name(int n)

K(collatz) {
  u64 best = 0;
  for (u32 i = 1; i < (u32)n; i++) {
    u64 x = i;
    u32 s = 0;
    while (x != 1) {
      x = x & 1 ? 3 * x + 1 : x >> 1;
      s++;
    }
    if (s > best)
      best = s;
  }
  return best;
}

K(heapsort) {
  u64 h = 0;
  static u32 a[100000];
  for (int r = 0; r < n; r++) {
    int m = 100000;
    for (int i = 0; i < m; i++)
      a[i] = rnd();
    for (int s = m / 2 - 1; s >= 0; s--) {
      int i = s;
      for (;;) {
        int c = 2 * i + 1;
        if (c >= m)
          break;
        if (c + 1 < m && a[c + 1] > a[c])
          c++;
        if (a[i] >= a[c])
          break;
        u32 t = a[i];
        a[i] = a[c];
        a[c] = t;
        i = c;
      }
    }
    for (int e = m - 1; e > 0; e--) {
      u32 t = a[0];
      a[0] = a[e];
      a[e] = t;
      int i = 0;
      for (;;) {
        int c = 2 * i + 1;
        if (c >= e)
          break;
        if (c + 1 < e && a[c + 1] > a[c])
          c++;
        if (a[i] >= a[c])
          break;
        t = a[i];
        a[i] = a[c];
        a[c] = t;
        i = c;
      }
    }
    h += a[777];
  }
  return h;
}

K(hashjoin) {
  enum { S = 1 << 16 };
  static u32 keys[S], vals[S];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    memset(keys, 0, sizeof keys);
    for (int i = 0; i < S / 2; i++) {
      u32 k = rnd() | 1;
      u32 p = (k * 2654435761u) >> 16;
      while (keys[p] && keys[p] != k)
        p = (p + 1) & (S - 1);
      keys[p] = k;
      vals[p] = i;
    }
    for (int i = 0; i < S; i++) {
      u32 k = rnd() | 1;
      u32 p = (k * 2654435761u) >> 16;
      while (keys[p] && keys[p] != k)
        p = (p + 1) & (S - 1);
      if (keys[p])
        h += vals[p];
      else
        h++;
    }
  }
  return h;
}

K(knapsack) {
  static u32 dp[20001];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    memset(dp, 0, sizeof dp);
    for (int i = 0; i < 60; i++) {
      u32 w = rnd() % 300 + 1, v = rnd() % 1000;
      for (int c = 20000; c >= (int)w; c--) {
        u32 t = dp[c - w] + v;
        if (t > dp[c])
          dp[c] = t;
      }
    }
    h += dp[20000];
  }
  return h;
}

K(bigmul) {
  enum { N = 200 };
  static u32 a[N], b[N], c[2 * N];
  for (int i = 0; i < N; i++) {
    a[i] = rnd();
    b[i] = rnd();
  }
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    memset(c, 0, sizeof c);
    for (int i = 0; i < N; i++) {
      u64 cy = 0;
      for (int j = 0; j < N; j++) {
        u64 t = (u64)a[i] * b[j] + c[i + j] + cy;
        c[i + j] = (u32)t;
        cy = t >> 32;
      }
      c[i + N] = (u32)cy;
    }
    h += c[N];
    a[r % N] ^= c[N + 3];
  }
  return h;
}

K(md5) {
  static const u32 kk[64] = {
      0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
      0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
      0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
      0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a};
  u32 m[16];
  for (int i = 0; i < 16; i++)
    m[i] = rnd();
  u32 A = 1, B = 2, C = 3, D = 4;
  static const u8 rot[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
  for (int r = 0; r < n; r++) {
    u32 a = A, b = B, c = C, d = D;
    for (int i = 0; i < 64; i++) {
      u32 f;
      int g;
      if (i < 16) {
        f = (b & c) | (~b & d);
        g = i;
      } else if (i < 32) {
        f = (d & b) | (~d & c);
        g = (5 * i + 1) & 15;
      } else if (i < 48) {
        f = b ^ c ^ d;
        g = (3 * i + 5) & 15;
      } else {
        f = c ^ (b | ~d);
        g = (7 * i) & 15;
      }
      f += a + kk[i & 31] + m[g];
      a = d;
      d = c;
      c = b;
      int s = rot[(i >> 4) * 4 + (i & 3)];
      b += (f << s) | (f >> (32 - s));
    }
    A += a;
    B += b;
    C += c;
    D += d;
    m[r & 15] ^= A;
  }
  return A ^ B ^ C ^ D;
}

K(unionfind) {
  enum { N = 1 << 17 };
  static u32 p[N];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (u32 i = 0; i < N; i++)
      p[i] = i;
    for (int i = 0; i < N; i++) {
      u32 a = rnd() % N, b = rnd() % N;
      while (p[a] != a) {
        p[a] = p[p[a]];
        a = p[a];
      }
      while (p[b] != b) {
        p[b] = p[p[b]];
        b = p[b];
      }
      if (a != b) {
        p[a] = b;
        h++;
      }
    }
  }
  return h;
}
typedef struct T {
  struct T *l, *r;
  u32 k, p;
} T;
static T pool[200000];
static int np;
static T *ins(T *t, u32 k) {
  if (!t) {
    T *x = &pool[np++];
    x->l = x->r = 0;
    x->k = k;
    x->p = rnd();
    return x;
  }
  if (k < t->k) {
    t->l = ins(t->l, k);
    if (t->l->p > t->p) {
      T *x = t->l;
      t->l = x->r;
      x->r = t;
      return x;
    }
  } else if (k > t->k) {
    t->r = ins(t->r, k);
    if (t->r->p > t->p) {
      T *x = t->r;
      t->r = x->l;
      x->l = t;
      return x;
    }
  }
  return t;
}

K(treap) {
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    np = 0;
    T *t = 0;
    for (int i = 0; i < 50000; i++)
      t = ins(t, rnd());
    for (int i = 0; i < 100000; i++) {
      u32 k = rnd();
      T *x = t;
      while (x && x->k != k)
        x = k < x->k ? x->l : x->r, h++;
    }
  }
  return h;
}

K(bmh) {
  static char t[1 << 20];
  for (int i = 0; i < (1 << 20) - 1; i++)
    t[i] = 'a' + rnd() % 4;
  const char *pat = "abcadabdca";
  int m = 10;
  int skip[256];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < 256; i++)
      skip[i] = m;
    for (int i = 0; i < m - 1; i++)
      skip[(u8)pat[i]] = m - 1 - i;
    int i = 0;
    while (i + m < (1 << 20)) {
      int j = m - 1;
      while (j >= 0 && t[i + j] == pat[j])
        j--;
      if (j < 0) {
        h += i;
        i++;
      } else
        i += skip[(u8)t[i + m - 1]];
    }
  }
  return h;
}

K(itoa) {
  u64 h = 0;
  char b[24];
  for (u32 i = 0; i < (u32)n; i++) {
    u32 x = i * 2654435761u;
    int p = 23;
    do {
      b[--p] = '0' + x % 10;
      x /= 10;
    } while (x);
    for (; p < 23; p++)
      h = h * 31 + b[p];
  }
  return h;
}
enum { PUSH, ADD, SUB, MUL, DUP, JNZ, LD, ST, LT, HALT };

K(switchvm) {
  static const i32 code[] = {PUSH, 0, ST, 0, PUSH, 1, ST,  1,   LD, 0, LD,   1,    MUL, PUSH, 7, ADD,
                             ST,   0, LD, 1, PUSH, 1, ADD, DUP, ST, 1, PUSH, 1000, LT,  JNZ,  8, HALT};
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    i32 st[64], v[4] = {0};
    int sp = 0, pc = 0;
    for (;;) {
      switch (code[pc++]) {
      case PUSH:
        st[sp++] = code[pc++];
        break;
      case ADD:
        sp--;
        st[sp - 1] += st[sp];
        break;
      case SUB:
        sp--;
        st[sp - 1] -= st[sp];
        break;
      case MUL:
        sp--;
        st[sp - 1] *= st[sp];
        break;
      case DUP:
        st[sp] = st[sp - 1];
        sp++;
        break;
      case JNZ: {
        int t = code[pc++];
        if (st[--sp])
          pc = t;
        break;
      }
      case LD:
        st[sp++] = v[code[pc++]];
        break;
      case ST:
        v[code[pc++]] = st[--sp];
        break;
      case LT:
        sp--;
        st[sp - 1] = st[sp - 1] < st[sp];
        break;
      case HALT:
        goto done;
      }
    }
  done:
    h += (u32)v[0];
  }
  return h;
}
typedef struct M {
  i32 st[64], v[4];
  int sp, pc;
  const i32 *code;
} M;
typedef int (*opf)(M *);
static int f_push(M *m) {
  m->st[m->sp++] = m->code[m->pc++];
  return 1;
}
static int f_add(M *m) {
  m->sp--;
  m->st[m->sp - 1] += m->st[m->sp];
  return 1;
}
static int f_mul(M *m) {
  m->sp--;
  m->st[m->sp - 1] *= m->st[m->sp];
  return 1;
}
static int f_dup(M *m) {
  m->st[m->sp] = m->st[m->sp - 1];
  m->sp++;
  return 1;
}
static int f_jnz(M *m) {
  int t = m->code[m->pc++];
  if (m->st[--m->sp])
    m->pc = t;
  return 1;
}
static int f_ld(M *m) {
  m->st[m->sp++] = m->v[m->code[m->pc++]];
  return 1;
}
static int f_st(M *m) {
  m->v[m->code[m->pc++]] = m->st[--m->sp];
  return 1;
}
static int f_lt(M *m) {
  m->sp--;
  m->st[m->sp - 1] = m->st[m->sp - 1] < m->st[m->sp];
  return 1;
}
static int f_halt(M *m) {
  return 0;
}
static opf const ops[] = {f_push, f_add, f_add, f_mul, f_dup, f_jnz, f_ld, f_st, f_lt, f_halt};

K(ptrvm) {
  static const i32 code[] = {PUSH, 0, ST, 0, PUSH, 1, ST,  1,   LD, 0, LD,   1,    MUL, PUSH, 7, ADD,
                             ST,   0, LD, 1, PUSH, 1, ADD, DUP, ST, 1, PUSH, 1000, LT,  JNZ,  8, HALT};
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    M m = {0};
    m.code = code;
    while (ops[code[m.pc++]](&m))
      ;
    h += (u32)m.v[0];
  }
  return h;
}

K(conv3) {
  enum { W = 512, H = 512 };
  static u8 a[W * H], b[W * H];
  for (int i = 0; i < W * H; i++)
    a[i] = rnd();
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int y = 1; y < H - 1; y++)
      for (int x = 1; x < W - 1; x++) {
        int s = 0;
        for (int dy = -1; dy <= 1; dy++)
          for (int dx = -1; dx <= 1; dx++)
            s += a[(y + dy) * W + x + dx] * (2 - abs(dy)) * (2 - abs(dx));
        b[y * W + x] = s >> 4;
      }
    h += b[r % 1000 + W + 1];
    a[r % (W * H)] ^= 3;
  }
  return h;
}

K(histo) {
  static u8 a[1 << 20];
  static u32 c[256];
  for (int i = 0; i < 1 << 20; i++)
    a[i] = rnd() & rnd();
  for (int r = 0; r < n; r++)
    for (int i = 0; i < 1 << 20; i++)
      c[a[i]]++;
  u64 h = 0;
  for (int i = 0; i < 256; i++)
    h = h * 31 + c[i];
  return h;
}

K(dct) {
  static i32 b[64], o[64];
  u64 h = 0;
  for (int i = 0; i < 64; i++)
    b[i] = rnd() % 256;
  for (int r = 0; r < n; r++) {
    for (int y = 0; y < 8; y++) {
      i32 *p = b + 8 * y;
      i32 s07 = p[0] + p[7], d07 = p[0] - p[7], s16 = p[1] + p[6], d16 = p[1] - p[6], s25 = p[2] + p[5],
          d25 = p[2] - p[5], s34 = p[3] + p[4], d34 = p[3] - p[4];
      i32 a = s07 + s34, c = s16 + s25, d = s07 - s34, e = s16 - s25;
      i32 *q = o + 8 * y;
      q[0] = a + c;
      q[4] = a - c;
      q[2] = (d * 1108 + e * 459) >> 10;
      q[6] = (d * 459 - e * 1108) >> 10;
      q[1] = (d07 * 1004 + d16 * 851 + d25 * 569 + d34 * 200) >> 10;
      q[3] = (d07 * 851 - d16 * 200 - d25 * 1004 - d34 * 569) >> 10;
      q[5] = (d07 * 569 - d16 * 1004 + d25 * 200 + d34 * 851) >> 10;
      q[7] = (d07 * 200 - d16 * 569 + d25 * 851 - d34 * 1004) >> 10;
    }
    for (int i = 0; i < 64; i++) {
      h += (u32)o[i];
      b[i] = (b[i] + (o[(i * 9) & 63] >> 3)) & 255;
    }
  }
  return h;
}

K(crc64) {
  static u64 t[256];
  for (int i = 0; i < 256; i++) {
    u64 c = i;
    for (int j = 0; j < 8; j++)
      c = c & 1 ? (c >> 1) ^ 0xC96C5795D7870F42ull : c >> 1;
    t[i] = c;
  }
  static u8 a[1 << 16];
  for (int i = 0; i < 1 << 16; i++)
    a[i] = rnd();
  u64 c = ~0ull;
  for (int r = 0; r < n; r++)
    for (int i = 0; i < 1 << 16; i++)
      c = t[(u8)(c ^ a[i])] ^ (c >> 8);
  return c;
}

K(rle) {
  static u8 a[1 << 20], o[1 << 21];
  for (int i = 0; i < 1 << 20;) {
    int l = rnd() % 12 + 1;
    u8 v = rnd();
    while (l-- && i < 1 << 20)
      a[i++] = v;
  }
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    u8 *q = o;
    for (int i = 0; i < 1 << 20;) {
      u8 v = a[i];
      int j = i + 1;
      while (j < (1 << 20) && j - i < 255 && a[j] == v)
        j++;
      *q++ = j - i;
      *q++ = v;
      i = j;
    }
    h += q - o;
    a[r * 977 % (1 << 20)] ^= 1;
  }
  return h;
}

K(dijkstra) {
  enum { N = 20000, D = 6 };
  static u32 to[N * D], w[N * D], dist[N];
  static u64 hp[N * D + 1];
  for (int i = 0; i < N * D; i++) {
    to[i] = rnd() % N;
    w[i] = rnd() % 1000 + 1;
  }
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    memset(dist, 255, sizeof dist);
    int m = 0;
    u32 s = rnd() % N;
    dist[s] = 0;
    hp[m++] = s;
    while (m) {
      u64 x = hp[0];
      u64 l = hp[--m];
      int i = 0;
      for (;;) {
        int c = 2 * i + 1;
        if (c >= m)
          break;
        if (c + 1 < m && hp[c + 1] < hp[c])
          c++;
        if (hp[c] >= l)
          break;
        hp[i] = hp[c];
        i = c;
      }
      hp[i] = l;
      u32 u = (u32)x, d = x >> 32;
      if (d > dist[u])
        continue;
      for (int e = u * D; e < (int)u * D + D; e++) {
        u32 nd = d + w[e];
        if (nd < dist[to[e]]) {
          dist[to[e]] = nd;
          u64 k = ((u64)nd << 32) | to[e];
          int j = m++;
          while (j && hp[(j - 1) / 2] > k) {
            hp[j] = hp[(j - 1) / 2];
            j = (j - 1) / 2;
          }
          hp[j] = k;
        }
      }
    }
    h += dist[77];
  }
  return h;
}

K(jacobi) {
  enum { N = 256 };
  static double a[N][N], b[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      a[i][j] = rf();
  for (int r = 0; r < n; r++) {
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        b[i][j] = 0.2 * (a[i][j] + a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        a[i][j] = 0.2 * (b[i][j] + b[i - 1][j] + b[i + 1][j] + b[i][j - 1] + b[i][j + 1]);
  }
  return (u64)(a[5][7] * 1e9);
}

K(fir) {
  enum { N = 4096, T = 32 };
  static float x[N + T], c[T], y[N];
  for (int i = 0; i < N + T; i++)
    x[i] = rf();
  for (int i = 0; i < T; i++)
    c[i] = rf();
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < N; i++) {
      float s = 0;
      for (int j = 0; j < T; j++)
        s += c[j] * x[i + j];
      y[i] = s;
    }
    x[r % N] += 1e-3f * y[(r * 7) % N];
    if (x[r % N] > 10)
      x[r % N] = 0;
    h += (u32)y[9];
  }
  return h;
}

K(gauss) {
  enum { N = 120 };
  static double a[N][N + 1];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < N; i++)
      for (int j = 0; j <= N; j++)
        a[i][j] = rf();
    for (int k = 0; k < N; k++) {
      int p = k;
      for (int i = k + 1; i < N; i++)
        if (fabs(a[i][k]) > fabs(a[p][k]))
          p = i;
      for (int j = k; j <= N; j++) {
        double t = a[k][j];
        a[k][j] = a[p][j];
        a[p][j] = t;
      }
      for (int i = k + 1; i < N; i++) {
        double f = a[i][k] / a[k][k];
        for (int j = k; j <= N; j++)
          a[i][j] -= f * a[k][j];
      }
    }
    h += (u64)fabs(a[N - 1][N] * 1000);
  }
  return h;
}
typedef struct {
  double x, y, z;
} V;
static V v3(double x, double y, double z) {
  V v = {x, y, z};
  return v;
}
static double dot(V a, V b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static V sub(V a, V b) {
  return v3(a.x - b.x, a.y - b.y, a.z - b.z);
}

K(ray) {
  V c[16];
  double rr[16];
  for (int i = 0; i < 16; i++) {
    c[i] = v3(rf() * 4 - 2, rf() * 4 - 2, rf() * 4 + 4);
    rr[i] = rf() * .6 + .2;
  }
  u64 h = 0;
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      V d = v3((x - n / 2) / (double)n, (y - n / 2) / (double)n, 1);
      double l = 1 / sqrt(dot(d, d));
      d = v3(d.x * l, d.y * l, d.z * l);
      double best = 1e9;
      int bi = -1;
      for (int i = 0; i < 16; i++) {
        double b = dot(c[i], d);
        double q = b * b - dot(c[i], c[i]) + rr[i] * rr[i];
        if (q > 0) {
          double t = b - sqrt(q);
          if (t > 0 && t < best) {
            best = t;
            bi = i;
          }
        }
      }
      if (bi >= 0) {
        V p = v3(d.x * best, d.y * best, d.z * best);
        V nn = sub(p, c[bi]);
        double s = dot(nn, v3(.5, -.7, -.5)) / rr[bi];
        h += (u64)(s > 0 ? s * 255 : 0) + bi;
      }
    }
  return h;
}

K(blackscholes) {
  double acc = 0;
  for (int i = 0; i < n; i++) {
    double S = 50 + rf() * 100, X = 50 + rf() * 100, t = .1 + rf(), v = .1 + rf() * .5, r = .03;
    double d1 = (log(S / X) + (r + v * v / 2) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    double n1, n2;
    {
      double k = 1 / (1 + .2316419 * fabs(d1));
      n1 = 1 - .39894228 * exp(-d1 * d1 / 2) * k *
                   (.31938153 + k * (-.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
      if (d1 < 0)
        n1 = 1 - n1;
      k = 1 / (1 + .2316419 * fabs(d2));
      n2 = 1 - .39894228 * exp(-d2 * d2 / 2) * k *
                   (.31938153 + k * (-.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
      if (d2 < 0)
        n2 = 1 - n2;
    }
    acc += S * n1 - X * exp(-r * t) * n2;
  }
  return (u64)acc;
}

K(kmeans) {
  enum { N = 20000, C = 16 };
  static float x[N], y[N];
  float cx[C], cy[C];
  for (int i = 0; i < N; i++) {
    x[i] = rf();
    y[i] = rf();
  }
  for (int c = 0; c < C; c++) {
    cx[c] = rf();
    cy[c] = rf();
  }
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    float sx[C] = {0}, sy[C] = {0};
    int k[C] = {0};
    for (int i = 0; i < N; i++) {
      float b = 1e9f;
      int bi = 0;
      for (int c = 0; c < C; c++) {
        float dx = x[i] - cx[c], dy = y[i] - cy[c], d = dx * dx + dy * dy;
        if (d < b) {
          b = d;
          bi = c;
        }
      }
      sx[bi] += x[i];
      sy[bi] += y[i];
      k[bi]++;
    }
    for (int c = 0; c < C; c++)
      if (k[c]) {
        cx[c] = sx[c] / k[c];
        cy[c] = sy[c] / k[c];
        h += k[c] * c;
      }
  }
  return h;
}

K(saxpy) {
  static float a[4096], b[4096];
  for (int i = 0; i < 4096; i++) {
    a[i] = rf();
    b[i] = rf();
  }
  for (int r = 0; r < n; r++) {
    float s = 1e-6f * (r & 7);
    for (int i = 0; i < 4096; i++)
      b[i] += s * a[i];
  }
  return (u64)(b[99] * 1e6);
}

K(nsieve) {
  static u8 f[1 << 20];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    memset(f, 1, sizeof f);
    for (u32 i = 2; i < 1 << 20; i++)
      if (f[i]) {
        h++;
        for (u32 j = i + i; j < 1 << 20; j += i)
          f[j] = 0;
      }
  }
  return h;
}

K(perm) {
  u64 h = 0;
  int p[12], q[12];
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < 12; i++)
      p[i] = i;
    for (int s = 0; s < 5000; s++) {
      int i = 10;
      while (i >= 0 && p[i] > p[i + 1])
        i--;
      if (i < 0)
        break;
      int j = 11;
      while (p[j] < p[i])
        j--;
      int t = p[i];
      p[i] = p[j];
      p[j] = t;
      for (int a = i + 1, b = 11; a < b; a++, b--) {
        t = p[a];
        p[a] = p[b];
        p[b] = t;
      }
      for (int k = 0; k < 12; k++)
        q[p[k]] = k;
      h += q[3];
    }
  }
  return h;
}
static int cmpu(const void *a, const void *b) {
  u32 x = *(u32 *)a, y = *(u32 *)b;
  return x < y ? -1 : x > y;
}

K(qsort) {
  static u32 a[100000];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < 100000; i++)
      a[i] = rnd();
    qsort(a, 100000, 4, cmpu);
    h += a[500];
  }
  return h;
}

K(matchain) {
  static u64 m[150][150];
  u32 d[151];
  u64 h = 0;
  for (int r = 0; r < n; r++) {
    for (int i = 0; i <= 150; i++)
      d[i] = rnd() % 50 + 1;
    for (int l = 1; l < 150; l++)
      for (int i = 0; i + l < 150; i++) {
        int j = i + l;
        u64 b = ~0ull;
        for (int k = i; k < j; k++) {
          u64 c = m[i][k] + m[k + 1][j] + (u64)d[i] * d[k + 1] * d[j + 1];
          if (c < b)
            b = c;
        }
        m[i][j] = b;
      }
    h += m[0][149];
  }
  return h;
}

K(aesround) {
  static u32 t0[256], t1[256], t2[256], t3[256];
  for (int i = 0; i < 256; i++) {
    t0[i] = rnd();
    t1[i] = rnd();
    t2[i] = rnd();
    t3[i] = rnd();
  }
  u32 a = 1, b = 2, c = 3, d = 4;
  for (int r = 0; r < n; r++) {
    for (int k = 0; k < 10; k++) {
      u32 w = t0[a >> 24] ^ t1[(b >> 16) & 255] ^ t2[(c >> 8) & 255] ^ t3[d & 255] ^ k,
          x = t0[b >> 24] ^ t1[(c >> 16) & 255] ^ t2[(d >> 8) & 255] ^ t3[a & 255],
          y = t0[c >> 24] ^ t1[(d >> 16) & 255] ^ t2[(a >> 8) & 255] ^ t3[b & 255],
          z = t0[d >> 24] ^ t1[(a >> 16) & 255] ^ t2[(b >> 8) & 255] ^ t3[c & 255];
      a = w;
      b = x;
      c = y;
      d = z;
    }
  }
  return a ^ b ^ c ^ d;
}
#define KS(X)                                                                                                \
  X(collatz, 1500000)                                                                                        \
  X(heapsort, 40) X(hashjoin, 250) X(knapsack, 500) X(bigmul, 15000) X(md5, 4000000) X(unionfind, 60)        \
      X(treap, 12) X(bmh, 300) X(itoa, 20000000) X(switchvm, 20000) X(ptrvm, 10000) X(conv3, 700)            \
          X(histo, 500) X(dct, 8000000) X(crc64, 4000) X(rle, 300) X(dijkstra, 60) X(jacobi, 4000)           \
              X(fir, 3000) X(gauss, 600) X(ray, 2200) X(blackscholes, 7000000) X(kmeans, 80)                 \
                  X(saxpy, 400000) X(nsieve, 120) X(perm, 3000) X(qsort, 40) X(matchain, 700)                \
                      X(aesround, 7000000)
int main(int c, char **v) {
#define R(n, d)                                                                                              \
  if (!strcmp(v[1], #n)) {                                                                                   \
    int k = (int)(d * (c > 2 ? atof(v[2]) : 1));                                                             \
    printf("%s %llu\n", #n, (unsigned long long)k_##n(k));                                                   \
    return 0;                                                                                                \
  }
#define L(n, d) puts(#n);
  if (c < 2) {
    KS(L) return 0;
  }
  KS(R) return 1;
}
