/* A straightforward Thompson sampling in C: prior N(0, I), posterior N(R^-1 c, R^-1 R^-T).
 *
 * Rotating each observation (x, y), in units of the noise, into the triangle (R, c) is least squares
 * by QR; a draw is then one triangular solve. */
#include "plain.h"

/* Plays n rounds and returns how many of them it learned from; pulls (k) counts the arms. */
long thompson(int k, int d, const double *actions, const double *theta, double noise_std, long n,
              uint64_t seed, const double *decisions, const double *noise, double *pulls) {
    double *columns = zeros((size_t)d * k), *factor = zeros((size_t)d * d), *c = zeros(d);
    double *draw = zeros(d), *x = zeros(d), *means = zeros(k), *truth = zeros(k);
    random_state choices = random_start(seed, decisions), rewards = random_start(~seed, noise);
    transpose(k, d, actions, columns);
    products(k, d, columns, theta, truth);
    for (int i = 0; i < d; i++) factor[i * d + i] = 1.0;
    for (long t = 1; t <= n; t++) {
        for (int i = 0; i < d; i++) draw[i] = c[i] + normal(&choices);
        for (int i = d - 1; i >= 0; i--) {
            for (int j = i + 1; j < d; j++) draw[i] -= factor[i * d + j] * draw[j];
            draw[i] /= factor[i * d + i];
        }
        products(k, d, columns, draw, means);
        int arm = argmax(k, means);
        double y = truth[arm] / noise_std + normal(&rewards);
        for (int i = 0; i < d; i++) x[i] = actions[(size_t)arm * d + i] / noise_std;
        for (int i = 0; i < d; i++) {
            double *row = factor + i * d;
            double radius = sqrt(row[i] * row[i] + x[i] * x[i]);
            double cosine = row[i] / radius, sine = x[i] / radius;
            row[i] = radius;
            for (int j = i + 1; j < d; j++) {
                double entry = row[j];
                row[j] = cosine * entry + sine * x[j];
                x[j] = cosine * x[j] - sine * entry;
            }
            double entry = c[i];
            c[i] = cosine * entry + sine * y;
            y = cosine * y - sine * entry;
        }
        pulls[arm] += 1.0;
    }
    free(columns);
    free(factor);
    free(c);
    free(draw);
    free(x);
    free(means);
    free(truth);
    return n;
}
