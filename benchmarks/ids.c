/* A straightforward Algorithm 1 in C: half-space information over all of R^d, value gaps, mixtures
 * of the empirically best arm and one other.  Arms must differ, and none may be zero. */
#include "plain.h"

#define NEGLIGIBLE 1e-20 /* a weight that adds less than the last bit of any gain */

typedef struct {
    int k, d;
    const double *actions;
    double *columns;                 /* (d x k) */
    double *inverse;                 /* (d x d): V^-1 */
    double *means, *widths;          /* (k): <z, theta-hat> and z' V^-1 z */
    double *u, *v;                   /* (d x k): x-hat - z, and V^-1 times that */
    double *separation, *distance;   /* (k): u' V^-1 u, and squared distances of alternatives */
    double *weight, *optimism, *gain, *c; /* (k) */
    double *shift, *form;            /* (d) and (d x d) */
    double log_det;
} model;

static model start(int k, int d, const double *actions) {
    size_t kd = (size_t)k * d, dd = (size_t)d * d;
    model m = {k, d, actions, zeros(kd), zeros(dd), zeros(k), zeros(k), zeros(kd), zeros(kd),
               zeros(k), zeros(k), zeros(k), zeros(k), zeros(k), zeros(k), zeros(d), zeros(dd), 0.0};
    transpose(k, d, actions, m.columns);
    for (int i = 0; i < d; i++) m.inverse[i * d + i] = 1.0;
    for (int z = 0; z < k; z++)
        for (int i = 0; i < d; i++) m.widths[z] += actions[z * d + i] * actions[z * d + i];
    return m;
}

static void finish(model *m) {
    double *arrays[] = {m->columns, m->inverse, m->means, m->widths, m->u, m->v, m->separation,
                        m->distance, m->weight, m->optimism, m->gain, m->c, m->shift, m->form};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void observe(model *m, int arm, double reward) {
    int k = m->k, d = m->d;
    const double *x = m->actions + (size_t)arm * d;
    double *w = m->shift, *restrict c = m->c, *restrict means = m->means,
           *restrict widths = m->widths, q = 1.0;
    for (int i = 0; i < d; i++) {
        w[i] = 0.0;
        for (int j = 0; j < d; j++) w[i] += m->inverse[i * d + j] * x[j];
        q += x[i] * w[i];
    }
    double shrink = 1.0 / q, step = (reward - means[arm]) * shrink;
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++) m->inverse[i * d + j] -= w[i] * w[j] * shrink;
    products(k, d, m->columns, w, c);
    for (int z = 0; z < k; z++) {
        means[z] += c[z] * step;
        widths[z] -= c[z] * c[z] * shrink;
    }
    m->log_det += log(q);
}

/* Squared distances to the alternatives of all arms; returns the least. */
static double locate(model *m, int best) {
    int k = m->k, d = m->d;
    double *restrict u = m->u, *restrict v = m->v, *restrict separation = m->separation;
    for (int i = 0; i < d; i++)
        for (int z = 0; z < k; z++)
            u[i * k + z] = m->actions[best * d + i] - m->columns[i * k + z];
    memset(separation, 0, k * sizeof(double));
    for (int i = 0; i < d; i++) {
        products(k, d, u, m->inverse + i * d, v + i * k);
        for (int z = 0; z < k; z++) separation[z] += u[i * k + z] * v[i * k + z];
    }
    double least = INFINITY;
    for (int z = 0; z < k; z++) {
        double shortfall = m->means[best] - m->means[z];
        m->distance[z] = z == best ? INFINITY : shortfall * shortfall / separation[z];
        if (m->distance[z] < least) least = m->distance[z];
    }
    return least;
}

static void weigh(model *m, double least, double rate) {
    double total = 0.0;
    for (int z = 0; z < m->k; z++) {
        m->weight[z] = exp(-rate * (m->distance[z] - least));
        total += m->weight[z];
    }
    for (int z = 0; z < m->k; z++) m->weight[z] /= total;
}

/* nu-hat(z) - theta-hat. */
static void find_shift(model *m, int best, int z) {
    double scale = (m->means[z] - m->means[best]) / m->separation[z];
    for (int i = 0; i < m->d; i++) m->shift[i] = scale * m->v[i * m->k + z];
}

/* 1/2 sum_z q(z) (|<shift(z), x>| + optimism(x))^2. */
static void gain_of_all(model *m, int best) {
    int k = m->k;
    double *restrict gain = m->gain, *restrict c = m->c, *restrict optimism = m->optimism;
    memset(gain, 0, k * sizeof(double));
    for (int z = 0; z < k; z++) {
        if (m->weight[z] < NEGLIGIBLE) continue;
        find_shift(m, best, z);
        products(k, m->d, m->columns, m->shift, c);
        double half = 0.5 * m->weight[z];
        for (int x = 0; x < k; x++) {
            double term = fabs(c[x]) + optimism[x];
            gain[x] += half * term * term;
        }
    }
}

