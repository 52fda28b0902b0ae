/* engine_attention.c: attention, kernels and operation.
 *
 * The kernels of every set and type against an oracle in f64 that writes out
 * all scores and, backwards, the whole Jacobian of the softmax; keys that a
 * causal query can't see hold not-a-numbers; products far beyond f16. Then
 * gradients through the tape. */
#include <stdio.h>

#include "engine_arrays.h"
#include "engine_gradient.h"

typedef struct rig {
    const char *isa;
    tac_dtype t;
    const tac_kernels *k;
    tac_kctx kc;
    char what[160];
} rig;

#define SAY(r, ...)        snprintf((r)->what, sizeof(r)->what, __VA_ARGS__)
#define RUN(r, entry, ...) CHECK_OK((r)->k->entry(&(r)->kc, __VA_ARGS__))

typedef struct head {
    tac_attention d;
    array q, k, v, dy, y, probs, dq, dk, dv;
} head;

static head make(const rig *r, tac_attention d)
{
    const size_t nq = d.b * d.tq * d.d, nk = d.b * d.tk * d.d;
    const tac_dtype t = r->t;
    head h = {.d = d};

    h.q = array_random(t, nq, 1, 0, 2);
    h.k = array_random(t, nk, 2, 0, 2);
    h.v = array_random(t, nk, 3, 0.5, 1);
    h.dy = array_random(t, nq, 4, 0, 1);
    h.y = array_poison(t, nq);
    h.probs = array_poison(wide(t), d.b * d.tq * d.tk);
    h.dq = array_poison(t, nq);
    h.dk = array_poison(t, nk);
    h.dv = array_poison(t, nk);
    SAY((rig *)(uintptr_t)r, "%s %s b %zu tq %zu tk %zu d %zu causal %d",
        r->isa, tac_dtype_name(t), d.b, d.tq, d.tk, d.d, d.causal);
    return h;
}

static void head_free(head *h)
{
    ARRAYS_FREE(&h->q, &h->k, &h->v, &h->dy, &h->y, &h->probs, &h->dq, &h->dk,
                &h->dv);
}

static void forward(rig *r, head *h)
{
    RUN(r, attention_forward, &h->d, h->q.p, h->k.p, h->v.p, h->y.p,
        h->probs.p);
}

static void backward(rig *r, head *h)
{
    RUN(r, attention_backward, &h->d, h->q.p, h->k.p, h->v.p, h->probs.p,
        h->dy.p, h->dq.p, h->dk.p, h->dv.p);
}

/* --- the oracle --- */

static int visible(const tac_attention *d, size_t i, size_t j)
{
    return !d->causal || (long)j <= (long)i + (long)d->tk - (long)d->tq;
}

static double product(const array *a, size_t ra, const array *b, size_t rb,
                      size_t d, int magnitude)
{
    double sum = 0;

    for (size_t e = 0; e < d; ++e) {
        const double p = at(a, ra * d + e) * at(b, rb * d + e);
        sum += magnitude ? fabs(p) : p;
    }
    return sum;
}

/* p (tk): the softmax of one query; returns the size of the scores, by which
 * their errors are multiplied. Nothing visible: all 0. */
static double softmax(const head *h, size_t b, size_t i, double *p)
{
    const tac_attention *d = &h->d;
    double max = -HUGE_VAL, sum = 0, size = 0;

    for (size_t j = 0; j < d->tk; ++j) {
        if (!visible(d, i, j)) continue;
        const size_t q = b * d->tq + i, k = b * d->tk + j;
        p[j] = d->scale * product(&h->q, q, &h->k, k, d->d, 0);
        const double m = fabs(d->scale) * product(&h->q, q, &h->k, k, d->d, 1);
        size = m > size ? m : size;
        max = p[j] > max ? p[j] : max;
    }
    for (size_t j = 0; j < d->tk; ++j) {
        p[j] = visible(d, i, j) ? exp(p[j] - max) : 0;
        sum += p[j];
    }
    for (size_t j = 0; j < d->tk && sum > 0; ++j) p[j] /= sum;
    return 2 + 2 * size;
}

