/* amp_scaler_several.c: several optimizers, frozen parameters, agreement of
 * ranks, and what the host learns. */
#include "amp_setup.h"

/* --- several optimizers, frozen parameters, agreement --- */

Test(amp_scaler, two_optimizers_share_a_scale)
{
    const tac_scaler_config c = config(8, 2, 0.5, 2);
    tac_scaler_report r;
    setup t, u;

    open_setup(&t, TAC_F32, &c);
    open_setup(&u, TAC_F32, &c);
    for (int bad = 0; bad < 2; ++bad) {
        eng_world w2 = {t.w.ctx, t.w.dev, NULL, NULL};
        cr_assert_eq(tac_params_create(t.w.dev, TAC_F32, &w2.params), TAC_OK);
        add_params(&w2, 0);
        tac_optimizer *o2 = sgd(&w2);
        set_grads(&t.w, 8, 8, bad == 0 ? NAN : 8);
        set_grads(&w2, 8, bad == 1 ? -INFINITY : 8, 8);
        cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_step(t.s, o2, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
        cr_assert_eq(amp_scale(t.s), bad == 0 ? 4 : 2);
        cr_assert_eq(tac_optimizer_scalars(o2)->applied, bad == 0 ? 1 : 0,
                     "each skips by itself");
        cr_assert_eq(tac_optimizer_scalars(t.o)->applied, bad == 0 ? 0 : 1);
        cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
        cr_assert_eq(r.first_bad,
                     tac_params_get(t.w.params, bad == 0 ? 2 : 1)->offset);
        tac_optimizer_destroy(o2);
        tac_params_destroy(w2.params);
    }
    cr_assert_eq(tac_scaler_step(u.s, t.o, NULL), TAC_ERR_ARG,
                 "another device");
    close_setup(&t);
    close_setup(&u);
}

Test(amp_scaler, a_frozen_group_steps_as_nothing)
{
    amp_log log;
    eng_world w = amp_open(&log, TAC_F32, 1);
    const tac_scaler_config c = config(8, 2, 0.5, 1);
    tac_scaler *s = NULL;

    add_params(&w, TAC_PARAM_FROZEN);
    tac_optimizer *o = sgd(&w);
    cr_assert_eq(tac_scaler_create(w.dev, &c, &s), TAC_OK);
    for (int i = 0; i < 3; ++i) {
        cr_assert_eq(tac_scaler_unscale(s, o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_step(s, o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_update(s, NULL), TAC_OK);
    }
    cr_assert_eq(log.warnings, 1, "said once: %s", log.last);
    cr_assert_eq(log.errors, 0);
    cr_assert_eq(amp_scale(s), 64, "nothing was bad");
    tac_scaler_destroy(s);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

typedef struct others {
    int calls;
    float seen, say;
} others;

static tac_status agree(void *arg, float *found_inf, tac_queue *queue)
{
    others *x = arg;

    (void)queue;
    x->calls += 1;
    x->seen = *found_inf;
    if (x->say != 0.0F) *found_inf = x->say;
    return TAC_OK;
}

static tac_status refuse(void *arg, float *found_inf, tac_queue *queue)
{
    (void)arg;
    (void)found_inf;
    (void)queue;
    return TAC_ERR_PEER;
}

Test(amp_scaler, ranks_agree_by_the_callers_function)
{
    others x = {0, 0, 0};
    char text[512];
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;
    tac_scaler_report r;
    setup t;

    c.max_skips = 2;
    open_setup(&t, TAC_F32, &c);
    tac_scaler_set_agree(t.s, agree, &x);
    iterate(&t, 1);
    cr_assert_eq(x.calls, 1, "once a check");
    cr_assert_neq(x.seen, 0);
    iterate(&t, 0);
    cr_assert_eq(x.seen, 0);
    cr_assert_eq(tac_optimizer_scalars(t.o)->applied, 1);
    x.say = 1;
    iterate(&t, 0);
    cr_assert_eq(tac_optimizer_scalars(t.o)->applied, 1, "another rank's inf");
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
    cr_assert_eq(r.first_bad, UINT64_MAX);
    cr_assert_eq(r.skipped, 2);
    iterate(&t, 0);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_ERR_DIVERGED);
    cr_assert_not_null(
        strstr(eng_error(&t.w, text, sizeof text), "another rank"), "%s", text);
    tac_scaler_set_agree(t.s, refuse, NULL);
    cr_assert_eq(tac_scaler_check(t.s, t.o, NULL), TAC_ERR_PEER);
    tac_scaler_set_agree(t.s, NULL, NULL);
    cr_assert_eq(tac_scaler_check(t.s, t.o, NULL), TAC_OK, "still READY");
    cr_assert_eq(x.calls, 4);
    close_setup(&t);
}

/* --- what the host learns --- */

Test(amp_scaler, gives_up_after_skips_in_a_row_and_names_the_tensor)
{
    tac_scaler_config c = config(64, 2, 0.5, 2000);
    tac_scaler_report r;
    char text[512];
    setup t;

    c.max_skips = 3;
    open_setup(&t, TAC_F32, &c);
    iterate(&t, 1);
    iterate(&t, 1);
    iterate(&t, 0); /* the count starts anew */
    iterate(&t, 1);
    iterate(&t, 1);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
    cr_assert_eq(r.consecutive, 2);
    set_grads(&t.w, 1, 1, 1);
    set_grad(&t.w, 1, 7, NAN);
    set_grad(&t.w, 2, 0, INFINITY);
    cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_ERR_DIVERGED);
    cr_assert_eq(r.consecutive, 3);
    cr_assert_eq(r.skipped, 5);
    cr_assert_eq(r.updates, 6);
    cr_assert_eq(r.scale, 2.0);
    eng_error(&t.w, text, sizeof text);
    cr_assert_not_null(strstr(text, "second, element 7 of 12"), "%s", text);
    cr_assert_not_null(strstr(text, "3 steps in a row"), "%s", text);
    cr_assert_not_null(strstr(text, "step 6"), "%s", text);
    cr_assert_not_null(strstr(text, "scale 2"), "%s", text);
    close_setup(&t);
}

Test(amp_scaler, never_gives_up_if_told_so)
{
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;
    tac_scaler_report r;
    setup t;

    c.max_skips = 0;
    open_setup(&t, TAC_F32, &c);
    for (int i = 0; i < 150; ++i) iterate(&t, 1);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
    cr_assert_eq(r.consecutive, 150);
    close_setup(&t);
}

/* The first steps of a run overflow while the scale is found: that is no
 * reason to worry anyone. */
Test(amp_scaler, a_skip_is_silent)
{
    setup t;

    open_setup(&t, TAC_F32, NULL);
    for (int i = 0; i < 10; ++i) iterate(&t, i < 3);
    cr_assert_eq(t.log.warnings, 0, "%s", t.log.last);
    cr_assert_eq(t.log.errors, 0, "%s", t.log.last);
    close_setup(&t);
}

/* A norm that was measured before the gradients changed must not hide an inf.
 */
Test(amp_scaler, an_old_norm_hides_nothing)
{
    setup t;

    open_setup(&t, TAC_F32, NULL);
    set_grads(&t.w, 1, 1, 1);
    cr_assert_eq(tac_optimizer_clip(t.o, INFINITY, NULL), TAC_OK);
    iterate(&t, 1);
    cr_assert_eq(tac_optimizer_scalars(t.o)->applied, 0);
    cr_assert_eq(amp_scale(t.s), 32768);
    close_setup(&t);
}
