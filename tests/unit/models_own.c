/* Models of the program's own: what is asked of them, and who frees what. */
#include <criterion/criterion.h>
#include <string.h>

#include "tacit/model.h"
#include "tacit/ops.h"

typedef struct own {
    size_t weight, wrong;
    int *destroyed;
} own;

static tac_status forward(void *impl, tac_tape *t, tac_tensor *x,
                          tac_tensor **logits)
{
    const own *o = impl;
    tac_tensor *flat = NULL;

    TAC_TRY(tac_op_flatten(t, x, &flat));
    if (o->wrong) {
        *logits = flat;
        return TAC_OK;
    }
    return tac_op_linear(t, flat, tac_tape_param(t, o->weight), NULL,
                         TAC_ACT_NONE, logits);
}

static void destroy(void *impl)
{
    own *o = impl;

    ++*o->destroyed;
}

static tac_status build(void *arg, tac_params *params,
                        const tac_model_config *c, tac_model **out)
{
    own *o = arg;
    const tac_model_ops ops = {sizeof ops, "mine", forward, destroy, 7, 21};
    const size_t shape[] = {c->classes, c->h * c->w * c->c};
    const tac_init init = {TAC_INIT_FAN_IN, 0};

    TAC_TRY(tac_params_add(params, "w", 2, shape, init, 0, &o->weight));
    return tac_model_create_from(params, &ops, o, c, out);
}

static tac_status build_nothing(void *arg, tac_params *params,
                                const tac_model_config *c, tac_model **out)
{
    (void)arg, (void)params, (void)c, (void)out;
    return TAC_OK;
}

static tac_context *ctx;
static tac_device *device;
static tac_params *params;

static void setup(void)
{
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
    cr_assert_eq(tac_device_open(ctx, "cpu", NULL, &device), TAC_OK);
    cr_assert_eq(tac_params_create(device, TAC_F32, &params), TAC_OK);
}

static void teardown(void)
{
    tac_params_destroy(params);
    tac_device_close(device);
    tac_context_destroy(ctx);
}

TestSuite(models_own, .init = setup, .fini = teardown);

/* A dry step: forward sees shapes alone. */
static tac_status dry(tac_model *m, tac_tensor **logits)
{
    const tac_tape_step step = {.flags = TAC_TAPE_DRY};
    const size_t shape[] = {3, 4, 5, 1};
    tac_tensor *x;
    tac_tape *tape;

    cr_assert_eq(tac_tape_create(params, NULL, &tape), TAC_OK);
    cr_assert_eq(tac_tape_begin(tape, &step), TAC_OK);
    cr_assert_eq(tac_tape_input(tape, "x", TAC_F32, 4, shape, NULL, 0, &x),
                 TAC_OK);
    const tac_status s = tac_model_forward(m, tape, x, logits);

    if (s >= 0) cr_expect_eq((*logits)->shape[0], 3);
    if (s >= 0) cr_expect_eq((*logits)->shape[1], 2);
    tac_tape_destroy(tape);
    return s;
}

static const tac_model_config config = {
    sizeof(tac_model_config), 4, 5, 1, 2, 0};

Test(models_own, built_and_freed_once)
{
    int destroyed = 0;
    own o = {0, 0, &destroyed};
    const tac_model_source source = {"mine", build, &o};
    tac_model *m = NULL;
    tac_tensor *logits;

    cr_assert_eq(tac_model_open(params, &source, &config, &m), TAC_OK);
    cr_expect_str_eq(tac_model_spec(m), "mine");
    cr_expect_eq(tac_model_flop_forward(m), 7);
    cr_expect_eq(tac_model_flop_per_sample(m), 21);
    cr_expect_eq(dry(m, &logits), TAC_OK);
    tac_model_destroy(m);
    cr_expect_eq(destroyed, 1);
}

Test(models_own, other_logits_are_refused)
{
    int destroyed = 0;
    own o = {0, 1, &destroyed};
    const tac_model_source source = {NULL, build, &o};
    char message[256];
    tac_model *m = NULL;
    tac_tensor *logits;

    cr_assert_eq(tac_model_open(params, &source, &config, &m), TAC_OK);
    cr_expect_eq(dry(m, &logits), TAC_ERR_ARG);
    tac_context_error(ctx, message, sizeof message);
    cr_expect(strstr(message, "expected (3,2)"), "%s", message);
    tac_model_destroy(m);
}

Test(models_own, failures_keep_the_callers_own)
{
    int destroyed = 0;
    own o = {0, 0, &destroyed};
    const tac_model_ops no_forward = {sizeof no_forward, "mine", NULL,
                                      destroy,           0,      0};
    const tac_model_config bad = {sizeof bad, 0, 5, 1, 2, 0};
    const tac_model_ops ops = {sizeof ops, "mine", forward, destroy, 0, 0};
    const tac_model_source nothing = {NULL, build_nothing, NULL};
    tac_model *m = NULL;

    cr_expect_eq(tac_model_create_from(params, &no_forward, &o, NULL, &m),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_model_create_from(params, NULL, &o, NULL, &m),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_model_create_from(params, &ops, &o, &bad, &m),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_model_open(params, &nothing, &config, &m), TAC_ERR_STATE);
    cr_expect_eq(tac_model_open(params, NULL, &config, &m), TAC_ERR_ARG);
    cr_expect_null(m);
    cr_expect_eq(destroyed, 0);
}

Test(models_own, a_source_may_name_a_known_model)
{
    const tac_model_source source = {.spec = "linear"};
    tac_model *m = NULL;

    cr_assert_eq(tac_model_open(params, &source, &config, &m), TAC_OK);
    cr_expect_str_eq(tac_model_spec(m), "linear");
    tac_model_destroy(m);
}
