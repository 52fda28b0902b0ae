/* localsgd_oracles.c: cases whose exact answer is known: equivalences between
 * methods, fixed points and noise of quadratics, error feedback, weights. */
#include "localsgd_trial.h"

/* ---- one vector of parameters ---------------------------------------------
 */

typedef struct vec {
    tac_comm *comm;
    int rank, size;
    size_t n;
    float *x;
    tac_localsgd *l;
} vec;

static int vec_open(vec *v, tac_comm *comm, size_t n,
                    const tac_localsgd_config *c)
{
    *v = (vec){.comm = comm,
               .rank = tac_comm_rank(comm),
               .size = tac_comm_size(comm),
               .n = n,
               .x = calloc(n, sizeof(float))};
    return CHECK_OK(tac_localsgd_create(comm, c, &v->l)) &&
           CHECK_OK(tac_localsgd_add(
               v->l,
               &(tac_localsgd_tensor){
                   .name = "x", .count = n, .data = v->x, .layer = -1})) &&
           CHECK_OK(tac_localsgd_start(v->l, TAC_START_BROADCAST));
}

static void vec_close(vec *v)
{
    tac_localsgd_destroy(v->l);
    free(v->x);
}

static void vec_step(vec *v, double lr, double samples)
{
    CHECK_OK(tac_localsgd_step(
        v->l, &(tac_local_step){.lr = lr, .loss = NAN, .samples = samples},
        NULL));
}

/* ---- 1, 3: equal to synchronous SGD ---------------------------------------
 */

enum { N = 37 };
#define RATE 0.1

/* Gradient of rank r at x: of a quadratic of its own, plus noise. */
static double slope(int r, int64_t n, size_t i, double x)
{
    const double h = 0.5 + 0.1 * r, c = (double)trial_random(1, r, 0, i);
    return h * (x - c) + (double)trial_random(2, r, n, i);
}

typedef struct sync_case {
    const char *name;
    tac_outer_kind kind;
    double lr, momentum;
} sync_case;

/* Every rank in f64: gradients averaged, then the optimizer with rate
 * RATE * lr. */
static void synchronous(const sync_case *s, int size, double *x, int64_t steps)
{
    double u[N] = {0};
    const double rate = RATE * s->lr, m = s->momentum;
    for (int64_t n = 1; n <= steps; n++)
        for (size_t i = 0; i < N; i++) {
            double g = 0;
            for (int r = 0; r < size; r++) g += slope(r, n, i, x[i]) / size;
            u[i] = m * u[i] + g;
            x[i] -=
                rate * (s->kind == TAC_OUTER_NESTEROV ? g + m * u[i] : u[i]);
        }
}

static void is_synchronous(tac_comm *comm, void *arg)
{
    static const sync_case cases[] = {
        {"averaging", TAC_OUTER_AVERAGE, 1, 0},
        {"outer sgd 1", TAC_OUTER_SGD, 1, 0},
        {"outer sgd", TAC_OUTER_SGD, 0.6, 0},
        {"heavy ball", TAC_OUTER_HEAVY_BALL, 0.7, 0.9},
        {"nesterov", TAC_OUTER_NESTEROV, 0.7, 0.9},
        {"slowmo 1 0", TAC_OUTER_SLOWMO, 1, 0},
        {"slowmo", TAC_OUTER_SLOWMO, 1, 0.5},
    };
    (void)arg;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        vec v;
        double want[N] = {0}, worst = 0;
        tac_localsgd_config c = preset(comm, "local", 1);
        c.outer.kind = cases[k].kind;
        c.outer.lr = cases[k].lr;
        c.outer.momentum = cases[k].momentum;
        if (!vec_open(&v, comm, N, &c)) return;
        for (int64_t n = 1; n <= 30; n++) {
            for (size_t i = 0; i < N; i++)
                v.x[i] -= (float)(RATE * slope(v.rank, n, i, (double)v.x[i]));
            vec_step(&v, RATE, 1);
        }
        synchronous(&cases[k], v.size, want, 30);
        for (size_t i = 0; i < N; i++)
            worst = fmax(worst, fabs((double)v.x[i] - want[i]));
        CHECK_MSG(worst < 2e-5, "%s with %d ranks: off by %g", cases[k].name,
                  v.size, worst);
        vec_close(&v);
    }
}

/* ---- 3: equal to one another, any H ---------------------------------------
 */