/* Gradients of the whole problem, with their magnitudes. */
typedef struct sums {
    double *q, *k, *v, *qm, *km, *vm;
} sums;

static sums sums_make(const head *h)
{
    double *z = calloc(2 * h->q.n + 4 * h->k.n + 1, sizeof *z);
    double *k = z + 2 * h->q.n;
    return (sums){z, k, k + 2 * h->k.n, z + h->q.n, k + h->k.n, k + 3 * h->k.n};
}

static void add(double *to, double *mag, const array *x, size_t row, size_t d,
                double factor, double size)
{
    for (size_t e = 0; e < d; ++e) {
        to[e] += factor * at(x, row * d + e);
        mag[e] += size * fabs(at(x, row * d + e));
    }
}

/* Query row: ds_j by the softmax's Jacobian, sum over k of
 * g_k p_k (k == j - p_j), g = dy . v. */
static void add_query(const head *h, size_t b, size_t i, const double *p,
                      double size, sums *s)
{
    const tac_attention *d = &h->d;
    const size_t q = b * d->tq + i;

    for (size_t j = 0; j < d->tk; ++j) {
        const size_t key = b * d->tk + j;
        double ds = 0, mag = 0;
        for (size_t k = 0; k < d->tk; ++k) {
            if (p[k] == 0 || p[j] == 0) continue;
            const size_t other = b * d->tk + k;
            const double slope = d->scale * p[k] * ((k == j) - p[j]);
            ds += slope * product(&h->dy, q, &h->v, other, d->d, 0);
            mag += fabs(d->scale) * p[k] * ((k == j) + p[j]) *
                   product(&h->dy, q, &h->v, other, d->d, 1) * size;
        }
        if (!visible(d, i, j)) continue;
        add(s->q + q * d->d, s->qm + q * d->d, &h->k, key, d->d, ds, mag);
        add(s->k + key * d->d, s->km + key * d->d, &h->q, q, d->d, ds, mag);
        add(s->v + key * d->d, s->vm + key * d->d, &h->dy, q, d->d, p[j],
            p[j] * size);
    }
}

static void check_row(rig *r, const head *h, size_t b, size_t i,
                      const double *p, double size)
{
    const tac_attention *d = &h->d;
    const size_t q = b * d->tq + i;

    for (size_t j = 0; j < d->tk; ++j)
        array_near(&h->probs, q * d->tk + j, p[j], p[j] * size, r->t, r->what);
    for (size_t e = 0; e < d->d; ++e) {
        double want = 0, mag = 0;
        for (size_t j = 0; j < d->tk; ++j) {
            if (!visible(d, i, j)) continue;
            const double v = at(&h->v, (b * d->tk + j) * d->d + e);
            want += p[j] * v;
            mag += p[j] * fabs(v) * size;
        }
        array_near(&h->y, q * d->d + e, want, mag, r->t, r->what);
    }
}

static void check_all(rig *r, const array *x, const double *want,
                      const double *mag)
{
    for (size_t i = 0; i < x->n; ++i)
        array_near(x, i, want[i], mag[i], r->t, r->what);
}

static void check(rig *r, const head *h)
{
    double *p = calloc(h->d.tk + 1, sizeof *p);
    sums s = sums_make(h);

    for (size_t b = 0; b < h->d.b; ++b)
        for (size_t i = 0; i < h->d.tq; ++i) {
            const double size = softmax(h, b, i, p);
            check_row(r, h, b, i, p, size);
            add_query(h, b, i, p, size, &s);
        }
    check_all(r, &h->dq, s.q, s.qm);
    check_all(r, &h->dk, s.k, s.km);
    check_all(r, &h->dv, s.v, s.vm);
    free(s.q);
    free(p);
}

