/* engine_optim.c: optimizers against PyTorch's definitions, written out by
 * hand in f64, over many steps. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine_test.h"
#include "tacit/optim.h"

enum { PARAMS = 5, MAX = 64, STEPS = 40 };

static const struct {
    const char *name;
    int ndim;
    size_t shape[3], count;
    unsigned flags;
} table[PARAMS] = {
    {"w", 2, {7, 5}, 35, 0},
    {"b", 1, {5}, 5, 0},
    {"k", 3, {3, 1, 2}, 6, 0},
    {"s", 0, {0}, 1, 0},
    {"n", 2, {4, 4}, 16, TAC_PARAM_NO_DECAY},
};

static double start(size_t p, size_t e)
{
    return eng_value(1, p, e);
}

static double gradient(size_t p, size_t e, size_t step)
{
    return 3 * eng_value(2 + step, p, e);
}

static eng_world model(const char *isa, tac_dtype dtype)
{
    eng_world w = eng_open(isa, dtype, 2);
    const size_t order[PARAMS] = {3, 1, 0, 4, 2};

    for (size_t p = 0; p < PARAMS; ++p)
        cr_assert_eq(tac_params_add(
                         w.params, table[p].name, table[p].ndim, table[p].shape,
                         (tac_init){TAC_INIT_ZEROS, 0}, table[p].flags, NULL),
                     TAC_OK);
    cr_assert_eq(tac_params_layout(w.params, order, NULL, NULL), TAC_OK);
    for (size_t p = 0; p < PARAMS; ++p)
        for (size_t e = 0; e < table[p].count; ++e)
            eng_set(dtype, tac_params_value(w.params, p), e, start(p, e));
    return w;
}

static void set_grads(const eng_world *w, size_t step, double factor)
{
    for (size_t p = 0; p < PARAMS; ++p)
        for (size_t e = 0; e < table[p].count; ++e)
            eng_set(tac_params_dtype(w->params), tac_params_grad(w->params, p),
                    e, factor * gradient(p, e, step));
}

/* The oracle: one scalar at a time, straight from the definition. */
typedef struct scalar {
    double p, m, v;
    unsigned t;
} scalar;

static void oracle_sgd(scalar *x, double g, const tac_optimizer_config *c,
                       double lr, int decayed)
{
    if (decayed) g += c->weight_decay * x->p;
    if (c->momentum > 0) {
        x->m = x->t == 0 ? g : c->momentum * x->m + (1 - c->dampening) * g;
        g = c->nesterov ? g + c->momentum * x->m : x->m;
    }
    x->p -= lr * g;
    x->t += 1;
}

static void oracle_adamw(scalar *x, double g, const tac_optimizer_config *c,
                         double lr, int decayed)
{
    x->t += 1;
    if (decayed) x->p *= 1 - lr * c->weight_decay;
    x->m = c->beta1 * x->m + (1 - c->beta1) * g;
    x->v = c->beta2 * x->v + (1 - c->beta2) * g * g;
    const double m = x->m / (1 - pow(c->beta1, x->t));
    const double v = x->v / (1 - pow(c->beta2, x->t));
    x->p -= lr * m / (sqrt(v) + c->eps);
}

/* Settings as the kernels see them: rounded once to the accumulating type. */
static tac_optimizer_config rounded(tac_optimizer_config c, tac_dtype dtype)
{
    if (dtype == TAC_F64) return c;
    c.lr = (double)(float)c.lr;
    c.weight_decay = (double)(float)c.weight_decay;
    c.momentum = (double)(float)c.momentum;
    c.dampening = (double)(float)c.dampening;
    c.beta1 = (double)(float)c.beta1;
    c.beta2 = (double)(float)c.beta2;
    c.eps = (double)(float)c.eps;
    return c;
}