/* The same with the optimistic term for one arm: a quadratic form for all others. */
static void gain_of_ucb(model *m, int best, int ucb) {
    int k = m->k, d = m->d;
    double *restrict gain = m->gain, *restrict c = m->c, *form = m->form, *shift = m->shift;
    double optimistic = 0.0;
    memset(form, 0, (size_t)d * d * sizeof(double));
    memset(gain, 0, k * sizeof(double));
    for (int z = 0; z < k; z++) {
        if (m->weight[z] < NEGLIGIBLE) continue;
        find_shift(m, best, z);
        double own = 0.0;
        for (int i = 0; i < d; i++) {
            own += m->actions[(size_t)ucb * d + i] * shift[i];
            for (int j = 0; j < d; j++) form[i * d + j] += m->weight[z] * shift[i] * shift[j];
        }
        double term = fabs(own) + m->optimism[ucb];
        optimistic += 0.5 * m->weight[z] * term * term;
    }
    for (int i = 0; i < d; i++) {
        products(k, d, m->columns, form + i * d, c);
        for (int x = 0; x < k; x++) gain[x] += 0.5 * m->columns[(size_t)i * k + x] * c[x];
    }
    gain[ucb] = optimistic;
}

/* Arm drawn from the best mixture of x-hat and one other, whose gap is never smaller. */
static int draw_arm(const model *m, int best, double gap, random_state *rng) {
    const double *gain = m->gain;
    int other = best;
    double probability = 0.0, ratio = gap * gap / gain[best];
    for (int x = 0; x < m->k; x++) {
        if (gain[x] <= gain[best]) continue; /* p = 0 */
        double more = m->means[best] - m->means[x], extra = gain[x] - gain[best];
        double p = gap / more - 2.0 * gain[best] / extra;
        p = p > 1.0 ? 1.0 : p > 0.0 ? p : 0.0;
        double mixed = gap + p * more;
        double candidate = mixed * mixed / (gain[best] + p * extra);
        if (candidate < ratio) {
            other = x;
            probability = p;
            ratio = candidate;
        }
    }
    return uniform(rng) < probability ? other : best;
}

static double beta(const model *m, double noise_std, double log_inverse_delta) {
    double radius = noise_std * sqrt(2.0 * log_inverse_delta + m->log_det) + 1.0;
    return radius * radius;
}

/* beta_{s, t log t}. */
static double global_beta(const model *m, double noise_std, long t) {
    double u = log(t < 2 ? 2.0 : (double)t);
    return beta(m, noise_std, u + log(u));
}

/* First round from t on, or n + 1, at which the evidence no longer suffices. */
static long wake(const model *m, double noise_std, double evidence, long t, long n) {
    if (evidence < global_beta(m, noise_std, t)) return t;
    long low = t, high = n + 1;
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        if (evidence < global_beta(m, noise_std, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static long play(int k, int d, const double *actions, const double *theta, double noise_std, long n,
                 uint64_t seed, const double *decisions, const double *noise, double *pulls,
                 int for_ucb_arm) {
    model m = start(k, d, actions);
    double *truth = zeros(k), variance = noise_std * noise_std, largest_m = 0.5;
    random_state choices = random_start(seed, decisions), rewards = random_start(~seed, noise);
    long s = 1, t = 1;
    products(k, d, m.columns, theta, truth);
    while (t <= n) {
        int best = argmax(k, m.means);
        double least = locate(&m, best);
        long next = wake(&m, noise_std, least, t, n);
        if (next > t) {
            pulls[best] += next - t;
            t = next;
            continue;
        }
        double radius = sqrt(beta(&m, noise_std, 2.0 * log(s))), highest = -INFINITY;
        int ucb = 0;
        for (int x = 0; x < k; x++) {
            m.optimism[x] = radius * sqrt(m.widths[x]);
            if (m.means[x] + m.optimism[x] > highest) {
                highest = m.means[x] + m.optimism[x];
                ucb = x;
            }
        }
        if (0.5 * least / variance > largest_m) largest_m = 0.5 * least / variance;
        weigh(&m, least, 0.5 * log(k) / sqrt(largest_m) / variance);
        if (for_ucb_arm)
            gain_of_ucb(&m, best, ucb);
        else
            gain_of_all(&m, best);
        int arm = draw_arm(&m, best, highest - m.means[best], &choices);
        observe(&m, arm, truth[arm] + noise_std * normal(&rewards));
        pulls[arm] += 1.0;
        s++;
        t++;
    }
    finish(&m);
    free(truth);
    return s - 1;
}

/* Plays n rounds and returns how many of them it learned from; pulls (k) counts the arms. */
long ids(int k, int d, const double *actions, const double *theta, double noise_std, long n,
         uint64_t seed, const double *decisions, const double *noise, double *pulls) {
    return play(k, d, actions, theta, noise_std, n, seed, decisions, noise, pulls, 0);
}

/* The same with the optimistic term for the UCB arm only. */
long ids_ucb(int k, int d, const double *actions, const double *theta, double noise_std, long n,
             uint64_t seed, const double *decisions, const double *noise, double *pulls) {
    return play(k, d, actions, theta, noise_std, n, seed, decisions, noise, pulls, 1);
}
