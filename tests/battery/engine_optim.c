/* engine_optim.c: every optimizer, by every kernel set and in every type,
 * against definitions in f64, over random shapes and all settings; and that
 * found_inf leaves everything as it is, to the bit. */
#include "engine_optim_oracle.h"
#include "engine_test.h"
#include "tac_sanitized.h"
#include "tac_check.h"

enum { MOST_PARAMS = 12, STEPS = 5, SKIPPED = 2 };

/* A model of random shapes with its oracle. */
typedef struct model {
    eng_world w;
    tac_dtype dtype;
    size_t n;
    ora_tensor o[MOST_PARAMS];
    unsigned flags[MOST_PARAMS];
} model;

static uint64_t seed = 20240607;

static uint64_t below(uint64_t what, uint64_t bound)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, what};
    return tac_rng_below(&key, 0, bound);
}

/* Small ones of every kind, and two that threads share. */
static int shape_of(uint64_t id, size_t i, size_t *shape)
{
    static const size_t sizes[] = {1, 2, 3, 5, 7, 16, 17, 33};
    const size_t matrix[2] = {131, 257}, batch[4] = {41, 30, 5, 7};
    const size_t empty[2] = {3, 0};
    const int ndim = (int)(i % 5);
    if (i == 6 || i == 7 || i == 8) {
        const size_t *from = i == 6 ? matrix : i == 7 ? batch : empty;
        const int n = i == 7 ? 4 : 2;
        memcpy(shape, from, (size_t)n * sizeof *shape);
        return n;
    }
    for (int d = 0; d < ndim; ++d)
        shape[d] = sizes[below(id * 100 + i * 8 + (uint64_t)d, 8)];
    return ndim;
}

static model model_open(const char *isa, tac_dtype dtype, int threads,
                        uint64_t id, int large)
{
    model m = {.w = eng_open(isa, dtype, threads), .dtype = dtype};
    m.n = large ? 10 : 6;
    for (size_t i = 0; i < m.n; ++i) {
        size_t shape[TAC_MAX_DIMS];
        char name[32];
        const int ndim = shape_of(id, i, shape);
        snprintf(name, sizeof name, "%s%zu", i % 3 == 1 ? "group" : "p", i);
        m.flags[i] = i == 5   ? TAC_PARAM_FROZEN
                     : i == 2 ? TAC_PARAM_NO_DECAY
                              : 0;
        m.o[i] = ora_make(ndim, shape);
        CHECK_OK(tac_params_add(m.w.params, name, ndim, shape,
                                (tac_init){TAC_INIT_ZEROS, 0}, m.flags[i],
                                NULL));
    }
    CHECK_OK(tac_params_layout(m.w.params, NULL, NULL, NULL));
    for (size_t i = 0; i < m.n; ++i)
        for (size_t e = 0; e < m.o[i].n; ++e) {
            eng_set(dtype, tac_params_value(m.w.params, i), e,
                    eng_value(id, i, e));
            m.o[i].p[e] = eng_get(dtype, tac_params_value(m.w.params, i), e);
        }
    return m;
}

static void model_close(model *m)
{
    for (size_t i = 0; i < m->n; ++i) ora_free(&m->o[i]);
    eng_close(&m->w);
}

/* Gradients of a step, times the scale, or NaNs; a frozen one has none. */
static void set_grads(model *m, uint64_t step, double scale, int bad)
{
    const tac_dtype t = tac_params_grad_dtype(m->w.params);
    for (size_t i = 0; i < m->n; ++i) {
        for (size_t e = 0; e < m->o[i].n; ++e) {
            const double g = 2 * eng_value(step + 77, i, e);
            const int frozen = (m->flags[i] & TAC_PARAM_FROZEN) != 0;
            eng_set(t, tac_params_grad(m->w.params, i), e,
                    bad      ? (double)NAN
                    : frozen ? 0
                             : scale * g);
            m->o[i].g[e] =
                eng_get(t, tac_params_grad(m->w.params, i), e) / scale;
        }
    }
}