static int decays(const tac_optimizer_config *c, size_t p)
{
    if (table[p].flags & TAC_PARAM_NO_DECAY) return 0;
    return c->decay == TAC_DECAY_ALL || table[p].ndim >= 2;
}

static void oracle_step(scalar x[PARAMS][MAX], const tac_optimizer_config *c,
                        double lr, size_t step)
{
    for (size_t p = 0; p < PARAMS; ++p) {
        for (size_t e = 0; e < table[p].count; ++e) {
            const double g = gradient(p, e, step);
            if (c->kind == TAC_OPTIMIZER_ADAMW)
                oracle_adamw(&x[p][e], g, c, lr, decays(c, p));
            else
                oracle_sgd(&x[p][e], g, c, lr, decays(c, p));
        }
    }
}

static void check_padding(const eng_world *w)
{
    const tac_dtype t = tac_params_dtype(w->params);
    const size_t unit = 64 / tac_dtype_size(t);

    for (size_t p = 0; p < PARAMS; ++p) {
        const size_t n = table[p].count;
        const size_t padded = (n + unit - 1) / unit * unit;
        for (size_t e = n; e < padded; ++e)
            cr_assert_eq(eng_get(t, tac_params_value(w->params, p), e), 0.0,
                         "padding of %s", table[p].name);
    }
}

static void compare(const eng_world *w, scalar x[PARAMS][MAX], double tol)
{
    const tac_dtype t = tac_params_dtype(w->params);

    for (size_t p = 0; p < PARAMS; ++p)
        for (size_t e = 0; e < table[p].count; ++e)
            cr_assert_float_eq(eng_get(t, tac_params_value(w->params, p), e),
                               x[p][e].p, tol, "%s[%zu]", table[p].name, e);
    check_padding(w);
}

static void oracle_start(scalar x[PARAMS][MAX])
{
    memset(x, 0, sizeof(scalar[PARAMS][MAX]));
    for (size_t p = 0; p < PARAMS; ++p)
        for (size_t e = 0; e < table[p].count; ++e) x[p][e].p = start(p, e);
}

static double rate(const tac_optimizer_config *c, size_t step)
{
    return c->lr * (1 + 0.3 * sin((double)step));
}

/* STEPS steps with a changing rate; steps 0 and 3 are skipped by found_inf. */
static void run(const char *isa, tac_dtype dtype, tac_optimizer_config c,
                double tol)
{
    eng_world w = model(isa, dtype);
    const tac_optimizer_config r = rounded(c, dtype);
    tac_optimizer *o = NULL;
    tac_step_scalars s;
    scalar x[PARAMS][MAX];

    oracle_start(x);
    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    for (size_t step = 0; step < STEPS; ++step) {
        const int skip = step == 0 || step == 3;
        const double lr = rate(&r, step);
        tac_optimizer_scalars(o)->found_inf = skip ? 1.0F : 0.0F;
        tac_optimizer_scalars(o)->grad_scale = 8.0F;
        cr_assert_eq(tac_optimizer_set_lr(o, lr, NULL), TAC_OK);
        set_grads(&w, step, skip ? NAN : 8.0);
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        if (!skip) oracle_step(x, &r, lr, step);
    }
    compare(&w, x, tol);
    cr_assert_eq(tac_optimizer_read(o, &s, NULL), TAC_OK);
    cr_assert_eq(s.applied, STEPS - 2);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static void run_both(tac_optimizer_config c)
{
    run("ref", TAC_F64, c, 1e-12);
    run("ref", TAC_F32, c, 2e-5);
    run(NULL, TAC_F32, c, 2e-5);
}

Test(optim, sgd)
{
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);

    cr_assert_eq(c.lr, 1e-3);
    cr_assert_eq(c.momentum, 0);
    cr_assert_eq(c.weight_decay, 0);
    c.lr = 0.03;
    run_both(c);
    c.weight_decay = 0.1;
    run_both(c);
    c.decay = TAC_DECAY_ALL;
    run_both(c);
    c.momentum = 0.9;
    run_both(c);
    c.dampening = 0.3; /* the first applied step is not dampened */
    run_both(c);
    c.dampening = 0;
    c.nesterov = 1;
    run_both(c);
}

