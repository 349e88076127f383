/* What the yardsticks share: random numbers, and inner products with all arms.
 *
 * Gaussian noise is drawn by the polar method over xoshiro256++.  Compiled with -DREPLAY, numbers
 * are read from two tapes instead, so that a test can hand the same ones to both implementations. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t s[4];
    int has_spare;
    double spare;
    const double *tape;
} random_state;

static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next_bits(random_state *r) {
    uint64_t *s = r->s, result = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

static inline random_state random_start(uint64_t seed, const double *tape) {
    random_state r = {.tape = tape};
    for (int i = 0; i < 4; i++) { /* splitmix64: neighbouring seeds must not give alike streams */
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r.s[i] = z ^ (z >> 31);
    }
    return r;
}

#ifdef REPLAY
static inline double uniform(random_state *r) { return *r->tape++; }
static inline double normal(random_state *r) { return *r->tape++; }
#else
static inline double uniform(random_state *r) { return (next_bits(r) >> 11) * 0x1.0p-53; }

static inline double normal(random_state *r) {
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    double u, v, s;
    do {
        u = 2.0 * uniform(r) - 1.0;
        v = 2.0 * uniform(r) - 1.0;
        s = u * u + v * v;
    } while (s >= 1.0 || s == 0.0);
    double scale = sqrt(-2.0 * log(s) / s);
    r->spare = v * scale;
    r->has_spare = 1;
    return u * scale;
}
#endif

static inline double *zeros(size_t n) { return calloc(n, sizeof(double)); }

/* out (d x k): the transpose of rows (k x d), so that loops over arms become vector code. */
static inline void transpose(int k, int d, const double *rows, double *out) {
    for (int z = 0; z < k; z++)
        for (int i = 0; i < d; i++) out[(size_t)i * k + z] = rows[(size_t)z * d + i];
}

/* out (k): <z, w> for all arms z. */
static inline void products(int k, int d, const double *restrict columns,
                            const double *restrict w, double *restrict out) {
    for (int z = 0; z < k; z++) out[z] = columns[z] * w[0];
    for (int i = 1; i < d; i++)
        for (int z = 0; z < k; z++) out[z] += columns[(size_t)i * k + z] * w[i];
}

static inline int argmax(int k, const double *values) {
    int best = 0;
    for (int z = 1; z < k; z++)
        if (values[z] > values[best]) best = z;
    return best;
}