static double decay_of(const tac_optimizer_config *c, const model *m, size_t i)
{
    if (i % 3 == 1) return c->groups[0].weight_decay;
    if (m->flags[i] & TAC_PARAM_NO_DECAY) return 0;
    return c->decay == TAC_DECAY_ALL || m->o[i].ndim >= 2 ? c->weight_decay : 0;
}

static void oracle_step(model *m, const tac_optimizer_config *c, double lr,
                        double coef)
{
    for (size_t i = 0; i < m->n; ++i) {
        const double rate = i % 3 == 1 ? lr * c->groups[0].lr_scale : lr;
        if (m->flags[i] & TAC_PARAM_FROZEN) continue;
        for (size_t e = 0; e < m->o[i].n; ++e) m->o[i].g[e] *= coef;
        ora_step(&m->o[i], c, rate, decay_of(c, m, i));
    }
}

/* How far a value may be off: relative to 1, in units of the type. */
static double allowed(tac_dtype t, double x)
{
    if (t == TAC_F64) return 1e-12;
    if (t == TAC_F32) return 1e-6 * fmax(1, fabs(x));
    return (t == TAC_F16 ? 0x1p-11 : 0x1p-8) * fmax(0x1p-14, fabs(x)) * 1.01 +
           2e-6;
}

/* 16-bit values are compared step by step, as one rounding apart is one step
 * apart for ever. */
static int compare(model *m, const char *what)
{
    const int small = m->dtype == TAC_F16 || m->dtype == TAC_BF16;
    for (size_t i = 0; i < m->n; ++i) {
        const void *p = tac_params_value(m->w.params, i);
        for (size_t e = 0; e < m->o[i].n; ++e) {
            const double got = eng_get(m->dtype, p, e), want = m->o[i].p[e];
            if (!(fabs(got - want) <= allowed(m->dtype, want)))
                return CHECK_FAIL("%s: parameter %zu, element %zu of %zu is "
                                  "%.9g, not %.9g",
                                  what, i, e, m->o[i].n, got, want);
            if (small) m->o[i].p[e] = got;
        }
    }
    return CHECK(1);
}

/* ------------------------------------------------- state against oracle */

typedef struct look {
    model *m;
    const char *what;
    size_t seen;
} look;

static const double *state_of(const ora_tensor *o, const char *name)
{
    if (strstr(name, ".exp_avg_sq_row.")) return o->row;
    if (strstr(name, ".exp_avg_sq_col.")) return o->col;
    if (strstr(name, ".exp_avg_sq.")) return o->v;
    return o->m; /* exp_avg, momentum_buffer */
}

static tac_status see(void *arg, const tac_state_item *item)
{
    look *l = arg;
    const char *name = strrchr(item->name, '.');
    if (item->dtype == TAC_I64) return TAC_OK; /* applied */
    const size_t i = tac_params_find(l->m->w.params, name + 1);
    if (!CHECK_MSG(i < l->m->n, "%s", item->name)) return TAC_OK;
    const double *want = state_of(&l->m->o[i], item->name);
    /* Sums of squares lose nothing, so their error is relative. */
    const double floor = strstr(item->name, "_sq") ? 0 : 1;
    const double tol = l->m->dtype == TAC_F64 ? 1e-12 : 1e-6;
    for (size_t e = 0; e < tac_state_item_count(item); ++e) {
        const double got = eng_get(item->dtype, item->data, e);
        if (fabs(got - want[e]) <= tol * fmax(floor, fabs(want[e]))) continue;
        CHECK_FAIL("%s: %s[%zu] is %.9g, not %.9g", l->what, item->name, e, got,
                   want[e]);
        return TAC_OK;
    }
    l->seen += 1;
    return TAC_OK;
}

/* ------------------------------------------------ everything, as one hash */

