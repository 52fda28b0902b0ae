/* engine_optim_kinds.c: the four optimizers as a user meets them: golden
 * vectors, what is refused and with which words, groups, frozen parameters,
 * parameters of 16 bits. */
#include "engine_optim_model.h"

/* ------------------------------------------------------------- Adafactor */

static void golden(tac_dtype dtype, double tol)
{
    static const double want[2][4] = {
        {0.978786796564404, 1.97, 2.971539501058484, 3.973167184270002},
        {0.957767152868456, 1.940273734808940, 2.943338689758306,
         3.946579204396245}};
    eng_world w = eng_open("ref", dtype, 1);
    const tac_optimizer_config c =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAFACTOR);

    add(&w, "theta", 2, 2, 2, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    for (size_t e = 0; e < 4; ++e) {
        eng_set(dtype, tac_params_value(w.params, 0), e, (double)e + 1);
        eng_set(dtype, tac_params_grad(w.params, 0), e, 0.1 * ((double)e + 1));
    }
    tac_optimizer *o = make(&w, &c);
    for (int t = 0; t < 2; ++t) {
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        for (size_t e = 0; e < 4; ++e)
            cr_assert_float_eq(eng_get(dtype, tac_params_value(w.params, 0), e),
                               want[t][e], tol, "step %d, element %zu", t, e);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

Test(optim_kinds, adafactor_golden_vector)
{
    golden(TAC_F64, 1e-12);
    golden(TAC_F32, 1e-6);
}

static void reject(const eng_world *w, const tac_optimizer_config *c,
                   tac_status want, const char *word)
{
    tac_optimizer *o = NULL;
    size_t state = 1, scratch = 1;
    char text[512];

    cr_assert_eq(tac_optimizer_create(w->params, c, &o), want, "%s", word);
    cr_assert_null(o);
    eng_error(w, text, sizeof text);
    cr_assert_not_null(strstr(text, word), "%s not in %s", word, text);
    cr_assert_eq(tac_optimizer_predict(w->params, c, &state, &scratch), want);
    cr_assert_eq(state, 1, "written after a failure");
}

/* People give Adafactor an lr and wonder: the message says what to set. */
Test(optim_kinds, adafactor_rates)
{
    eng_world w = model(TAC_F32);
    const tac_optimizer_config d =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAFACTOR);
    tac_optimizer_config c;

    c = d, c.lr = 1e-3;
    reject(&w, &c, TAC_ERR_ARG, "set relative_step = 0");
    c = d, c.relative_step = 0;
    reject(&w, &c, TAC_ERR_ARG, "needs an lr");
    c = d, c.relative_step = 0, c.lr = 1e-3, c.warmup_init = 1;
    reject(&w, &c, TAC_ERR_ARG, "warmup_init needs relative_step = 1");
    c = d, c.eps1 = -1, reject(&w, &c, TAC_ERR_ARG, "eps1");
    c = d, c.eps2 = NAN, reject(&w, &c, TAC_ERR_ARG, "eps2");
    c = d, c.clip_threshold = 0, reject(&w, &c, TAC_ERR_ARG, "clip_threshold");
    c = d, c.decay_rate = 0.8, reject(&w, &c, TAC_ERR_ARG, "decay_rate");
    c = d, c.beta1 = 1, reject(&w, &c, TAC_ERR_ARG, "beta1");
    c = d, c.relative_step = 0, c.scale_parameter = 0, c.lr = 1e-3;
    tac_optimizer_destroy(make(&w, &c));
    eng_close(&w);
}

/* ------------------------------------------------ nothing silently ignored */

Test(optim_kinds, a_setting_of_another_kind_is_an_error)
{
    eng_world w = model(TAC_F32);
    tac_optimizer_config c;

#define NOT_FOR(kind, field, value, word)              \
    c = tac_optimizer_defaults(kind), c.field = value, \
    reject(&w, &c, TAC_ERR_ARG, word)
    NOT_FOR(TAC_OPTIMIZER_SGD, beta1, 0.9, "sgd has no beta1");
    NOT_FOR(TAC_OPTIMIZER_SGD, eps, 1e-8, "sgd has no eps");
    NOT_FOR(TAC_OPTIMIZER_ADAMW, momentum, 0.9, "adamw has no momentum");
    NOT_FOR(TAC_OPTIMIZER_ADAMW, min_8bit_size, 64, "no min_8bit_size");
    NOT_FOR(TAC_OPTIMIZER_ADAMW8BIT, nesterov, 1, "adamw8bit has no nesterov");
    NOT_FOR(TAC_OPTIMIZER_ADAMW8BIT, relative_step, 1, "no relative_step");
    NOT_FOR(TAC_OPTIMIZER_ADAFACTOR, beta2, 0.999, "adafactor has no beta2");
    NOT_FOR(TAC_OPTIMIZER_ADAFACTOR, eps, 1e-8, "adafactor has no eps");
    NOT_FOR((tac_optimizer_kind)9, lr, 1, "kind 9");
#undef NOT_FOR
    eng_close(&w);
}

Test(optim_kinds, names)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    static const char *const names[] = {"sgd", "adamw", "adafactor",
                                        "adamw8bit"};
    tac_optimizer_kind kind;
    char text[512];

    for (int i = 0; i < 4; ++i) {
        cr_assert_eq(tac_optimizer_parse(w.ctx, names[i], &kind), TAC_OK);
        cr_assert_eq(kind, (tac_optimizer_kind)i);
        cr_assert_str_eq(tac_optimizer_kind_name(kind), names[i]);
    }
    cr_assert_eq(tac_optimizer_parse(w.ctx, "lion", &kind), TAC_ERR_ARG);
    cr_assert_not_null(
        strstr(eng_error(&w, text, sizeof text), "adafactor or adamw8bit"));
    cr_assert_str_eq(tac_optimizer_kind_name((tac_optimizer_kind)7), "?");
    eng_close(&w);
}

