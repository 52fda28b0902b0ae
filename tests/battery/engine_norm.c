/* engine_norm.c: layer normalisation, kernels and operation.
 *
 * The kernels of every set and type against an oracle in f64 that knows the
 * forward formula and, for dx, the whole Jacobian of a row; then gradients
 * through the tape. Inputs with an offset a thousand times their spread: one
 * pass over squares would lose everything. */
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

/* --- the oracle: one row --- */

typedef struct row {
    double mean, rstd;
} row;

static row statistics(const array *x, size_t i, size_t c, double eps)
{
    row r = {0, 0};
    double variance = 0;

    for (size_t j = 0; j < c; ++j) r.mean += at(x, i * c + j) / (double)c;
    for (size_t j = 0; j < c; ++j)
        variance += pow(at(x, i * c + j) - r.mean, 2) / (double)c;
    r.rstd = 1 / sqrt(variance + eps);
    return r;
}

static double hat(const array *x, size_t i, row r)
{
    return (at(x, i) - r.mean) * r.rstd;
}

/* What was subtracted to get hat: the errors of x and mean are of its size. */
static double hat_mag(const array *x, size_t i, row r)
{
    return (fabs(at(x, i)) + fabs(r.mean)) * r.rstd;
}

/* --- kernels --- */

typedef struct layer {
    tac_layer_norm d;
    array x, w, b, dy, y, mean, rstd, dx, dw, db, dx0, dw0, db0;
} layer;

/* accumulate: the gradients' outputs start as numbers. */
static layer make(const rig *r, size_t n, size_t c, double offset,
                  int accumulate)
{
    const tac_dtype t = r->t, a = wide(t);
    layer l = {.d = {n, c, 1e-5}};

    l.x = array_random(t, n * c, 1, offset, 1);
    l.w = array_random(t, c, 2, 0, 2);
    l.b = array_random(t, c, 3, 0, 1);
    l.dy = array_random(t, n * c, 4, 0, 1);
    l.y = array_poison(t, n * c);
    l.mean = array_poison(a, n);
    l.rstd = array_poison(a, n);
    l.dx0 =
        accumulate ? array_random(t, n * c, 5, 0, 1) : array_poison(t, n * c);
    l.dw0 = accumulate ? array_random(a, c, 6, 0, 1) : array_poison(a, c);
    l.db0 = accumulate ? array_random(a, c, 7, 0, 1) : array_poison(a, c);
    l.dx = array_copy(&l.dx0);
    l.dw = array_copy(&l.dw0);
    l.db = array_copy(&l.db0);
    return l;
}

static void layer_free(layer *l)
{
    ARRAYS_FREE(&l->x, &l->w, &l->b, &l->dy, &l->y, &l->mean, &l->rstd, &l->dx,
                &l->dw, &l->db, &l->dx0, &l->dw0, &l->db0);
}

static void check_forward(rig *r, const layer *l, int bias)
{
    const size_t c = l->d.c;

    for (size_t i = 0; i < l->d.n; ++i) {
        const row s = statistics(&l->x, i, c, l->d.eps);
        array_near(&l->mean, i, s.mean, fabs(s.mean) + 1, r->t, r->what);
        array_near(&l->rstd, i, s.rstd, s.rstd * (1 + fabs(s.mean) * s.rstd),
                   r->t, r->what);
        for (size_t j = 0; j < c; ++j) {
            const double w = at(&l->w, j), b = bias ? at(&l->b, j) : 0;
            array_near(&l->y, i * c + j, hat(&l->x, i * c + j, s) * w + b,
                       hat_mag(&l->x, i * c + j, s) * fabs(w) + fabs(b), r->t,
                       r->what);
        }
    }
}