static tac_status hash_item(void *arg, const tac_state_item *item)
{
    uint64_t *h = arg;
    const unsigned char *x = item->data;
    const size_t bytes =
        tac_state_item_count(item) * tac_dtype_size(item->dtype);
    for (size_t i = 0; i < bytes; ++i)
        *h = (*h ^ x[i]) * UINT64_C(0x100000001b3);
    return TAC_OK;
}

static uint64_t hash_all(model *m, tac_optimizer *o)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const tac_state_visitor v = {hash_item, &h, NULL};
    CHECK_OK(tac_params_walk(m->w.params, &v));
    CHECK_OK(tac_optimizer_walk(o, &v));
    return h;
}

/* --------------------------------------------------------- one setting */

static double norm_of(const model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n; ++i)
        for (size_t e = 0; e < m->o[i].n; ++e)
            sum += m->o[i].g[e] * m->o[i].g[e];
    return sqrt(sum);
}

/* One step that counts: scaled, perhaps clipped. */
static void step_both(model *m, tac_optimizer *o, const tac_optimizer_config *c,
                      uint64_t step, double lr)
{
    static const float scales[] = {1, 1024, 0.25F, 65536, 3};
    const float scale = scales[step % 5];
    double coef = 1;
    set_grads(m, step, (double)scale, 0);
    CHECK_OK(tac_optimizer_set_grad_scale(o, &scale, NULL));
    CHECK_OK(tac_optimizer_set_lr(o, lr, NULL));
    if (step % 2 == 1) {
        const double norm = norm_of(m), most = 0.3 * norm;
        CHECK_OK(tac_optimizer_clip(o, most, NULL));
        CHECK_NEAR(*tac_optimizer_norm(o), norm, 1e-6 * norm);
        coef = most / (norm + 1e-6);
    }
    CHECK_OK(tac_optimizer_step(o, NULL));
    oracle_step(m, c, lr, coef);
}

static void skip_one(model *m, tac_optimizer *o)
{
    const uint64_t before = hash_all(m, o);
    tac_step_scalars s;
    set_grads(m, 1000, 1, 1);
    CHECK_OK(tac_optimizer_check(o, NULL));
    CHECK_OK(tac_optimizer_step(o, NULL));
    CHECK_EQ_U64(hash_all(m, o), before);
    CHECK_OK(tac_optimizer_read(o, &s, NULL));
    CHECK_EQ_F64((double)s.found_inf, 1.0);
    CHECK_EQ(*tac_optimizer_first_bad(o), 0);
    CHECK_OK(tac_optimizer_clear_found_inf(o, NULL));
    CHECK_OK(tac_optimizer_read(o, &s, NULL));
    CHECK_EQ_F64((double)s.found_inf, 0.0);
    CHECK_EQ_U64(*tac_optimizer_first_bad(o), UINT64_MAX);
}

typedef struct where {
    const char *isa;
    tac_dtype dtype;
    int threads;
} where;

static void check_setting(const where *at, tac_optimizer_config c, uint64_t id,
                          int large)
{
    const tac_param_group group = {"group*", 0.5, 0.2, 0};
    model m = model_open(at->isa, at->dtype, at->threads, id, large);
    tac_optimizer *o = NULL;
    char what[160];
    c.groups = &group;
    c.n_groups = 1;
    tac_optimizer_config r = c;
    ora_round(&r, at->dtype);
    const double lr = isnan(c.lr) ? 1 : c.lr;
    snprintf(what, sizeof what, "%s %s, %d threads, %s, setting %llu", at->isa,
             tac_dtype_name(at->dtype), at->threads,
             tac_optimizer_kind_name(c.kind), (unsigned long long)id);
    if (!CHECK_OK(tac_optimizer_create(m.w.params, &c, &o))) return;
    for (uint64_t step = 0; step < STEPS; ++step) {
        if (step == SKIPPED) skip_one(&m, o);
        step_both(&m, o, &r, step, lr * (1 + 0.1 * (double)step));
        if (!compare(&m, what)) break;
    }
    look l = {&m, what, 0};
    const tac_state_visitor v = {see, &l, NULL};
    CHECK_OK(tac_optimizer_walk(o, &v));
    CHECK(l.seen > 0 || (c.kind == TAC_OPTIMIZER_SGD && c.momentum == 0));
    CHECK_EQ(tac_optimizer_scalars(o)->applied, STEPS);
    tac_optimizer_destroy(o);
    model_close(&m);
}