Test(optim_kinds, adamw8bit_of_f64_is_unsupported)
{
    eng_world w = model(TAC_F64);
    const tac_optimizer_config c =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW8BIT);

    reject(&w, &c, TAC_ERR_UNSUPPORTED, "use adamw");
    eng_close(&w);
}

/* ----------------------------------------------------------------- groups */

static void reject_group(const eng_world *w, tac_optimizer_kind kind,
                         tac_param_group g, const char *word)
{
    const tac_param_group groups[2] = {{"*.bias", 1, 0, 0}, g};
    tac_optimizer_config c = tac_optimizer_defaults(kind);

    c.groups = groups;
    c.n_groups = 2;
    reject(w, &c, TAC_ERR_ARG, word);
}

Test(optim_kinds, groups_that_make_no_sense)
{
    eng_world w = model(TAC_F32);
    const tac_optimizer_kind adamw = TAC_OPTIMIZER_ADAMW;

    reject_group(&w, adamw, (tac_param_group){"conv*", 1, 0, 0}, "fits none");
    reject_group(&w, adamw, (tac_param_group){"fc.bias", 1, 0, 0},
                 "earlier groups");
    reject_group(&w, adamw, (tac_param_group){"", 1, 0, 0}, "pattern");
    reject_group(&w, adamw, (tac_param_group){NULL, 1, 0, 0}, "pattern");
    reject_group(&w, adamw, (tac_param_group){"fc*", -1, 0, 0}, "lr_scale");
    reject_group(&w, adamw, (tac_param_group){"fc*", 1, -1, 0}, "weight_decay");
    reject_group(&w, adamw, (tac_param_group){"fc*", 1, 0, 32},
                 "only adamw8bit knows");
    reject_group(&w, TAC_OPTIMIZER_ADAMW8BIT,
                 (tac_param_group){"fc*", 1, 0, 16}, "0 and 32");
    eng_close(&w);
}

/* Copied: the caller's text is gone before the first look. */
Test(optim_kinds, groups_are_visible_in_the_settings)
{
    eng_world w = model(TAC_F32);
    char pattern[16] = "fc.*";
    tac_param_group groups[2] = {{pattern, 0.5, NAN, 32}, {"*", 2, 0.3, 0}};
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW8BIT);
    tac_param_settings s;

    c.groups = groups;
    c.n_groups = 2;
    tac_optimizer *o = make(&w, &c);
    memset(pattern, 0, sizeof pattern);
    memset(groups, 0, sizeof groups);
    s = settings(o, 0);
    cr_assert_str_eq(s.group, "fc.*");
    cr_assert_eq(s.lr_scale, 0.5);
    cr_assert_eq(s.weight_decay, 0.01); /* NAN: as without the group */
    cr_assert_str_eq(s.state, "exp_avg f32, exp_avg_sq f32");
    cr_assert_eq(s.state_bytes, 8 * 4200);
    s = settings(o, 1);
    cr_assert_str_eq(s.group, "*");
    cr_assert_eq(s.weight_decay, 0.3);
    s = settings(o, 2);
    cr_assert_eq(s.weight_decay, 0);
    s = settings(o, 3);
    cr_assert_str_eq(s.state, "none");
    cr_assert_eq(s.state_bytes, 0);
    cr_assert_eq(tac_optimizer_settings(o, 4, &s), TAC_ERR_ARG);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* ----------------------------------------------------------- frozen ones */

