/* amp_autocast.c: the op policy's table, regions that nest, and how often
 * weights are cast. */
#include <criterion/criterion.h>

#include "amp_test.h"

static eng_world open_world(tac_dtype dtype)
{
    eng_world w = eng_open(NULL, dtype, 2);

    amp_add(&w, "weight", 2, 5, 7, 0);
    amp_add(&w, "bias", 1, 5, 0, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(w.params, 3), TAC_OK);
    cr_assert_eq(tac_tape_create(w.params, NULL, &w.tape), TAC_OK);
    cr_assert_eq(tac_tape_begin(w.tape, NULL), TAC_OK);
    return w;
}

static tac_tensor *linear(eng_world *w)
{
    static float data[21];
    const size_t shape[2] = {3, 7};
    tac_tensor *x = NULL, *y = NULL;

    eng_fill(TAC_F32, data, 21, 9, 0);
    cr_assert_eq(tac_tape_input(w->tape, "x", TAC_F32, 2, shape, data, 0, &x),
                 TAC_OK);
    cr_assert_eq(tac_op_linear(w->tape, x, tac_tape_param(w->tape, 0),
                               tac_tape_param(w->tape, 1), TAC_ACT_RELU, &y),
                 TAC_OK);
    return y;
}

/* --- the table --- */

Test(amp_autocast, rules_by_name)
{
    cr_assert_eq(tac_autocast_rule("linear"), TAC_CAST_LOW);
    cr_assert_eq(tac_autocast_rule("conv2d"), TAC_CAST_LOW);
    cr_assert_eq(tac_autocast_rule("conv2d_max_pool2d"), TAC_CAST_LOW);
    cr_assert_eq(tac_autocast_rule("attention"), TAC_CAST_LOW);
    cr_assert_eq(tac_autocast_rule("softmax_cross_entropy"), TAC_CAST_F32);
    cr_assert_eq(tac_autocast_rule("layer_norm"), TAC_CAST_F32);
    cr_assert_eq(tac_autocast_rule("add"), TAC_CAST_WIDEST);
    cr_assert_eq(tac_autocast_rule("relu"), TAC_CAST_NONE);
    cr_assert_eq(tac_autocast_rule("no such operation"), TAC_CAST_NONE);
    cr_assert_eq(tac_autocast_rule(NULL), TAC_CAST_NONE);
    for (const tac_autocast_entry *e = tac_autocast_policy(); e->op; ++e) {
        cr_assert_eq(tac_autocast_rule(e->op), e->rule, "%s", e->op);
        cr_assert(e->why != NULL && e->why[0] != '\0', "%s", e->op);
    }
}

static const char *rule_word(tac_cast_rule r)
{
    static const char *const words[] = {"inputs", "low", "f32", "widest"};
    return words[r];
}

/* The table in docs/precision.md: a row "| `op` | rule | ..." for each entry,
 * and none for others. */
Test(amp_autocast, the_documentation_has_the_same_table)
{
    char path[4096], line[1024], op[64], rule[64];
    size_t rows = 0, entries = 0;

    snprintf(path, sizeof path, "%s", __FILE__);
    char *end = strstr(path, "tests/unit/");
    cr_assert_not_null(end);
    snprintf(end, sizeof path - (size_t)(end - path), "docs/precision.md");
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "| `%63[a-z0-9_]` | %63[a-z0-9] |", op, rule) != 2 ||
            (strcmp(rule, "low") != 0 && strcmp(rule, "f32") != 0 &&
             strcmp(rule, "widest") != 0 && strcmp(rule, "inputs") != 0))
            continue;
        rows += 1;
        cr_assert_str_eq(rule, rule_word(tac_autocast_rule(op)), "%s", op);
    }
    fclose(f);
    for (const tac_autocast_entry *e = tac_autocast_policy(); e->op; ++e)
        entries += 1;
    cr_assert_eq(rows, entries, "%zu rows in %s, %zu in the policy", rows, path,
                 entries);
}

Test(amp_autocast, precision_by_name)
{
    eng_world w = eng_open(NULL, TAC_F32, 1);
    tac_dtype d = TAC_U8;
    char text[256];

    cr_assert_eq(tac_precision_parse(w.ctx, "fp32", &d), TAC_OK);
    cr_assert_eq(d, TAC_F32);
    cr_assert_eq(tac_precision_parse(w.ctx, "fp16", &d), TAC_OK);
    cr_assert_eq(d, TAC_F16);
    cr_assert_eq(tac_precision_parse(w.ctx, "bf16", &d), TAC_OK);
    cr_assert_eq(d, TAC_BF16);
    cr_assert_eq(tac_precision_parse(w.ctx, "fp8", &d), TAC_ERR_ARG);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "bf16"));
    cr_assert_eq(tac_precision_parse(w.ctx, NULL, &d), TAC_ERR_ARG);
    cr_assert_eq(d, TAC_BF16, "not written");
    eng_close(&w);
}

/* --- regions --- */