/* --------------------------------------------------------- all settings */

static void check_sgd(const where *at)
{
    for (unsigned k = 0; k < 24; ++k) {
        tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
        c.lr = 0.05;
        c.decay = k % 2 ? TAC_DECAY_ALL : TAC_DECAY_MATRICES;
        c.weight_decay = k / 2 % 2 ? 0.1 : 0;
        c.momentum = k / 4 > 0 ? 0.9 : 0;
        c.dampening = k / 4 == 2 ? 0.3 : 0;
        c.nesterov = k / 4 == 3;
        if (k / 4 > 3) continue;
        check_setting(at, c, k, k % 8 == 7);
    }
}

static void check_adamw(const where *at, tac_optimizer_kind kind)
{
    for (unsigned k = 0; k < 12; ++k) {
        tac_optimizer_config c = tac_optimizer_defaults(kind);
        c.lr = 0.01;
        c.decay = k % 2 ? TAC_DECAY_ALL : TAC_DECAY_MATRICES;
        c.weight_decay = k / 2 % 2 ? 0.3 : 0;
        c.beta1 = k / 4 == 1 ? 0.5 : k / 4 == 2 ? 0 : 0.9;
        c.beta2 = k / 4 == 1 ? 0.95 : 0.999;
        c.eps = k / 4 == 1 ? 0.1 : k / 4 == 2 ? 0 : 1e-8;
        /* dense here; the codes have a battery of their own */
        if (kind == TAC_OPTIMIZER_ADAMW8BIT) c.min_8bit_size = 1 << 30;
        check_setting(at, c, 100 + k, k == 3);
    }
}

static void check_adafactor(const where *at)
{
    for (unsigned k = 0; k < 48; ++k) {
        tac_optimizer_config c =
            tac_optimizer_defaults(TAC_OPTIMIZER_ADAFACTOR);
        c.scale_parameter = k % 2;
        c.relative_step = k / 2 % 3 > 0;
        c.warmup_init = k / 2 % 3 == 2;
        if (!c.relative_step) c.lr = 0.02;
        if (k / 6 % 2) c.beta1 = 0.9;
        c.weight_decay = k / 12 % 2 ? 0.5 : 0;
        c.clip_threshold = k / 24 % 2 ? 0.3 : 1;
        c.decay_rate = k % 5 == 4 ? -0.5 : -0.8;
        check_setting(at, c, 200 + k, k == 3 || k == 18);
    }
}

static void check_where(const where *at)
{
    const long failed = tac_check_failed();
    check_sgd(at);
    check_adamw(at, TAC_OPTIMIZER_ADAMW);
    check_adafactor(at);
    if (at->dtype != TAC_F64) check_adamw(at, TAC_OPTIMIZER_ADAMW8BIT);
    if (tac_check_failed() > failed)
        fprintf(stderr, "in %s, %s, %d threads\n", at->isa,
                tac_dtype_name(at->dtype), at->threads);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    printf("seed %llu\n", (unsigned long long)seed);
    if (!TESTS_SLOW) check_where(&(where){"ref", TAC_F64, 1});
    check_where(&(where){"ref", TAC_F64, 3});
    for (size_t i = 0; sets[i]; ++i) {
        if (!sets[i]->available(why, sizeof why)) continue;
        check_where(&(where){sets[i]->name, TAC_F32, 1 + 2 * (int)(i % 2)});
    }
    check_where(&(where){"ref", TAC_F16, 2});
    check_where(&(where){NULL, TAC_BF16, 2});
    return tac_check_summary();
}