Test(optim_kinds, frozen_parameters_are_left_alone)
{
    for (int k = 0; k < 4; ++k) {
        eng_world w = model(TAC_F32);
        const tac_optimizer_config c =
            tac_optimizer_defaults((tac_optimizer_kind)k);
        tac_optimizer *o = make(&w, &c);
        float before[64 * 64];
        float *p = tac_params_value(w.params, 3);
        const float start = *(float *)tac_params_value(w.params, 0);

        memcpy(before, p, sizeof before);
        fill_grads(&w, 0, 1);
        ((float *)tac_params_grad(w.params, 3))[5] = NAN; /* nobody looks */
        for (int i = 0; i < 3; ++i)
            cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        cr_assert_arr_eq(p, before, sizeof before);
        cr_assert_neq(*(float *)tac_params_value(w.params, 0), start);
        tac_optimizer_destroy(o);
        eng_close(&w);
    }
}

/* One in the middle of the arena, between neighbours of equal settings. */
Test(optim_kinds, a_frozen_parameter_ends_a_run)
{
    for (int k = 0; k < 4; ++k) {
        eng_world w = eng_open(NULL, TAC_F32, 1);
        tac_optimizer_config c = tac_optimizer_defaults((tac_optimizer_kind)k);

        if (k == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
        add(&w, "a", 2, 8, 8, 0);
        add(&w, "b", 2, 4, 4, TAC_PARAM_FROZEN);
        add(&w, "c", 2, 8, 8, 0);
        layout(&w);
        for (size_t i = 0; i < 3; i += 2) { /* a and c are the same */
            eng_fill(TAC_F32, tac_params_value(w.params, i), 64, 1, 1);
            eng_fill(TAC_F32, tac_params_grad(w.params, i), 64, 2, 1);
        }
        eng_fill(TAC_F32, tac_params_grad(w.params, 1), 16, 3, 1);
        tac_optimizer *o = make(&w, &c);
        cr_assert_eq(tac_optimizer_runs(o), 2);
        for (int i = 0; i < 3; ++i)
            cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        cr_assert_arr_eq(tac_params_value(w.params, 0),
                         tac_params_value(w.params, 2), 64 * sizeof(float));
        for (size_t e = 0; e < 16; ++e)
            cr_assert_eq(((float *)tac_params_value(w.params, 1))[e],
                         (float)eng_value(9, 1, e));
        tac_optimizer_destroy(o);
        eng_close(&w);
    }
}

typedef struct heard {
    char text[1024];
    int lines;
} heard;

static void hear(void *arg, tac_log_level level, const char *line)
{
    heard *h = arg;

    if (level != TAC_LOG_WARN) return;
    h->lines += 1;
    snprintf(h->text, sizeof h->text, "%s", line);
}

/* A world that remembers warnings. */
static eng_world listening(tac_dtype dtype, heard *h, unsigned flags)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    eng_world w = {NULL, NULL, NULL, NULL};

    config.log = hear;
    config.log_arg = h;
    config.threads = 1;
    cr_assert_eq(tac_context_create(&config, &w.ctx), TAC_OK);
    cr_assert_eq(tac_device_open(w.ctx, "cpu", NULL, &w.dev), TAC_OK);
    cr_assert_eq(tac_params_create(w.dev, dtype, &w.params), TAC_OK);
    add(&w, "w", 2, 8, 9, flags);
    layout(&w);
    return w;
}