static void run_case(tac_comm *comm, tac_localsgd_config c, float *out)
{
    vec v;
    if (!vec_open(&v, comm, N, &c)) return;
    for (int64_t n = 1; n <= 20; n++) {
        for (size_t i = 0; i < N; i++)
            v.x[i] -= (float)(RATE * slope(v.rank, n, i, (double)v.x[i]));
        vec_step(&v, RATE, 1);
    }
    CHECK_OK(tac_localsgd_finish(v.l));
    memcpy(out, v.x, N * sizeof *out);
    vec_close(&v);
}

static void expect_near(const float *a, const float *b, const char *what)
{
    double worst = 0;
    for (size_t i = 0; i < N; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    CHECK_MSG(worst < 1e-5, "%s: off by %g", what, worst);
}

static void average_by_hand(void *arg, size_t n, uint64_t step, double inner_lr,
                            float *anchor, const float *delta,
                            float *const *state)
{
    (void)arg, (void)step, (void)inner_lr;
    for (size_t i = 0; i < n; i++) {
        anchor[i] -= delta[i];
        state[0][i] += delta[i];
    }
}

static void are_averaging(tac_comm *comm, void *arg)
{
    (void)arg;
    for (int64_t h = 1; h <= 7; h += 3) {
        float plain[N], other[N];
        tac_localsgd_config c = preset(comm, "local", h);
        run_case(comm, c, plain);
        c.outer.kind = TAC_OUTER_SGD;
        run_case(comm, c, other);
        expect_near(plain, other, "outer sgd with rate 1");
        c.outer.kind = TAC_OUTER_SLOWMO;
        c.outer.momentum = 0;
        run_case(comm, c, other);
        expect_near(plain, other, "slowmo 1, 0");
        c.outer.kind = TAC_OUTER_CUSTOM;
        c.outer.fn = average_by_hand;
        c.outer.state_per_element = 1;
        run_case(comm, c, other);
        expect_near(plain, other, "custom");
        c = preset(comm, "local", h);
        c.weighting = TAC_WEIGHT_SAMPLES;
        run_case(comm, c, other);
        expect_near(plain, other, "equal samples");
    }
}

/* Lookahead (a rank alone, outer sgd): slow += lr * (fast - slow). */
static void is_lookahead(tac_comm *comm, void *arg)
{
    vec v;
    double slow = 0, fast = 0;
    tac_localsgd_config c = preset(comm, "local", 5);
    (void)arg;
    c.outer.kind = TAC_OUTER_SGD;
    c.outer.lr = 0.5;
    if (!vec_open(&v, comm, 1, &c)) return;
    for (int64_t n = 1; n <= 40; n++) {
        fast -= RATE * slope(0, n, 0, fast);
        if (n % 5 == 0) fast = slow += 0.5 * (fast - slow);
        v.x[0] -= (float)(RATE * slope(0, n, 0, (double)v.x[0]));
        vec_step(&v, RATE, 1);
        CHECK_NEAR(v.x[0], fast, 1e-5);
    }
    vec_close(&v);
}

/* ---- outer adam: torch.optim.Adam in f64 ----------------------------------
 */

static void is_adam(tac_comm *comm, void *arg)
{
    vec v;
    double x = 0, m = 0, s = 0;
    tac_localsgd_config c = preset(comm, "local", 1);
    (void)arg;
    c.outer = (tac_outer){.kind = TAC_OUTER_ADAM,
                          .lr = 0.05,
                          .momentum = 0.9,
                          .beta2 = 0.95,
                          .eps = 0.1};
    if (!vec_open(&v, comm, 1, &c)) return;
    for (int t = 1; t <= 30; t++) {
        double d = 0; /* the averaged delta */
        for (int r = 0; r < v.size; r++) d += RATE * slope(r, t, 0, x) / v.size;
        m = 0.9 * m + 0.1 * d;
        s = 0.95 * s + 0.05 * d * d;
        v.x[0] -= (float)(RATE * slope(v.rank, t, 0, (double)v.x[0]));
        vec_step(&v, RATE, 1);
        x -= 0.05 * (m / (1 - pow(0.9, t))) /
             (sqrt(s / (1 - pow(0.95, t))) + 0.1);
        CHECK_NEAR(v.x[0], x, 1e-5);
    }
    vec_close(&v);
}

/* ---- 2: what becomes of momentum ------------------------------------------
 */

/* Final parameter of inner SGD with momentum, rank r's curvature h[r]. */
static double with_momentum(tac_comm *comm, int64_t every, tac_merge merge,
                            int same_curvature)
{
    static const double curve[] = {1, 0.2, 3, 0.5};
    const int r = tac_comm_rank(comm);
    const double h = same_curvature ? 1 : curve[r % 4];
    const double center = (double)trial_random(3, r, 0, 0);
    const tac_localsgd_config c = preset(comm, "local", every);
    float x = 1, u = 0;
    tac_localsgd *l = NULL;
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    CHECK_OK(tac_localsgd_add(
        l, &(tac_localsgd_tensor){
               .name = "x", .count = 1, .data = &x, .layer = -1}));
    CHECK_OK(tac_localsgd_add(l, &(tac_localsgd_tensor){.name = "u",
                                                        .role = TAC_ROLE_MOMENT,
                                                        .merge = merge,
                                                        .count = 1,
                                                        .data = &u}));
    CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
    for (int n = 0; n < 24; n++) {
        u = (float)(0.9 * (double)u + h * ((double)x - center));
        x -= 0.1f * u;
        CHECK_OK(tac_localsgd_step(
            l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, NULL));
    }
    tac_localsgd_destroy(l);
    return (double)x;
}

static void momentum(tac_comm *comm, void *arg)
{
    double keep, average, reset;
    (void)arg;
    for (int64_t h = 1; h <= 4; h += 3)
        for (int same = 0; same < 2; same++) {
            keep = with_momentum(comm, h, TAC_MERGE_DEFAULT, same);
            average = with_momentum(comm, h, TAC_MERGE_AVERAGE, same);
            reset = with_momentum(comm, h, TAC_MERGE_RESET, same);
            CHECK(fabs(keep - reset) > 1e-3); /* the policy matters */
            if (h == 1 || same)
                CHECK_NEAR(keep, average, 1e-5);
            else
                CHECK(fabs(keep - average) > 1e-3);
        }
}

/* ---- 4: the same data everywhere ------------------------------------------
 */

static void same_data(tac_comm *comm, void *arg)
{
    /* 3x is rounded, 2x is not */
    const int size = tac_comm_size(comm), exact = size <= 2;
    const int64_t lengths[] = {1, 3, 8};
    (void)arg;
    for (int k = 0; k < 3; k++) {
        vec v;
        float alone[N] = {0};
        tac_localsgd_config c = preset(comm, "local", lengths[k]);
        if (size % 2 == 0) {
            c.n_levels = 2;
            c.levels[0] = (tac_sync_level){2, lengths[k]};
            c.levels[1] = (tac_sync_level){size, 2 * lengths[k]};
        }
        if (!vec_open(&v, comm, N, &c)) return;
        for (int64_t n = 1; n <= 24; n++) {
            for (size_t i = 0; i < N; i++) {
                v.x[i] -= (float)(RATE * slope(0, n, i, (double)v.x[i]));
                alone[i] -= (float)(RATE * slope(0, n, i, (double)alone[i]));
            }
            vec_step(&v, RATE, 1);
        }
        if (exact)
            CHECK_EQ_MEM(v.x, alone, sizeof alone);
        else
            expect_near(v.x, alone, "the same data");
        vec_close(&v);
    }
}

/* ---- 5: fixed points of unlike quadratics ---------------------------------
 */

static const double H5[] = {1, 0.2, 3, 0.5}, C5[] = {1, -2, 0.5, 4};
static const double W5[] = {1, 2, 3, 6};

static double fixed_point(double g, int64_t h, int weighted)
{
    double above = 0, below = 0;
    for (int m = 0; m < 4; m++) {
        const double w = weighted ? W5[m] : 1;
        const double q = 1 - pow(1 - g * H5[m], (double)h);
        above += w * q * C5[m];
        below += w * q;
    }
    return above / below;
}

static double converge(tac_comm *comm, tac_localsgd_config c, double g,
                       int rounds)
{
    vec v;
    const int m = tac_comm_rank(comm);
    if (!vec_open(&v, comm, 1, &c)) return NAN;
    for (int64_t n = 0; n < rounds * c.schedule.every; n++) {
        v.x[0] -= (float)(g * H5[m] * ((double)v.x[0] - C5[m]));
        vec_step(&v, g, W5[m]);
    }
    const double x = (double)v.x[0];
    vec_close(&v);
    return x;
}

static void quadratics(tac_comm *comm, void *arg)
{
    static const int64_t every[] = {1, 2, 4, 8, 16, 64, 1000};
    static const double known[] = {.872340,  .902879,  .958766, 1.045478,
                                   1.133213, 1.057173, .875000};
    (void)arg;
    for (int k = 0; k < 7; k++) {
        const int rounds = every[k] < 8 ? 300 / (int)every[k] : 40;
        tac_localsgd_config c = preset(comm, "local", every[k]);
        CHECK_NEAR(fixed_point(0.1, every[k], 0), known[k], 1e-6);
        CHECK_NEAR(converge(comm, c, 0.1, rounds), known[k], 2e-5);
        c.weighting = TAC_WEIGHT_SAMPLES;
        CHECK_NEAR(converge(comm, c, 0.1, rounds),
                   fixed_point(0.1, every[k], 1), 2e-5);
        c = preset(comm, "diloco", every[k]);
        CHECK_NEAR(converge(comm, c, 0.1, 4 * rounds), known[k], 5e-5);
        c.codec = "fp4"; /* feedback loses nothing for ever */
        if (k == 3) CHECK_NEAR(converge(comm, c, 0.1, 400), known[k], 1e-3);
    }
}

/* ---- 6, 7: noise, contraction ---------------------------------------------
 */

static void noise(tac_comm *comm, void *arg)
{
    enum { M = TESTS_SLOW ? 1500 : 6000 };
    const double a = 0.9, g = 0.1;
    (void)arg;
    for (int64_t h = 4; h <= 16; h += 12) {
        vec v;
        const int64_t total = 6 * h < 40 ? 40 : 6 * h;
        tac_localsgd_config c = preset(comm, "local", h);
        c.total = total;
        double sum = 0;
        if (!vec_open(&v, comm, M, &c)) return;
        for (int64_t n = 1; n <= total; n++) {
            const tac_rng_key key = {5, TAC_STREAM_USER + (uint32_t)v.rank,
                                     (uint64_t)n};
            for (size_t i = 0; i < M; i++)
                v.x[i] -=
                    (float)(g * ((double)v.x[i] + tac_rng_normal(&key, i)));
            vec_step(&v, g, 1);
        }
        CHECK_OK(tac_localsgd_finish(v.l));
        for (size_t i = 0; i < M; i++) sum += (double)v.x[i] * (double)v.x[i];
        const double k = v.size, b = 1 - a * a;
        const double var = g * g / (k * b);
        const double apart =
            (1 - 1 / k) * g * g * (1 - pow(a, 2.0 * (double)h)) / b;
        if (v.size == 8 && h == 16) CHECK_NEAR(var, .006579, 1e-6);
        if (v.size == 8 && h == 16) CHECK_NEAR(apart, .04447, 1e-5);
        /* six standard deviations of an estimate from M samples */
        CHECK_NEAR(sum / M, var, var * 6 * sqrt(2.0 / M));
        CHECK_NEAR(stats_of(v.l).consensus_distance / M, apart,
                   apart * 6 * sqrt(2.0 / M));
        vec_close(&v);
    }
}

static void contraction(tac_comm *comm, void *arg)
{
    vec v;
    const tac_localsgd_config c = preset(comm, "local", 7);
    (void)arg;
    if (!vec_open(&v, comm, 1, &c)) return;
    v.x[0] = 1;
    for (int64_t n = 1; n <= 35; n++) {
        v.x[0] *= 0.9f;
        vec_step(&v, 0.1, 1);
        if (n % 7 == 0) CHECK_NEAR(v.x[0], pow(0.9, (double)n), 1e-6);
    }
    vec_close(&v);
}

/* ---- 10: what is sent and what is owed ------------------------------------
 */

typedef struct sought {
    const char *name;
    float *out;
} sought;

static tac_status find_item(void *arg, const tac_state_item *item)
{
    const sought *s = arg;
    if (strcmp(item->name, s->name) == 0)
        memcpy(s->out, item->data, tac_state_item_count(item) * sizeof(float));
    return TAC_OK;
}

static void read_item(tac_localsgd *l, const char *name, float *out)
{
    sought s = {name, out};
    const tac_state_visitor v = {.visit = find_item, .arg = &s};
    CHECK_OK(tac_localsgd_walk(l, &v));
}

static void sum_over(tac_comm *comm, float *x, size_t n, tac_op op)
{
    tac_req *req = NULL;
    const tac_status s =
        tac_allreduce(comm, NULL, x, n, TAC_F32, op, NULL, &req);
    CHECK_OK(s < 0 ? s : tac_wait(req, 0));
}

static void feedback_of(tac_comm *comm, const char *codec)
{
    vec v;
    float before[N], delta[N], residual[N] = {0}, result[N] = {0};
    double rest[N] = {0}, worst = 0;
    tac_localsgd_config c = preset(comm, "local", 3);
    c.codec = codec;
    if (!vec_open(&v, comm, N, &c)) return;
    memset(before, 0, sizeof before);
    for (int64_t n = 1; n <= 60; n++) {
        for (size_t i = 0; i < N; i++)
            v.x[i] -= (float)(RATE * slope(v.rank, n, i, (double)v.x[i]));
        for (size_t i = 0; i < N; i++) delta[i] = before[i] - v.x[i];
        vec_step(&v, RATE, 1);
        if (n % 3) continue;
        sum_over(comm, delta, N, TAC_AVG);
        for (size_t i = 0; i < N; i++) {
            rest[i] += (double)delta[i];                   /* in */
            rest[i] -= (double)before[i] - (double)v.x[i]; /* out */
        }
        memcpy(before, v.x, sizeof before);
    }
    read_item(v.l, "localsgd.level0.codec.fragment 0.residual", residual);
    read_item(v.l, "localsgd.level0.codec.fragment 0.result", result);
    sum_over(comm, residual, N, TAC_AVG);
    sum_over(comm, result, N, TAC_SUM);
    for (size_t i = 0; i < N; i++)
        worst = fmax(worst, fabs(rest[i] - (double)(residual[i] + result[i])));
    CHECK_MSG(worst < 1e-5, "%s: %g is neither sent nor owed", codec, worst);
    vec_close(&v);
}

static void feedback(tac_comm *comm, void *arg)
{
    (void)arg;
    feedback_of(comm, "int8");
    feedback_of(comm, "fp4");
    feedback_of(comm, "fp4,stochastic");
    feedback_of(comm, "topk:0.1");
    feedback_of(comm, "topk:0.1,bits=2,chunk=16");
    feedback_of(comm, "topk:0.1,bits=4");
}

/* ---- 11: weights ----------------------------------------------------------
 */

static void weights(tac_comm *comm, void *arg)
{
    (void)arg;
    for (int kind = TAC_WEIGHT_SAMPLES; kind <= TAC_WEIGHT_STEPS; kind++)
        for (int anchored = 0; anchored < 2; anchored++) {
            vec v;
            double sum = 0, total = 0;
            tac_localsgd_config c =
                preset(comm, anchored ? "diloco" : "local", 4);
            c.outer.lr = 1;
            c.outer.momentum = 0;
            c.weighting = (tac_weighting)kind;
            if (!vec_open(&v, comm, 1, &c)) return;
            for (int n = 0; n < 4; n++) {
                v.x[0] = (float)v.rank;
                const int skipped = n < v.rank % 4;
                CHECK_OK(tac_localsgd_step(
                    v.l,
                    &(tac_local_step){.lr = 1,
                                      .loss = NAN,
                                      .samples = 2 * v.rank + 1,
                                      .skipped = skipped},
                    NULL));
            }
            for (int r = 0; r < v.size; r++) {
                const double w =
                    kind == TAC_WEIGHT_SAMPLES ? 2 * r + 1 : 4 - r % 4;
                sum += w * r;
                total += w;
            }
            CHECK_NEAR(v.x[0], sum / total, 1e-6 * v.size);
            vec_close(&v);
        }
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 4, 8};
    for (int i = 0; i < 5; i++) {
        with_threads(ranks[i], NULL, is_synchronous, NULL);
        with_threads(ranks[i], NULL, are_averaging, NULL);
        with_threads(ranks[i], NULL, is_adam, NULL);
        with_threads(ranks[i], NULL, same_data, NULL);
        with_threads(ranks[i], NULL, weights, NULL);
        with_threads(ranks[i], NULL, contraction, NULL);
    }
    with_threads(1, NULL, is_lookahead, NULL);
    with_threads(4, NULL, momentum, NULL);
    with_threads(4, NULL, quadratics, NULL);
    with_threads(8, NULL, noise, NULL);
    with_threads(2, NULL, feedback, NULL);
    with_threads(4, NULL, feedback, NULL);
    return tac_check_summary();
}
