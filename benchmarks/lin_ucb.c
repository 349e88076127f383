/* A straightforward LinUCB in C: recursions on V^-1, means and squared widths. */
#include "plain.h"

/* Plays n rounds and returns how many of them it learned from; pulls (k) counts the arms. */
long lin_ucb(int k, int d, const double *actions, const double *theta, double noise_std, long n,
             uint64_t seed, const double *decisions, const double *noise, double *pulls) {
    double *columns = zeros((size_t)d * k), *inverse = zeros((size_t)d * d), *w = zeros(d);
    double *means = zeros(k), *widths = zeros(k), *truth = zeros(k), *c = zeros(k);
    random_state rng = random_start(seed, noise);
    double log_det = 0.0;
    (void)decisions; /* it draws none */
    transpose(k, d, actions, columns);
    products(k, d, columns, theta, truth);
    for (int i = 0; i < d; i++) inverse[i * d + i] = 1.0;
    for (int z = 0; z < k; z++)
        for (int i = 0; i < d; i++) widths[z] += actions[z * d + i] * actions[z * d + i];
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
        products(k, d, columns, w, c);
        for (int z = 0; z < k; z++) {
            means[z] += c[z] * step;
            widths[z] -= c[z] * c[z] / q;
        }
        log_det += log(q);
        pulls[arm] += 1.0;
    }
    free(columns);
    free(inverse);
    free(w);
    free(means);
    free(widths);
    free(truth);
    free(c);
    return n;
}
