/* amp_scaler.c: torch.amp.GradScaler's behaviour, with its tests' numbers: the
 * update, unscaling, finding inf and NaN, the limits of the scale. */
#include "amp_setup.h"

/* --- 1: the update's table --- */

Test(amp_scaler, update_table)
{
    const tac_scaler_config c = config(4, 2, 0.25, 2);
    setup t;

    open_setup(&t, TAC_F32, &c);
    iterate(&t, 0);
    cr_assert_eq(tracker(&t), 1);
    cr_assert_eq(amp_scale(t.s), 4);
    iterate(&t, 0);
    cr_assert_eq(tracker(&t), 0);
    cr_assert_eq(amp_scale(t.s), 8);
    iterate(&t, 1);
    cr_assert_eq(tracker(&t), 0);
    cr_assert_eq(amp_scale(t.s), 2);
    iterate(&t, 0);
    iterate(&t, 1);
    cr_assert_eq(tracker(&t), 0, "a skip between starts the count anew");
    iterate(&t, 0);
    cr_assert_eq(amp_scale(t.s), 1, "min_scale");
    cr_assert_eq(tracker(&t), 1);
    close_setup(&t);
}

/* --- 2: unscale, and inf and NaN anywhere --- */

static void expect_unscaled(tac_dtype dtype)
{
    const tac_scaler_config c = config(4, 2, 0.5, 2);
    setup t;

    open_setup(&t, dtype, &c);
    set_grads(&t.w, 16, 32, 64);
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(amp_found(t.o), 0);
    for (size_t i = 0; i < 3; ++i)
        for (size_t e = 0; e < counts[i]; ++e)
            cr_assert_eq(grad(&t.w, i, e), (double)(4 << i));
    cr_assert_eq(tac_optimizer_scalars(t.o)->grad_scale, 1.0F);
    close_setup(&t);
}

Test(amp_scaler, unscale_divides_exactly)
{
    expect_unscaled(TAC_F32);
    expect_unscaled(TAC_F64);
    expect_unscaled(TAC_F16);
    expect_unscaled(TAC_BF16);
}

