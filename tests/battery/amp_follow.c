/* amp_follow.c: working weights that optimizers keep themselves have the bits
 * of a refresh: every kernel set, optimizer and type, over steps of which some
 * find inf, sizes that are no multiple of anything, a frozen parameter,
 * gradients that make a parameter inf, NaN or subnormal in 16 bits. */
#include "amp_test.h"
#include "tac_sanitized.h"
#include "tac_check.h"

enum { STEPS = 7, PARAMS = 5 };

typedef struct trial {
    const char *isa;
    tac_optimizer_kind kind;
    tac_dtype low;
    int threads, stochastic, eps_is_zero;
} trial;

static tac_optimizer *optimizer_of(const eng_world *w, const trial *t)
{
    tac_optimizer_config c = tac_optimizer_defaults(t->kind);
    tac_optimizer *o = NULL;

    if (t->kind == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
    if (t->kind != TAC_OPTIMIZER_ADAFACTOR) c.lr = 0.05;
    if (t->eps_is_zero) c.eps = 0;
    CHECK_OK(tac_optimizer_create(w->params, &c, &o));
    return o;
}

static tac_master *master_of(const eng_world *w, const trial *t,
                             const tac_optimizer *o)
{
    tac_master_config c = TAC_MASTER_CONFIG_INIT;
    tac_master *m = NULL;

    c.low = t->low;
    c.stochastic = t->stochastic;
    c.step = &tac_optimizer_scalars(o)->applied;
    CHECK_OK(tac_master_create(w->params, &c, &m));
    return m;
}

static void add(const eng_world *w, const char *name, size_t a, size_t b,
                unsigned flags)
{
    const size_t shape[2] = {a, b};

    CHECK_OK(tac_params_add(w->params, name, 2, shape,
                            (tac_init){TAC_INIT_ZEROS, 0}, flags, NULL));
}

static eng_world world_of(const trial *t)
{
    eng_world w = eng_open(t->isa, TAC_F32, t->threads);

    add(&w, "large", 257, 263, 0); /* several parts, 8-bit moments */
    add(&w, "small", 33, 7, 0);
    add(&w, "frozen", 31, 5, TAC_PARAM_FROZEN);
    add(&w, "one", 1, 1, 0);
    add(&w, "some", 1, 1500, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    for (size_t i = 0; i < PARAMS; ++i)
        eng_fill(TAC_F32, tac_params_value(w.params, i),
                 tac_params_get(w.params, i)->count, 3, i);
    return w;
}

/* Step 2 brings huge gradients; values are made huge, tiny or no number once,
 * as a diverging run has them. */
static void set_grads(const eng_world *w, uint64_t step)
{
    for (size_t i = 0; i < PARAMS; ++i) {
        const tac_param *q = tac_params_get(w->params, i);
        if (q->flags & TAC_PARAM_FROZEN) continue;
        eng_fill(TAC_F32, tac_params_grad(w->params, i), q->count, 40 + step,
                 i);
        if (step == 2) ((float *)tac_params_grad(w->params, i))[0] = 1e18F;
    }
}

static void set_odd_values(const eng_world *w)
{
    const float odd[] = {7e4F, -7e4F,  3e38F,  INFINITY, -INFINITY,
                         NAN,  -1e-7F, 1e-39F, 6e-8F,    65519.9F};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; ++i) {
        ((float *)tac_params_value(w->params, 0))[1000 + 3 * i] = odd[i];
        ((float *)tac_params_value(w->params, 4))[7 * i] = odd[i];
    }
}

static int same(const tac_master *a, const tac_master *b)
{
    return memcmp(tac_master_weights(a), tac_master_weights(b),
                  tac_master_bytes(a)) == 0;
}

/* Nothing is written in a step that is skipped: not even the same bits. */
static void skipped_step(const trial *t, tac_optimizer *o, tac_master *m)
{
    uint16_t *p = (uint16_t *)(size_t)tac_master_weights(m);
    const uint16_t before = p[5], other = (uint16_t)(before ^ 0x1234);

    p[5] = other;
    tac_optimizer_scalars(o)->found_inf = 1;
    CHECK_OK(tac_optimizer_step(o, NULL));
    if (t->kind != TAC_OPTIMIZER_ADAFACTOR) CHECK(p[5] == other);
    p[5] = before;
    CHECK_OK(tac_master_after_step(m, NULL));
    CHECK_OK(tac_optimizer_clear_found_inf(o, NULL));
}

static void run(const trial *t)
{
    eng_world w = world_of(t);
    tac_optimizer *o = optimizer_of(&w, t);
    tac_master *m = master_of(&w, t, o), *want = master_of(&w, t, o);

    set_odd_values(&w);
    CHECK_OK(tac_master_follow(m, o));
    CHECK_OK(tac_master_refresh(m, NULL));
    for (uint64_t step = 0; step < STEPS; ++step) {
        set_grads(&w, step);
        if (step == 3) {
            skipped_step(t, o, m);
        } else {
            CHECK_OK(tac_optimizer_step(o, NULL));
            CHECK_OK(tac_master_after_step(m, NULL));
        }
        CHECK_OK(tac_master_refresh(want, NULL));
        if (!CHECK(same(m, want)))
            fprintf(stderr, "  %s %s %s, step %d\n", t->isa ? t->isa : "best",
                    tac_optimizer_kind_name(t->kind), tac_dtype_name(t->low),
                    (int)step);
    }
    tac_master_destroy(m);
    tac_master_destroy(want);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static void all_kinds(const char *isa, int threads)
{
    for (int kind = 0; kind <= TAC_OPTIMIZER_ADAMW8BIT; ++kind)
        for (int low = 0; low < 4; ++low)
            run(&(trial){isa, (tac_optimizer_kind)kind,
                         low % 2 ? TAC_BF16 : TAC_F16, threads, low >= 2, 0});
    run(&(trial){isa, TAC_OPTIMIZER_ADAMW, TAC_F16, threads, 0, 1});
}

/* Who keeps a copy, and what is refused. */
static void test_answers(void)
{
    const trial t = {NULL, TAC_OPTIMIZER_ADAMW, TAC_F16, 1, 0, 0};
    const trial u = {NULL, TAC_OPTIMIZER_ADAFACTOR, TAC_F16, 1, 0, 0};
    eng_world w = world_of(&t), v = world_of(&t);
    tac_optimizer *o = optimizer_of(&w, &t), *p = optimizer_of(&v, &u);
    tac_master *m = master_of(&w, &t, o);
    uint16_t *low = malloc(2 * tac_params_padded(w.params));
    int kept = 7;

    CHECK_OK(tac_optimizer_keep_low(o, low, TAC_BF16, &kept));
    CHECK(kept == 1);
    CHECK_OK(tac_optimizer_keep_low(p, low, TAC_BF16, &kept));
    CHECK(kept == 0);
    CHECK_STATUS(tac_optimizer_keep_low(o, low, TAC_F32, &kept), TAC_ERR_ARG);
    CHECK_STATUS(tac_master_follow(m, p), TAC_ERR_ARG);
    CHECK_OK(tac_optimizer_keep_low(o, NULL, TAC_F16, &kept));
    CHECK(kept == 0);
    CHECK_OK(tac_optimizer_step(o, NULL));
    free(low);
    tac_master_destroy(m);
    tac_optimizer_destroy(o);
    tac_optimizer_destroy(p);
    eng_close(&w);
    eng_close(&v);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[128];

    for (size_t i = 0; sets[i] != NULL; ++i) {
        if (!sets[i]->available(why, sizeof why)) continue;
        if (!TESTS_SLOW) all_kinds(sets[i]->name, 1);
        all_kinds(sets[i]->name, 3);
    }
    test_answers();
    return tac_check_summary();
}