static tac_dtype on(const eng_world *w)
{
    const tac_tape_autocast *a = tac_tape_get_autocast(w->tape);
    return a == NULL ? TAC_F32 : a->low;
}

Test(amp_autocast, regions_nest)
{
    enum { DEEP = 12 };
    eng_world w = open_world(TAC_F32);
    tac_autocast r[DEEP];

    for (int i = 0; i < DEEP; ++i) {
        cr_assert_eq(
            tac_autocast_begin(w.tape, i % 2 ? TAC_BF16 : TAC_F16, NULL, &r[i]),
            TAC_OK);
        cr_assert_eq(on(&w), i % 2 ? TAC_BF16 : TAC_F16);
    }
    for (int i = DEEP - 1; i >= 0; --i) {
        cr_assert_eq(on(&w), i % 2 ? TAC_BF16 : TAC_F16);
        cr_assert_eq(tac_autocast_end(&r[i]), TAC_OK);
    }
    cr_assert_null(tac_tape_get_autocast(w.tape));
    eng_close(&w);
}

Test(amp_autocast, misuse_is_named_and_changes_nothing)
{
    eng_world w = open_world(TAC_F32);
    tac_autocast a, b, none = {NULL, 0, {0}, {0}};
    tac_autocast_config bad = TAC_AUTOCAST_CONFIG_INIT;
    char text[256];

    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F64, NULL, &a), TAC_ERR_ARG);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "f64"));
    bad.struct_size = 1;
    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, &bad, &a), TAC_ERR_ARG);
    cr_assert_null(tac_tape_get_autocast(w.tape));
    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, NULL, &a), TAC_OK);
    cr_assert_eq(tac_autocast_begin(w.tape, TAC_BF16, NULL, &b), TAC_OK);
    cr_assert_eq(tac_autocast_end(&a), TAC_ERR_STATE);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "inner"));
    cr_assert_eq(on(&w), TAC_BF16);
    cr_assert_eq(tac_autocast_end(&b), TAC_OK);
    cr_assert_eq(tac_autocast_end(&a), TAC_OK);
    cr_assert_eq(tac_autocast_end(&a), TAC_ERR_STATE, "twice");
    cr_assert_eq(tac_autocast_end(&none), TAC_ERR_STATE);
    cr_assert_eq(tac_autocast_end(NULL), TAC_ERR_STATE);
    eng_close(&w);
}

/* --- weights: cast once a region, each time, or not at all --- */

static size_t casts(int cache, const tac_master *m, eng_world *w, double *sum)
{
    tac_autocast_config c = TAC_AUTOCAST_CONFIG_INIT;
    tac_autocast r;
    const size_t before = tac_tape_param_casts(w->tape);

    c.cache = cache;
    c.master = m;
    *sum = 0.0;
    cr_assert_eq(tac_tape_begin(w->tape, NULL), TAC_OK);
    cr_assert_eq(tac_autocast_begin(w->tape, TAC_F16, &c, &r), TAC_OK);
    for (int i = 0; i < 2; ++i) {
        const tac_tensor *y = linear(w);
        for (size_t e = 0; e < tac_tensor_count(y); ++e)
            *sum += amp_get(TAC_F16, y->data, e);
    }
    cr_assert_eq(tac_autocast_end(&r), TAC_OK);
    return tac_tape_param_casts(w->tape) - before;
}

Test(amp_autocast, weights_are_cast_once_a_region)
{
    eng_world w = open_world(TAC_F32);
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;
    tac_master *m = NULL;
    double cached, uncached, kept;

    mc.low = TAC_F16;
    cr_assert_eq(tac_master_create(w.params, &mc, &m), TAC_OK);
    cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
    cr_assert_eq(casts(1, NULL, &w, &cached), 2, "weight and bias, once");
    cr_assert_eq(casts(0, NULL, &w, &uncached), 4, "twice");
    cr_assert_eq(casts(1, m, &w, &kept), 0, "working weights");
    cr_assert_eq(cached, uncached);
    cr_assert_eq(cached, kept);
    tac_master_destroy(m);
    eng_close(&w);
}

Test(amp_autocast, working_weights_must_fit)
{
    eng_world w = open_world(TAC_F32), other = open_world(TAC_F32);
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;
    tac_autocast_config c = TAC_AUTOCAST_CONFIG_INIT;
    tac_master *m = NULL;
    tac_autocast r;
    char text[256];

    cr_assert_eq(tac_master_create(w.params, &mc, &m), TAC_OK);
    c.master = m;
    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, &c, &r), TAC_ERR_ARG);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "bf16"));
    cr_assert_eq(tac_autocast_begin(other.tape, TAC_BF16, &c, &r), TAC_ERR_ARG);
    cr_assert_null(tac_tape_get_autocast(w.tape));
    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F32, &c, &r), TAC_OK,
                 "a region of f32 has no use for them");
    cr_assert_eq(tac_autocast_end(&r), TAC_OK);
    tac_master_destroy(m);
    eng_close(&w);
    eng_close(&other);
}