/* By the Jacobian: d hat_k / d x_j = rstd (k == j - 1/c - hat_k hat_j / c). */
static void check_dx(rig *r, const layer *l, size_t i, int accumulate)
{
    const size_t c = l->d.c;
    const row s = statistics(&l->x, i, c, l->d.eps);

    for (size_t j = 0; j < c; ++j) {
        const double hj = hat(&l->x, i * c + j, s);
        double want = accumulate ? at(&l->dx0, i * c + j) : 0;
        double mag = fabs(want);
        for (size_t k = 0; k < c; ++k) {
            const double g = at(&l->dy, i * c + k) * at(&l->w, k);
            const double hk = hat(&l->x, i * c + k, s);
            want += g * s.rstd * ((k == j) - (1 + hk * hj) / (double)c);
            mag += fabs(g) * s.rstd *
                   ((k == j) + (1 + hat_mag(&l->x, i * c + k, s) *
                                        hat_mag(&l->x, i * c + j, s)) /
                                   (double)c);
        }
        array_near(&l->dx, i * c + j, want, mag, r->t, r->what);
    }
}

/* `s`: the statistics of all rows. */
static void check_column(rig *r, const layer *l, const row *s, size_t j,
                         int accumulate)
{
    const size_t c = l->d.c;
    double dw = accumulate ? at(&l->dw0, j) : 0, dw_mag = fabs(dw);
    double db = accumulate ? at(&l->db0, j) : 0, db_mag = fabs(db);

    for (size_t i = 0; i < l->d.n; ++i) {
        const double g = at(&l->dy, i * c + j);
        dw += g * hat(&l->x, i * c + j, s[i]);
        dw_mag += fabs(g) * hat_mag(&l->x, i * c + j, s[i]);
        db += g;
        db_mag += fabs(g);
    }
    array_near(&l->dw, j, dw, dw_mag, r->t, r->what);
    array_near(&l->db, j, db, db_mag, r->t, r->what);
}

static void check_weights(rig *r, const layer *l, int accumulate)
{
    row *s = calloc(l->d.n + 1, sizeof *s);

    for (size_t i = 0; i < l->d.n; ++i)
        s[i] = statistics(&l->x, i, l->d.c, l->d.eps);
    for (size_t j = 0; j < l->d.c; ++j) check_column(r, l, s, j, accumulate);
    free(s);
}

static void run_backward(rig *r, layer *l, int accumulate)
{
    RUN(r, layer_norm_backward, &l->d, l->x.p, l->w.p, l->mean.p, l->rstd.p,
        l->dy.p, l->dx.p, accumulate, l->dw.p, l->db.p, accumulate);
}

static void compare(rig *r, size_t n, size_t c, double offset, int accumulate)
{
    layer l = make(r, n, c, offset, accumulate);

    SAY(r, "%s %s layer_norm %zux%zu offset %g accumulate %d", r->isa,
        tac_dtype_name(r->t), n, c, offset, accumulate);
    RUN(r, layer_norm_forward, &l.d, l.x.p, l.w.p, l.b.p, l.y.p, l.mean.p,
        l.rstd.p);
    check_forward(r, &l, 1);
    run_backward(r, &l, accumulate);
    for (size_t i = 0; i < n; ++i) check_dx(r, &l, i, accumulate);
    check_weights(r, &l, accumulate);
    layer_free(&l);
}

/* What is not wanted changes nothing about the rest. */
static void without(rig *r, size_t n, size_t c)
{
    layer all = make(r, n, c, 0, 0), l = make(r, n, c, 0, 0);
    array y = array_poison(r->t, n * c);

    SAY(r, "%s %s layer_norm %zux%zu, parts", r->isa, tac_dtype_name(r->t), n,
        c);
    RUN(r, layer_norm_forward, &l.d, l.x.p, l.w.p, NULL, l.y.p, l.mean.p,
        l.rstd.p);
    check_forward(r, &l, 0);
    RUN(r, layer_norm_forward, &l.d, l.x.p, l.w.p, NULL, y.p, NULL, NULL);
    array_same(&y, &l.y, r->what);
    memcpy(all.mean.p, l.mean.p, n * tac_dtype_size(wide(r->t)));
    memcpy(all.rstd.p, l.rstd.p, n * tac_dtype_size(wide(r->t)));
    run_backward(r, &all, 0);
    RUN(r, layer_norm_backward, &l.d, l.x.p, l.w.p, l.mean.p, l.rstd.p, l.dy.p,
        l.dx.p, 0, NULL, NULL, 0);
    RUN(r, layer_norm_backward, &l.d, l.x.p, l.w.p, l.mean.p, l.rstd.p, l.dy.p,
        NULL, 0, l.dw.p, NULL, 0);
    RUN(r, layer_norm_backward, &l.d, l.x.p, l.w.p, l.mean.p, l.rstd.p, l.dy.p,
        NULL, 0, NULL, l.db.p, 0);
    array_same(&l.dx, &all.dx, r->what);
    array_same(&l.dw, &all.dw, r->what);
    array_same(&l.db, &all.db, r->what);
    layer_free(&all);
    layer_free(&l);
    guarded_free(y.p);
}

