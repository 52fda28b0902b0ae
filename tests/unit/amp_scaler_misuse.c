/* amp_scaler_misuse.c: calls in the wrong order and settings out of range are
 * named and change nothing. */
#include "amp_setup.h"

static void expect_misuse(setup *t, tac_status got, const char *text)
{
    char buf[512];

    cr_assert_eq(got, TAC_ERR_STATE, "%s", text);
    cr_assert_not_null(strstr(eng_error(&t->w, buf, sizeof buf), text), "%s",
                       buf);
}

static void expect_grads(const setup *t, double a, double b, double c)
{
    cr_assert_eq(grad(&t->w, 0, 4), a);
    cr_assert_eq(grad(&t->w, 1, 0), b);
    cr_assert_eq(grad(&t->w, 2, 0), c);
}

Test(amp_scaler, misuse_is_named_and_changes_nothing)
{
    const char *twice = "unscale_() has already been called on this optimizer "
                        "since the last update()";
    const tac_scaler_config c = config(4, 2, 0.5, 2);
    setup t;

    open_setup(&t, TAC_F32, &c);
    expect_misuse(&t, tac_scaler_update(t.s, NULL),
                  "No inf checks were recorded");
    set_grads(&t.w, 16, 32, 64);
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
    expect_misuse(&t, tac_scaler_unscale(t.s, t.o, NULL), twice);
    expect_misuse(&t, tac_scaler_check(t.s, t.o, NULL),
                  "check() has already been called");
    expect_grads(&t, 4, 8, 16);
    cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
    const double after = eng_get(TAC_F32, tac_params_value(t.w.params, 0), 0);
    expect_misuse(&t, tac_scaler_step(t.s, t.o, NULL),
                  "step() has already been called since the last update()");
    expect_misuse(&t, tac_scaler_unscale(t.s, t.o, NULL),
                  "unscale_() is being called after step()");
    expect_misuse(&t, tac_scaler_check(t.s, t.o, NULL), "after step()");
    expect_grads(&t, 4, 8, 16);
    cr_assert_eq(eng_get(TAC_F32, tac_params_value(t.w.params, 0), 0), after);
    cr_assert_eq(tac_optimizer_scalars(t.o)->applied, 1);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    expect_misuse(&t, tac_scaler_update(t.s, NULL),
                  "No inf checks were recorded");
    cr_assert_eq(tracker(&t), 1, "counted once");
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
    close_setup(&t);
}

/* A check is enough for an update, as in torch. */
Test(amp_scaler, update_after_a_check_alone)
{
    setup t;

    open_setup(&t, TAC_F32, NULL);
    set_grads(&t.w, 1, 1, NAN);
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    cr_assert_eq(amp_scale(t.s), 32768);
    close_setup(&t);
}

Test(amp_scaler, too_many_optimizers)
{
    tac_optimizer *o[9];
    setup t;

    open_setup(&t, TAC_F32, NULL);
    for (int i = 0; i < 9; ++i) o[i] = sgd(&t.w);
    set_grads(&t.w, 0, 0, 0);
    for (int i = 0; i < 8; ++i)
        cr_assert_eq(tac_scaler_step(t.s, o[i], NULL), TAC_OK);
    cr_assert_eq(tac_scaler_step(t.s, o[8], NULL), TAC_ERR_ARG);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_step(t.s, o[8], NULL), TAC_OK);
    for (int i = 0; i < 9; ++i) tac_optimizer_destroy(o[i]);
    close_setup(&t);
}

Test(amp_scaler, settings_out_of_range)
{
    static const struct {
        double init, growth, backoff, min, max;
        int64_t interval, skips;
        const char *text;
    } bad[] = {
        {0, 2, .5, 1, 9, 1, 1, "init_scale"},
        {-1, 2, .5, 1, 9, 1, 1, "init_scale"},
        {NAN, 2, .5, 1, 9, 1, 1, "init_scale"},
        {1e39, 2, .5, 1, INFINITY, 1, 1, "init_scale"},
        {10, 2, .5, 1, 9, 1, 1, "init_scale"},
        {.5, 2, .5, 1, 9, 1, 1, "init_scale"},
        {2, 1, .5, 1, 9, 1, 1, "growth_factor"},
        {2, 1 + 1e-12, .5, 1, 9, 1, 1, "growth_factor"},
        {2, NAN, .5, 1, 9, 1, 1, "growth_factor"},
        {2, INFINITY, .5, 1, 9, 1, 1, "growth_factor"},
        {2, 2, 1, 1, 9, 1, 1, "backoff_factor"},
        {2, 2, 0, 1, 9, 1, 1, "backoff_factor"},
        {2, 2, NAN, 1, 9, 1, 1, "backoff_factor"},
        {2, 2, .5, -1, 9, 1, 1, "min_scale"},
        {2, 2, .5, 0, 9, 1, 1, "min_scale"},
        {2, 2, .5, 1e-46, 9, 1, 1, "min_scale"},
        {2, 2, .5, 9, 1, 1, 1, "min_scale"},
        {2, 2, .5, NAN, 9, 1, 1, "min_scale"},
        {2, 2, .5, 1, 9, -1, 1, "growth_interval"},
        {2, 2, .5, 1, 9, (int64_t)1 << 31, 1, "growth_interval"},
        {2, 2, .5, 1, 9, 1, -1, "max_skips"},
    };
    eng_world w = eng_open(NULL, TAC_F32, 1);
    tac_scaler *s = NULL;
    char text[512];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        tac_scaler_config c =
            config(bad[i].init, bad[i].growth, bad[i].backoff, bad[i].interval);
        c.min_scale = bad[i].min;
        c.max_scale = bad[i].max;
        c.max_skips = bad[i].skips;
        cr_assert_eq(tac_scaler_create(w.dev, &c, &s), TAC_ERR_ARG, "row %zu",
                     i);
        cr_assert_not_null(
            strstr(eng_error(&w, text, sizeof text), bad[i].text), "row %zu %s",
            i, text);
    }
    cr_assert_null(s);
    tac_scaler_config c = {0};
    cr_assert_eq(tac_scaler_create(w.dev, &c, &s), TAC_ERR_ARG);
    tac_scaler_destroy(NULL);
    eng_close(&w);
}
