/* A straightforward LinUCB in C, the yardstick for the compiled kernel: the same recursions on
 * V^-1, means and squared widths, Gaussian noise by the polar method over xoshiro256++. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t s[4];
    int has_spare;
    double spare;
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

static inline double uniform(random_state *r) { return (next_bits(r) >> 11) * 0x1.0p-53; }

static double normal(random_state *r) {
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

/* Plays n rounds and returns the regret; pulls (k) counts the arms. */
double lin_ucb(int k, int d, const double *actions, const double *theta, double noise_std,
               long n, uint64_t seed, double *pulls) {
    double *inverse = calloc((size_t)d * d, sizeof(double));
    double *w = malloc(d * sizeof(double));
    double *means = calloc(k, sizeof(double));
    double *widths = malloc(k * sizeof(double));
    double *truth = malloc(k * sizeof(double));
    random_state rng = {{seed, seed ^ 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu},
                        0, 0.0};
    double log_det = 0.0, regret = 0.0, top = -INFINITY;
    for (int i = 0; i < 16; i++) next_bits(&rng);
    for (int i = 0; i < d; i++) inverse[i * d + i] = 1.0;
    memset(pulls, 0, k * sizeof(double));
    for (int z = 0; z < k; z++) {
        widths[z] = truth[z] = 0.0;
        for (int i = 0; i < d; i++) {
            widths[z] += actions[z * d + i] * actions[z * d + i];
            truth[z] += actions[z * d + i] * theta[i];
        }
        if (truth[z] > top) top = truth[z];
    }
    for (long t = 1; t <= n; t++) {
        double u = log(t < 2 ? 2.0 : (double)t);
        double radius = noise_std * sqrt(2.0 * (u + log(u)) + log_det) + 1.0;
        int arm = 0;
        double best = -INFINITY;
        for (int z = 0; z < k; z++) {
            double bound = means[z] + radius * sqrt(widths[z]);
            if (bound > best) {
                best = bound;
                arm = z;
            }
        }
        const double *x = actions + (size_t)arm * d;
        double q = 1.0;
        for (int i = 0; i < d; i++) {
            double total = 0.0;
            for (int j = 0; j < d; j++) total += inverse[i * d + j] * x[j];
            w[i] = total;
            q += x[i] * total;
        }
        double step = (truth[arm] + noise_std * normal(&rng) - means[arm]) / q;
        for (int i = 0; i < d; i++)
            for (int j = 0; j < d; j++) inverse[i * d + j] -= w[i] * w[j] / q;
        for (int z = 0; z < k; z++) {
            double c = 0.0;
            for (int i = 0; i < d; i++) c += actions[z * d + i] * w[i];
            means[z] += c * step;
            widths[z] -= c * c / q;
        }
        log_det += log(q);
        pulls[arm] += 1.0;
        regret += top - truth[arm];
    }
    free(inverse);
    free(w);
    free(means);
    free(widths);
    free(truth);
    return regret;
}