/* Empty sums are 0 and are written. */
static void empty(rig *r)
{
    layer rows = make(r, 0, 5, 0, 0), columns = make(r, 3, 0, 0, 0);

    RUN(r, layer_norm_forward, &columns.d, columns.x.p, columns.w.p,
        columns.b.p, columns.y.p, columns.mean.p, columns.rstd.p);
    for (size_t i = 0; i < 3; ++i) CHECK_EQ_F64(at(&columns.mean, i), 0.0);
    run_backward(r, &columns, 0);
    run_backward(r, &rows, 0);
    for (size_t j = 0; j < 5; ++j) {
        CHECK_EQ_F64(at(&rows.dw, j), 0.0);
        CHECK_EQ_F64(at(&rows.db, j), 0.0);
    }
    layer_free(&rows);
    layer_free(&columns);
}

/* Inputs near f16's largest number: the sum of a row overflows f16, not f32;
 * a magnitude of 1e3 gives what f32 gives to within 1e-2. */
static void large(rig *r, double offset, double scale)
{
    enum { N = 4, C = 700 };
    layer l = make(r, N, C, 0, 0);
    array x = array_random(r->t, N * C, 8, offset, scale);
    const double bound = r->t == TAC_BF16 ? 4e-2 : 1e-2;

    RUN(r, layer_norm_forward, &l.d, x.p, l.w.p, l.b.p, l.y.p, l.mean.p,
        l.rstd.p);
    for (size_t i = 0; i < N * C; ++i) {
        const row s = statistics(&x, i / C, C, l.d.eps);
        const double want = hat(&x, i, s) * at(&l.w, i % C) + at(&l.b, i % C);
        CHECK_MSG(fabs(at(&l.y, i) - want) <= bound,
                  "%s %s, %g + %g: [%zu] %.9g, not %.9g", r->isa,
                  tac_dtype_name(r->t), offset, scale, i, at(&l.y, i), want);
    }
    layer_free(&l);
    guarded_free(x.p);
}