/* --- kernels --- */

static void compare(rig *r, tac_attention d)
{
    head h = make(r, d);
    array y = array_poison(r->t, h.y.n);

    forward(r, &h);
    backward(r, &h);
    check(r, &h);
    RUN(r, attention_forward, &h.d, h.q.p, h.k.p, h.v.p, y.p, NULL);
    array_same(&y, &h.y, "y without probs");
    head_free(&h);
    guarded_free(y.p);
}

/* Each gradient alone has the bits that it has with the others. */
static void one_by_one(rig *r)
{
    const tac_attention d = {2, 5, 6, 7, 0.4, 1};
    head all = make(r, d), h = make(r, d);

    forward(r, &all);
    backward(r, &all);
    RUN(r, attention_backward, &d, h.q.p, h.k.p, h.v.p, all.probs.p, h.dy.p,
        h.dq.p, NULL, NULL);
    RUN(r, attention_backward, &d, h.q.p, h.k.p, h.v.p, all.probs.p, h.dy.p,
        NULL, h.dk.p, NULL);
    RUN(r, attention_backward, &d, h.q.p, h.k.p, h.v.p, all.probs.p, h.dy.p,
        NULL, NULL, h.dv.p);
    array_same(&h.dq, &all.dq, "dq alone");
    array_same(&h.dk, &all.dk, "dk alone");
    array_same(&h.dv, &all.dv, "dv alone");
    head_free(&all);
    head_free(&h);
}

/* The last key is a not-a-number: only the query that sees it notices. */
static void hidden_keys(rig *r)
{
    enum { T = 6, D = 5 };
    const tac_attention d = {1, T, T, D, 0.7, 1};
    head clean = make(r, d), h = make(r, d);

    for (size_t e = 0; e < D; ++e) {
        put(h.k.p, r->t, (T - 1) * D + e, (double)NAN);
        put(h.v.p, r->t, (T - 1) * D + e, HUGE_VAL);
    }
    forward(r, &clean);
    forward(r, &h);
    for (size_t i = 0; i < (T - 1) * D; ++i)
        CHECK_EQ_F64(at(&h.y, i), at(&clean.y, i));
    for (size_t i = 0; i < (T - 1) * T; ++i)
        CHECK_EQ_F64(at(&h.probs, i), at(&clean.probs, i));
    CHECK(isnan(at(&h.y, (T - 1) * D)));
    backward(r, &h);
    backward(r, &clean);
    for (size_t i = 0; i < (T - 1) * D; ++i)
        CHECK_EQ_F64(at(&h.dq, i), at(&clean.dq, i));
    head_free(&clean);
    head_free(&h);
}

/* Products of up to 64 * 320 * 320 = 6.5e6, exact in f32: no overflow, and
 * what f64 gives. */
static void large_products(rig *r)
{
    const tac_attention d = {1, 9, 9, 64, 1, 1};
    head h = make(r, d);

    for (size_t i = 0; i < h.q.n; ++i) {
        put(h.q.p, r->t, i, random_unit(20, i) < 0 ? -320 : 320);
        put(h.k.p, r->t, i, random_unit(21, i) < 0.5F ? -320 : 320);
    }
    for (size_t e = 0; e < 64; ++e) /* a query that is its key: 6.5e6 */
        put(h.k.p, r->t, 5 * 64 + e, at(&h.q, 5 * 64 + e));
    SAY(r, "%s %s large products", r->isa, tac_dtype_name(r->t));
    forward(r, &h);
    backward(r, &h);
    double *p = calloc(9, sizeof *p);
    for (size_t i = 0; i < 9; ++i) {
        (void)softmax(&h, 0, i, p);
        check_row(r, &h, 0, i, p, 2);
    }
    CHECK_EQ_F64(at(&h.probs, 5 * 9 + 5), 1.0);
    for (size_t i = 0; i < h.dq.n; ++i)
        CHECK(isfinite(at(&h.dq, i)) && isfinite(at(&h.dk, i)) &&
              isfinite(at(&h.dv, i)));
    free(p);
    head_free(&h);
}