Test(amp_scaler, check_leaves_gradients_scaled)
{
    const tac_scaler_config c = config(4, 2, 0.5, 2);
    setup t;

    open_setup(&t, TAC_F32, &c);
    set_grads(&t.w, 16, 32, 64);
    cr_assert_eq(tac_scaler_check(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(amp_found(t.o), 0);
    cr_assert_eq(tac_optimizer_scalars(t.o)->grad_scale, 4.0F);
    for (size_t i = 0; i < 3; ++i)
        cr_assert_eq(grad(&t.w, i, 0), (double)(16 << i));
    cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    cr_assert_eq(tac_optimizer_scalars(t.o)->grad_scale, 1.0F,
                 "between iterations nothing divides");
    close_setup(&t);
}

static void expect_found(setup *t, size_t i, size_t e, double bad, int in_place)
{
    tac_scaler_report r;
    const double before = amp_get(tac_params_dtype(t->w.params),
                                  tac_params_value(t->w.params, 1), 3);

    set_grads(&t->w, 16, 32, 64);
    set_grad(&t->w, i, e, bad);
    cr_assert_eq(in_place ? tac_scaler_unscale(t->s, t->o, NULL)
                          : tac_scaler_check(t->s, t->o, NULL),
                 TAC_OK);
    cr_assert_neq(amp_found(t->o), 0, "%g at %zu of %zu", bad, e, i);
    cr_assert_eq(tac_scaler_step(t->s, t->o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t->s, NULL), TAC_OK);
    cr_assert_eq(amp_get(tac_params_dtype(t->w.params),
                         tac_params_value(t->w.params, 1), 3),
                 before, "a skipped step");
    cr_assert_eq(tac_scaler_poll(t->s, &r), TAC_OK);
    cr_assert_eq(r.first_bad, tac_params_get(t->w.params, i)->offset + e);
    cr_assert_eq(amp_found(t->o), 0, "forgotten by the update");
}

Test(amp_scaler, one_bad_value_anywhere_is_found)
{
    const double bad[] = {INFINITY, -INFINITY, NAN};
    const tac_dtype types[] = {TAC_F32, TAC_F64, TAC_F16, TAC_BF16};
    tac_scaler_config c = config(4, 2, 0.5, 2);

    c.max_skips = 0;
    for (size_t d = 0; d < 4; ++d) {
        setup t;
        open_setup(&t, types[d], &c);
        for (size_t b = 0; b < 3; ++b)
            for (size_t i = 0; i < 3; ++i)
                for (size_t e = 0; e < counts[i]; ++e)
                    expect_found(&t, i, e, bad[b], (b + e) % 2 == 0);
        close_setup(&t);
    }
}

/* In torch two f16 gradients of 64000 overflow when they are added. Here they
 * are f32; a gradient far beyond f16 is no reason to skip. */
Test(amp_scaler, large_gradients_are_finite)
{
    setup t;

    open_setup(&t, TAC_F16, NULL);
    set_grads(&t.w, 128000, 3e38, -3e38);
    cr_assert_eq(tac_scaler_check(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(amp_found(t.o), 0);
    cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    close_setup(&t);
}

/* --- 7: growth never reaches infinity; the limits --- */

Test(amp_scaler, growth_stays_finite)
{
    const double limits[] = {INFINITY, (double)FLT_MAX};

    for (size_t i = 0; i < 2; ++i) {
        tac_scaler_config c = config(1e38, 16, 0.5, 1);
        setup t;
        c.max_scale = limits[i];
        open_setup(&t, TAC_F32, &c);
        for (int k = 0; k < 4; ++k) iterate(&t, 0);
        cr_assert(isfinite(amp_scale(t.s)), "%g", amp_scale(t.s));
        cr_assert_geq(amp_scale(t.s), (double)1e38F);
        close_setup(&t);
    }
}

Test(amp_scaler, scale_stays_in_its_limits)
{
    tac_scaler_config c = config(6, 2, 0.5, 1);
    setup t;

    c.min_scale = 4;
    c.max_scale = 20;
    open_setup(&t, TAC_F32, &c);
    iterate(&t, 0);
    cr_assert_eq(amp_scale(t.s), 12);
    iterate(&t, 0);
    cr_assert_eq(amp_scale(t.s), 20);
    iterate(&t, 0);
    cr_assert_eq(amp_scale(t.s), 20);
    iterate(&t, 1);
    iterate(&t, 1);
    cr_assert_eq(amp_scale(t.s), 5);
    iterate(&t, 1);
    cr_assert_eq(amp_scale(t.s), 4);
    iterate(&t, 1);
    cr_assert_eq(amp_scale(t.s), 4);
    close_setup(&t);
}

/* 65536 is 17 halvings away from less than 1, which only a lower floor
 * allows. */
Test(amp_scaler, seventeen_halvings)
{
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;
    setup t, low;

    open_setup(&t, TAC_F32, NULL);
    c.min_scale = 0.25;
    open_setup(&low, TAC_F32, &c);
    for (int i = 0; i < 17; ++i) {
        cr_assert_geq(amp_scale(low.s), 1.0);
        iterate(&t, 1);
        iterate(&low, 1);
    }
    cr_assert_eq(amp_scale(t.s), 1.0);
    cr_assert_eq(amp_scale(low.s), 0.5);
    close_setup(&t);
    close_setup(&low);
}

Test(amp_scaler, a_static_scale_neither_grows_nor_backs_off)
{
    const tac_scaler_config c = config(1000, 2, 0.5, 0);
    tac_scaler_report r;
    setup t;

    open_setup(&t, TAC_F32, &c);
    for (int i = 0; i < 5; ++i) iterate(&t, i == 2);
    cr_assert_eq(amp_scale(t.s), 1000);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
    cr_assert_eq(r.skipped, 1);
    cr_assert_eq(r.updates, 5);
    close_setup(&t);
}

Test(amp_scaler, set_scale_replaces_and_clamps)
{
    const double bad[] = {0, -1, NAN, INFINITY, 1e39};
    char text[256];
    setup t;

    open_setup(&t, TAC_F32, NULL);
    cr_assert_eq(tac_scaler_set_scale(t.s, 100, NULL), TAC_OK, "at any time");
    cr_assert_eq(amp_scale(t.s), 100);
    set_grads(&t.w, 100, 100, 100);
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_set_scale(t.s, 1e30, NULL), TAC_OK);
    cr_assert_eq(amp_scale(t.s), 16777216);
    cr_assert_eq(amp_state(t.s, "scaler.updates"), 1, "an update like others");
    set_grad(&t.w, 0, 0, NAN);
    cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK, "READY again");
    cr_assert_eq(tac_scaler_set_scale(t.s, 0.001, NULL), TAC_OK);
    cr_assert_eq(amp_scale(t.s), 1);
    cr_assert_eq(amp_state(t.s, "scaler.skipped"), 1);
    cr_assert_eq(amp_found(t.o), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        cr_assert_eq(tac_scaler_set_scale(t.s, bad[i], NULL), TAC_ERR_ARG);
    cr_assert_not_null(strstr(eng_error(&t.w, text, sizeof text), "scale"));
    cr_assert_eq(amp_scale(t.s), 1);
    close_setup(&t);
}