Test(optim, adamw)
{
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);

    cr_assert_eq(c.lr, 1e-3);
    cr_assert_eq(c.beta1, 0.9);
    cr_assert_eq(c.beta2, 0.999);
    cr_assert_eq(c.eps, 1e-8);
    cr_assert_eq(c.weight_decay, 1e-2);
    cr_assert_eq(c.decay, TAC_DECAY_MATRICES);
    run_both(c);
    c.lr = 0.02;
    c.weight_decay = 0.3;
    c.beta1 = 0.8;
    c.beta2 = 0.95;
    run_both(c);
    c.decay = TAC_DECAY_ALL;
    run_both(c);
    c.eps = 0; /* padding must not become 0/0 */
    run_both(c);
    c.beta1 = c.beta2 = 0;
    c.eps = 0.1;
    run_both(c);
}

/* Worked by hand in double: theta 1, lr 1e-3, decay 0.01, g 0.1 -0.2 0.3. */
Test(optim, adamw_golden_vector)
{
    static const double g[3] = {0.1, -0.2, 0.3};
    static const double want[3] = {0.9989900001, 0.99934611370388,
                                   0.99899287917834};
    eng_world w = eng_open("ref", TAC_F64, 1);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer *o = NULL;
    const size_t shape[2] = {1, 1};

    cr_assert_eq(tac_params_add(w.params, "theta", 2, shape,
                                (tac_init){TAC_INIT_ONES, 0}, 0, NULL),
                 TAC_OK);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(w.params, 0), TAC_OK);
    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    for (int i = 0; i < 3; ++i) {
        *(double *)tac_params_grads(w.params) = g[i];
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        cr_assert_float_eq(*(double *)tac_params_values(w.params), want[i],
                           1e-12);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

typedef struct seen {
    char names[1024];
    double first[16];
    size_t n;
    int load;
} seen;

static tac_status look(void *arg, const tac_state_item *item)
{
    seen *s = arg;
    const size_t used = strlen(s->names);

    snprintf(s->names + used, sizeof s->names - used, "%s ", item->name);
    if (item->dtype == TAC_F64) s->first[s->n++] = *(double *)item->data;
    return TAC_OK;
}

Test(optim, walk_shows_moments_and_counter)
{
    eng_world w = model("ref", TAC_F64);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer *o = NULL;
    seen s = {"", {0}, 0, 0};
    const tac_state_visitor v = {look, &s, NULL};
    const double g = gradient(0, 0, 0);

    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    set_grads(&w, 0, 1);
    cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
    cr_assert_eq(tac_optimizer_walk(o, &v), TAC_OK);
    cr_assert_str_eq(s.names, "optimizer.applied "
                              "optimizer.exp_avg.w optimizer.exp_avg_sq.w "
                              "optimizer.exp_avg.b optimizer.exp_avg_sq.b "
                              "optimizer.exp_avg.k optimizer.exp_avg_sq.k "
                              "optimizer.exp_avg.s optimizer.exp_avg_sq.s "
                              "optimizer.exp_avg.n optimizer.exp_avg_sq.n ");
    cr_assert_float_eq(s.first[0], 0.1 * g, 1e-12);
    cr_assert_float_eq(s.first[1], 0.001 * g * g, 1e-12);
    cr_assert_eq(tac_optimizer_scalars(o)->applied, 1);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static size_t runs(tac_optimizer_kind kind, double decay, tac_decay_rule rule,
                   double eps)
{
    eng_world w = model("ref", TAC_F32);
    tac_optimizer_config c = tac_optimizer_defaults(kind);
    tac_optimizer *o = NULL;

    c.weight_decay = decay;
    c.decay = rule;
    if (kind == TAC_OPTIMIZER_ADAMW) c.eps = eps;
    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    const size_t n = tac_optimizer_runs(o);
    tac_optimizer_destroy(o);
    eng_close(&w);
    return n;
}

/* Arena order: s b | w | n | k, of which w and k decay. */
Test(optim, as_few_passes_as_possible)
{
    cr_assert_eq(runs(TAC_OPTIMIZER_SGD, 0, TAC_DECAY_MATRICES, 0), 1);
    cr_assert_eq(runs(TAC_OPTIMIZER_SGD, 0.1, TAC_DECAY_MATRICES, 0), 4);
    cr_assert_eq(runs(TAC_OPTIMIZER_ADAMW, 0.1, TAC_DECAY_ALL, 1e-8), 3);
    cr_assert_eq(runs(TAC_OPTIMIZER_ADAMW, 0, TAC_DECAY_ALL, 1e-8), 1);
    cr_assert_eq(runs(TAC_OPTIMIZER_ADAMW, 0, TAC_DECAY_ALL, 0), PARAMS);
}

static double norm_of_grads(size_t step)
{
    double sum = 0;

    for (size_t p = 0; p < PARAMS; ++p)
        for (size_t e = 0; e < table[p].count; ++e)
            sum += gradient(p, e, step) * gradient(p, e, step);
    return sqrt(sum);
}

/* With plain SGD, a step shows the clipped gradient. The scale of the
 * gradients does not matter. */
Test(optim, clipping)
{
    const double limits[4] = {1.5, 1e6, 0, INFINITY};
    const double scales[2] = {1, 1024};

    for (int i = 0; i < 8; ++i) {
        eng_world w = model("ref", TAC_F64);
        tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
        tac_optimizer *o = NULL;
        const double total = norm_of_grads(5), max = limits[i % 4];
        const double coef = fmin(1, max / (total + 1e-6));

        c.lr = 1;
        cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
        set_grads(&w, 5, scales[i / 4]);
        tac_optimizer_scalars(o)->grad_scale = (float)scales[i / 4];
        cr_assert_eq(tac_optimizer_clip(o, max, NULL), TAC_OK);
        cr_assert_float_eq(*tac_optimizer_norm(o), total, 1e-9 * total);
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        for (size_t e = 0; e < table[0].count; ++e)
            cr_assert_float_eq(((double *)tac_params_value(w.params, 0))[e],
                               start(0, e) - coef * gradient(0, e, 5), 1e-6);
        cr_assert_eq(tac_optimizer_scalars(o)->clip_coef, 1.0F);
        tac_optimizer_destroy(o);
        eng_close(&w);
    }
}

/* A second clip looks again; a check's sum is taken over, until the step. */
Test(optim, clipping_measures_what_it_has_to)
{
    eng_world w = model("ref", TAC_F64);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    tac_optimizer *o = NULL;

    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    for (size_t step = 0; step < 2; ++step) {
        set_grads(&w, step, 1);
        cr_assert_eq(tac_optimizer_clip(o, 1.0, NULL), TAC_OK);
        cr_assert_float_eq(*tac_optimizer_norm(o), norm_of_grads(step), 1e-9);
        set_grads(&w, step, 2);
        cr_assert_eq(tac_optimizer_clip(o, 1.0, NULL), TAC_OK);
        cr_assert_float_eq(*tac_optimizer_norm(o), 2 * norm_of_grads(step),
                           1e-9);
        cr_assert_eq(tac_optimizer_clear_found_inf(o, NULL), TAC_OK);
        cr_assert_eq(tac_optimizer_check(o, NULL), TAC_OK);
        set_grads(&w, step, 3); /* against the rules: to see the reuse */
        cr_assert_eq(tac_optimizer_clip(o, 1.0, NULL), TAC_OK);
        cr_assert_float_eq(*tac_optimizer_norm(o), 2 * norm_of_grads(step),
                           1e-9);
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

Test(optim, clipping_what_is_no_number)
{
    eng_world w = model("ref", TAC_F32);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    tac_optimizer *o = NULL;

    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    set_grads(&w, 0, 1);
    ((float *)tac_params_grad(w.params, 2))[1] = NAN;
    cr_assert_eq(tac_optimizer_clip(o, 1.0, NULL), TAC_OK);
    cr_assert(isnan(tac_optimizer_scalars(o)->clip_coef));
    cr_assert_eq(tac_optimizer_clip(o, -1.0, NULL), TAC_ERR_ARG);
    cr_assert_eq(tac_optimizer_clip(o, NAN, NULL), TAC_ERR_ARG);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static void reject(tac_optimizer_config c, const char *word)
{
    eng_world w = model("ref", TAC_F32);
    tac_optimizer *o = NULL;
    char text[512];

    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_ERR_ARG, "%s",
                 word);
    cr_assert_null(o);
    eng_error(&w, text, sizeof text);
    cr_assert_not_null(strstr(text, word), "%s not in %s", word, text);
    eng_close(&w);
}

Test(optim, settings_that_make_no_sense)
{
    const tac_optimizer_config sgd = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    const tac_optimizer_config adamw =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer_config c;

    c = adamw, c.lr = -1e-3, reject(c, "lr");
    c = sgd, c.lr = NAN, reject(c, "lr");
    c = sgd, c.lr = INFINITY, reject(c, "lr");
    c = adamw, c.eps = -1e-9, reject(c, "eps");
    c = adamw, c.beta1 = 1, reject(c, "beta1");
    c = adamw, c.beta2 = -0.1, reject(c, "beta2");
    c = adamw, c.beta2 = NAN, reject(c, "beta2");
    c = sgd, c.weight_decay = -0.1, reject(c, "weight_decay");
    c = sgd, c.momentum = -0.9, reject(c, "momentum");
    c = sgd, c.nesterov = 1, reject(c, "nesterov");
    c = sgd, c.nesterov = 1, c.momentum = 0.9, c.dampening = 0.1;
    reject(c, "dampening");
    c = sgd, c.struct_size = 3, reject(c, "defaults");
}

Test(optim, order_of_calls_and_names)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer_kind kind = TAC_OPTIMIZER_SGD;
    tac_optimizer *o = NULL;

    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_ERR_STATE);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK, "no parameters at all");
    cr_assert_eq(tac_optimizer_clip(o, 1, NULL), TAC_OK);
    cr_assert_eq(*tac_optimizer_norm(o), 0.0);
    cr_assert_eq(tac_optimizer_set_lr(o, -1, NULL), TAC_ERR_ARG);
    cr_assert_eq(tac_optimizer_parse(w.ctx, "adamw", &kind), TAC_OK);
    cr_assert_eq(kind, TAC_OPTIMIZER_ADAMW);
    cr_assert_eq(tac_optimizer_parse(w.ctx, "adam", &kind), TAC_ERR_ARG);
    tac_optimizer_destroy(o);
    tac_optimizer_destroy(NULL);
    eng_close(&w);
}

/* The moments come from the caller's allocator, and its count is right. */
Test(optim, memory)
{
    eng_world w = model("ref", TAC_F32);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    eng_counter n = {0, 0, 0};
    const tac_allocator alloc = eng_allocator(&n);
    tac_optimizer *o = NULL;

    c.state = &alloc;
    cr_assert_eq(tac_optimizer_create(w.params, &c, &o), TAC_OK);
    cr_assert_eq(n.allocs, 1);
    cr_assert_eq(n.bytes, tac_optimizer_state_bytes(o));
    cr_assert_eq(n.bytes, 8 * tac_params_padded(w.params));
    tac_optimizer_destroy(o);
    cr_assert_eq(n.frees, 1);
    eng_close(&w);
}