Test(optim_kinds, all_frozen_is_warned_about_once)
{
    heard h = {"", 0};
    eng_world w = listening(TAC_F32, &h, TAC_PARAM_FROZEN);
    const tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer *o = make(&w, &c);

    cr_assert_not_null(strstr(h.text, "no parameter is trained"), "%s", h.text);
    for (int i = 0; i < 3; ++i) {
        cr_assert_eq(tac_optimizer_check(o, NULL), TAC_OK);
        cr_assert_eq(tac_optimizer_clip(o, 1, NULL), TAC_OK);
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
    }
    cr_assert_eq(h.lines, 1);
    cr_assert_eq(tac_optimizer_scalars(o)->applied, 0);
    cr_assert_eq(tac_optimizer_state_bytes(o), 0);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* ---------------------------------------------------- 16-bit parameters */

Test(optim_kinds, rounding_of_16_bits_is_warned_about)
{
    for (int stochastic = 0; stochastic < 2; ++stochastic) {
        heard h = {"", 0};
        eng_world w = listening(TAC_BF16, &h, 0);
        tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);

        c.stochastic_rounding = stochastic;
        tac_optimizer_destroy(make(&w, &c));
        cr_assert_eq(h.lines, !stochastic);
        if (!stochastic)
            cr_assert_not_null(strstr(h.text, "use f32 masters or stochastic"));
        eng_close(&w);
    }
    heard h = {"", 0};
    eng_world w = listening(TAC_F32, &h, 0);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    c.stochastic_rounding = 1;
    tac_optimizer_destroy(make(&w, &c));
    cr_assert_not_null(strstr(h.text, "changes nothing"), "%s", h.text);
    eng_close(&w);
}

/* Updates of a hundredth of a unit: to nearest none of 768 weights moves; with
 * stochastic rounding about a hundredth of them do, and the mean is right. */
static size_t moved(tac_optimizer_kind kind, int stochastic, double *mean)
{
    eng_world w = eng_open(NULL, TAC_BF16, 2);
    tac_optimizer_config c = tac_optimizer_defaults(kind);
    size_t n = 0;

    c.lr = 0x1p-7 * 0.01; /* a unit at 1 is 2^-7 */
    c.weight_decay = 0;
    c.stochastic_rounding = stochastic;
    if (kind == TAC_OPTIMIZER_ADAFACTOR)
        c.relative_step = c.scale_parameter = 0;
    add(&w, "a", 2, 96, 8, 0);
    add(&w, "b", 2, 64, 512, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    for (size_t i = 0; i < tac_params_padded(w.params); ++i) {
        ((uint16_t *)tac_params_values(w.params))[i] = tac_f32_to_bf16(1.5F);
        ((float *)tac_params_grads(w.params))[i] = -1;
    }
    tac_optimizer *o = make(&w, &c);
    cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
    *mean = 0;
    for (size_t p = 0; p < 2; ++p)
        for (size_t i = 0; i < tac_params_get(w.params, p)->count; ++i) {
            const double x =
                eng_get(TAC_BF16, tac_params_value(w.params, p), i);
            n += p == 0 && x != 1.5;
            *mean += (x - 1.5) / (96 * 8 + 64 * 512);
        }
    tac_optimizer_destroy(o);
    eng_close(&w);
    return n;
}

Test(optim_kinds, small_updates_of_16_bits)
{
    for (int k = 0; k < 4; ++k) {
        double mean = 0;
        cr_assert_eq(moved((tac_optimizer_kind)k, 0, &mean), 0);
        cr_assert_eq(mean, 0);
        const size_t n = moved((tac_optimizer_kind)k, 1, &mean);
        cr_assert_gt(n, 0, "kind %d", k);
        cr_assert_lt(n, 40, "kind %d: %zu", k, n);
        /* 33536 draws of p = 0.01 in units of 2^-7: four deviations. */
        cr_assert_float_eq(mean, 0x1p-7 * 0.01, 0x1p-7 * 0.0022, "kind %d", k);
    }
}

/* Each tensor has random numbers of its own, each step too. */
Test(optim_kinds, stochastic_rounding_is_keyed_by_tensor_and_step)
{
    eng_world w = eng_open(NULL, TAC_BF16, 2);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    uint16_t first[512];

    c.lr = 0x1p-8; /* half a unit */
    c.stochastic_rounding = 1;
    add(&w, "a", 1, 512, 0, 0);
    add(&w, "b", 1, 512, 0, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    uint16_t *a = tac_params_value(w.params, 0);
    uint16_t *b = tac_params_value(w.params, 1);
    for (size_t i = 0; i < 1024; ++i)
        ((float *)tac_params_grads(w.params))[i] = -1;
    tac_optimizer *o = make(&w, &c);
    for (int step = 0; step < 2; ++step) {
        for (size_t i = 0; i < 512; ++i) a[i] = b[i] = tac_f32_to_bf16(1.5F);
        cr_assert_eq(tac_optimizer_step(o, NULL), TAC_OK);
        cr_assert_neq(memcmp(a, b, sizeof first), 0);
        if (step == 1) cr_assert_neq(memcmp(a, first, sizeof first), 0);
        memcpy(first, a, sizeof first);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}