static void kernels_of(rig *r)
{
    static const size_t sizes[][2] = {{1, 1},    {2, 1},   {1, 2},
                                      {3, 7},    {17, 64}, {5, 65},
                                      {33, 130}, {2, 400}, {130, 3}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        for (int accumulate = 0; accumulate < 2; ++accumulate) {
            compare(r, sizes[i][0], sizes[i][1], 0, accumulate);
            compare(r, sizes[i][0], sizes[i][1], 1000, accumulate);
        }
    without(r, 5, 70);
    empty(r);
    large(r, 0, 1e3);
    large(r, 1e3, 100);
    large(r, 3e4, 3e4);
}

/* --- the same bits with any number of threads --- */

static layer run_with(const char *isa, tac_dtype t, int threads)
{
    eng_world w = eng_open(isa, TAC_F32, threads);
    rig r = {.isa = isa,
             .t = t,
             .k = tac_device_kernels(w.dev, t),
             .kc = tac_device_kctx(w.dev, NULL)};
    layer l = make(&r, 40, 300, 0.5, 0);

    RUN(&r, layer_norm_forward, &l.d, l.x.p, l.w.p, l.b.p, l.y.p, l.mean.p,
        l.rstd.p);
    run_backward(&r, &l, 0);
    eng_close(&w);
    return l;
}

static void any_threads(const char *isa, tac_dtype t)
{
    layer one = run_with(isa, t, 1);

    for (int threads = 2; threads < 4; ++threads) {
        layer l = run_with(isa, t, threads);
        array_same(&l.y, &one.y, "y, threads");
        array_same(&l.dx, &one.dx, "dx, threads");
        array_same(&l.dw, &one.dw, "dw, threads");
        array_same(&l.db, &one.db, "db, threads");
        layer_free(&l);
    }
    layer_free(&one);
}

/* --- through the tape --- */

static tac_status plain(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    return tac_op_layer_norm(t, in[0], in[1], in[2], 1e-5, y);
}

static tac_status no_bias(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    return tac_op_layer_norm(t, in[0], in[1], NULL, 1e-3, y);
}

/* One w for two layers, x with three consumers, dropout between. */
static tac_status residual(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    tac_tensor *a, *b;

    TAC_TRY(tac_op_layer_norm(t, in[0], in[1], in[2], 1e-5, &a));
    TAC_TRY(tac_op_dropout(t, a, 0.3F, &a));
    TAC_TRY(tac_op_add(t, in[0], a, &a));
    TAC_TRY(tac_op_layer_norm(t, a, in[1], NULL, 1e-5, &b));
    TAC_TRY(tac_op_relu(t, in[0], &a));
    return tac_op_add(t, a, b, y);
}

/* A weight that needs a gradient on an input that needs none, and the other
 * way round. */
static tac_status constants(tac_tape *t, tac_tensor *const *in, tac_tensor **y)
{
    static double zeros[6]; /* 0 in every type */
    const size_t shape[2] = {1, 6};
    tac_tensor *x, *w;

    TAC_TRY(tac_tape_input(t, "x", tac_tape_dtype(t), 2, shape, zeros, 0, &x));
    TAC_TRY(
        tac_tape_input(t, "w", tac_tape_dtype(t), 1, shape + 1, zeros, 0, &w));
    TAC_TRY(tac_op_layer_norm(t, x, in[1], in[2], 1e-5, &x));
    TAC_TRY(tac_op_layer_norm(t, in[0], w, in[2], 1e-5, y));
    return tac_op_add(t, x, *y, y);
}

static const graph graphs[] = {
    {"plain", plain, {{2, {3, 5}}}, {{1, {5}}, {1, {5}}}},
    {"one row", plain, {{1, {7}}}, {{1, {7}}, {1, {7}}}},
    {"three dimensions", plain, {{3, {2, 3, 9}}}, {{1, {9}}, {1, {9}}}},
    {"one column", plain, {{2, {4, 1}}}, {{1, {1}}, {1, {1}}}},
    {"no bias", no_bias, {{2, {4, 6}}}, {{1, {6}}}},
    {"all are inputs", plain, {{2, {3, 4}}, {1, {4}}, {1, {4}}}, {{0, {0}}}},
    {"residual", residual, {{2, {5, 8}}}, {{1, {8}}, {1, {8}}}},
    {"constants", constants, {{2, {1, 6}}}, {{1, {6}}, {1, {6}}}},
};

static void bad_arguments(void)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    const size_t shape[2] = {2, 3};
    tac_tensor *x, *p, *q, *y = NULL;
    char text[512];

    CHECK_OK(tac_params_add(w.params, "gain", 1, shape + 1,
                            (tac_init){TAC_INIT_ONES, 0}, 0, NULL));
    CHECK_OK(tac_params_add(w.params, "shift", 1, shape,
                            (tac_init){TAC_INIT_ZEROS, 0}, 0, NULL));
    CHECK_OK(tac_tape_create(w.params, NULL, &w.tape));
    CHECK_OK(tac_tape_begin(w.tape, &(tac_tape_step){.flags = TAC_TAPE_DRY}));
    CHECK_OK(tac_tape_input(w.tape, "x", TAC_F32, 2, shape, NULL, 0, &x));
    p = tac_tape_param(w.tape, 0);
    q = tac_tape_param(w.tape, 1);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, p, q, 1e-5, &y), TAC_ERR_ARG);
    CHECK(strstr(eng_error(&w, text, sizeof text), "shift (2)") != NULL);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, q, NULL, 1e-5, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, p, p, 1e-5, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, NULL, p, 1e-5, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, p, NULL, -1, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_layer_norm(w.tape, x, p, NULL, (double)NAN, &y),
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
        if (r.k->layer_norm_forward != before[i].layer_norm_forward ||
            r.k->layer_norm_backward != before[i].layer_norm_backward)
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