static void kernels_of(rig *r)
{
    static const tac_attention shapes[] = {
        {0, 3, 3, 4, 1, 0},      {2, 0, 4, 3, 1, 0},
        {2, 4, 0, 3, 1, 0},      {2, 3, 3, 0, 1, 1},
        {1, 1, 1, 1, 1, 1},      {2, 3, 3, 4, 0.5, 0},
        {1, 5, 7, 3, 0.6, 1},    {2, 7, 5, 3, 0.6, 1},
        {1, 5, 1, 2, 1, 1},      {3, 17, 33, 65, 0.1, 0},
        {3, 17, 33, 65, 0.1, 1}, {1, 9, 9, 64, -0.2, 1},
        {2, 4, 40, 8, 0, 0},
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        compare(r, shapes[i]);
    one_by_one(r);
    hidden_keys(r);
    large_products(r);
}

static head run_with(const char *isa, tac_dtype t, int threads)
{
    eng_world w = eng_open(isa, TAC_F32, threads);
    rig r = {.isa = isa,
             .t = t,
             .k = tac_device_kernels(w.dev, t),
             .kc = tac_device_kctx(w.dev, NULL)};
    head h = make(&r, (tac_attention){5, 13, 11, 20, 0.25, 1});

    forward(&r, &h);
    backward(&r, &h);
    eng_close(&w);
    return h;
}

static void any_threads(const char *isa, tac_dtype t)
{
    head one = run_with(isa, t, 1);

    for (int threads = 2; threads < 4; ++threads) {
        head h = run_with(isa, t, threads);
        array_same(&h.y, &one.y, "y, threads");
        array_same(&h.dq, &one.dq, "dq, threads");
        array_same(&h.dk, &one.dk, "dk, threads");
        array_same(&h.dv, &one.dv, "dv, threads");
        head_free(&h);
    }
    head_free(&one);
}

/* --- through the tape --- */

static tac_status plain(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    return tac_op_attention(t, in[0], in[1], in[2], 0.5, 0, y);
}

static tac_status causal(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    return tac_op_attention(t, in[0], in[1], in[2], 0.7, 1, y);
}

static tac_status one_tensor(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    return tac_op_attention(t, in[0], in[0], in[0], 0.7, 1, y);
}

/* Keys are values; the query has another consumer before and one after. */
static tac_status shared(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    tac_tensor *a;

    TAC_TRY(tac_op_relu(t, in[0], &a));
    TAC_TRY(tac_op_attention(t, in[0], in[1], in[1], 0.7, 0, y));
    TAC_TRY(tac_op_dropout(t, *y, 0.2F, y));
    TAC_TRY(tac_op_add(t, *y, a, y));
    return tac_op_add(t, *y, in[0], y);
}

/* A layer: projections, attention, residual. */
static tac_status layer(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    tac_tensor *q, *k, *v;

    TAC_TRY(tac_op_linear(t, in[0], in[1], NULL, TAC_ACT_NONE, &q));
    TAC_TRY(tac_op_linear(t, in[0], in[2], NULL, TAC_ACT_NONE, &k));
    TAC_TRY(tac_op_linear(t, in[0], in[3], NULL, TAC_ACT_NONE, &v));
    TAC_TRY(tac_op_attention(t, q, k, v, 0.4, 1, y));
    return tac_op_add(t, *y, in[0], y);
}

static const graph graphs[] = {
    {"plain",
     plain,
     {{3, {2, 3, 4}}, {3, {2, 5, 4}}, {3, {2, 5, 4}}},
     {{0, {0}}}},
    {"causal",
     causal,
     {{3, {1, 4, 3}}, {3, {1, 6, 3}}, {3, {1, 6, 3}}},
     {{0, {0}}}},
    {"causal, few keys",
     causal,
     {{3, {1, 6, 3}}, {3, {1, 4, 3}}, {3, {1, 4, 3}}},
     {{0, {0}}}},
    {"one key",
     plain,
     {{3, {1, 1, 2}}, {3, {1, 1, 2}}, {3, {1, 1, 2}}},
     {{0, {0}}}},
    {"parameters", plain, {{3, {1, 3, 2}}}, {{3, {1, 4, 2}}, {3, {1, 4, 2}}}},
    {"one tensor", one_tensor, {{3, {2, 4, 3}}}, {{0, {0}}}},
    {"one parameter", one_tensor, {{0, {0}}}, {{3, {1, 4, 3}}}},
    {"shared", shared, {{3, {2, 4, 3}}, {3, {2, 4, 3}}}, {{0, {0}}}},
    {"layer", layer, {{3, {2, 3, 4}}}, {{2, {4, 4}}, {2, {4, 4}}, {2, {4, 4}}}},
};

static void bad_arguments(void)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    const size_t a[3] = {2, 3, 4}, b[3] = {2, 5, 4}, c[3] = {1, 3, 4};
    tac_tensor *q, *k, *other, *y = NULL;
    char text[512];

    CHECK_OK(tac_tape_create(w.params, NULL, &w.tape));
    CHECK_OK(tac_tape_begin(w.tape, &(tac_tape_step){.flags = TAC_TAPE_DRY}));
    CHECK_OK(tac_tape_input(w.tape, "query", TAC_F32, 3, a, NULL, 0, &q));
    CHECK_OK(tac_tape_input(w.tape, "key", TAC_F32, 3, b, NULL, 0, &k));
    CHECK_OK(tac_tape_input(w.tape, "other", TAC_F32, 3, c, NULL, 0, &other));
    CHECK_OK(tac_op_attention(w.tape, q, k, k, 1, 0, &y));
    y = NULL;
    CHECK_STATUS(tac_op_attention(w.tape, q, k, q, 1, 0, &y), TAC_ERR_ARG);
    CHECK(strstr(eng_error(&w, text, sizeof text), "key (2,5,4)") != NULL);
    CHECK_STATUS(tac_op_attention(w.tape, other, k, k, 1, 0, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_attention(w.tape, q, NULL, k, 1, 0, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_attention(w.tape, q, k, k, HUGE_VAL, 0, &y),
                 TAC_ERR_ARG);
    CHECK(y == NULL);
    eng_close(&w);
}

static void test_type(rig *r)
{
    kernels_of(r);
    any_threads(r->isa, r->t);
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; ++g)
        graph_check_type(&graphs[g], r->isa, r->t);
    printf("%s %s: %ld failures so far\n", r->isa, tac_dtype_name(r->t),
           tac_check_failed());
}

/* A set that overrides nothing of this has been tested before it. */
static void test_set(const char *isa)
{
    static const tac_dtype types[] = {TAC_F64, TAC_F32, TAC_F16, TAC_BF16};
    static tac_kernels before[4];
    eng_world w = eng_open(isa, TAC_F32, 2);

    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        rig r = {.isa = isa,
                 .t = types[i],
                 .k = tac_device_kernels(w.dev, types[i]),
                 .kc = tac_device_kctx(w.dev, NULL)};
        if (!CHECK(r.k != NULL)) continue;
        if (r.k->attention_forward != before[i].attention_forward ||
            r.k->attention_backward != before[i].attention_backward)
            test_type(&r);
        before[i] = *r.k;
    }
    eng_close(&w);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];

    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; ++g)
        graph_check_differences(&graphs[g]);
    bad_arguments();
    for (size_t s = 0; sets[s] != NULL; ++s)
        if (sets[s]->available(why, sizeof why)) test_set(sets[s]->name);
    return tac_check_summary();
}
