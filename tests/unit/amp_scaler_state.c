/* amp_scaler_state.c: what a scaler saves and loads, and a disabled one. */
#include "amp_setup.h"

Test(amp_scaler, loaded_state_overrides_every_field)
{
    static amp_store saved, again;
    tac_scaler_config c = config(3, 4, 0.5, 2);
    setup from, to;

    open_setup(&from, TAC_F32, &c);
    iterate(&from, 0);
    open_setup(&to, TAC_F32, NULL);
    saved.n = again.n = 0;
    cr_assert_eq(amp_save(tac_scaler_walk, from.s, &saved), TAC_OK);
    cr_assert_eq(saved.n, 8);
    cr_assert_eq(amp_load(tac_scaler_walk, to.s, &saved), TAC_OK);
    cr_assert_eq(amp_save(tac_scaler_walk, to.s, &again), TAC_OK);
    cr_assert_eq(memcmp(&saved, &again, sizeof saved), 0);
    cr_assert_eq(amp_state(to.s, "scaler.scale"), 3);
    cr_assert_eq(amp_state(to.s, "scaler.growth_factor"), 4);
    cr_assert_eq(amp_state(to.s, "scaler.backoff_factor"), 0.5);
    cr_assert_eq(amp_state(to.s, "scaler.growth_interval"), 2);
    cr_assert_eq(amp_state(to.s, "scaler._growth_tracker"), 1);
    cr_assert_eq(amp_state(to.s, "scaler.updates"), 1);
    tac_scaler_report r;
    cr_assert_eq(tac_scaler_poll(to.s, &r), TAC_OK);
    cr_assert_eq(r.scale, 3, "known at once");
    iterate(&to, 0);
    cr_assert_eq(amp_scale(to.s), 12, "interval, tracker and factor count");
    iterate(&to, 1);
    cr_assert_eq(amp_scale(to.s), 6);
    close_setup(&from);
    close_setup(&to);
}

/* A scale of a run with another range is used as it is. */
Test(amp_scaler, a_loaded_scale_is_not_clamped)
{
    static amp_store saved;
    tac_scaler_config c = config(0x1p30, 2, 0.5, 2000);
    setup from, to;

    c.max_scale = INFINITY;
    open_setup(&from, TAC_F32, &c);
    open_setup(&to, TAC_F32, NULL);
    saved.n = 0;
    cr_assert_eq(amp_save(tac_scaler_walk, from.s, &saved), TAC_OK);
    cr_assert_eq(amp_load(tac_scaler_walk, to.s, &saved), TAC_OK);
    cr_assert_eq(amp_scale(to.s), 0x1p30);
    iterate(&to, 0);
    cr_assert_eq(amp_scale(to.s), 0x1p30, "clean steps leave it");
    close_setup(&from);
    close_setup(&to);
}

static void expect_state_refused(setup *t, amp_store *f, const char *text)
{
    static amp_store before, after;
    char got[256];

    before.n = after.n = 0;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    cr_assert_eq(amp_save(tac_scaler_walk, t->s, &before), TAC_OK);
    cr_assert_eq(amp_load(tac_scaler_walk, t->s, f), TAC_ERR_DATA);
    cr_assert_eq(amp_save(tac_scaler_walk, t->s, &after), TAC_OK);
    cr_assert_eq(memcmp(&before, &after, sizeof before), 0, "nothing changed");
    if (text != NULL)
        cr_assert_not_null(strstr(eng_error(&t->w, got, sizeof got), text),
                           "%s", got);
}

static void spoil(amp_store *f, const char *name, const void *value,
                  size_t bytes)
{
    amp_item *x = amp_find(f, name);
    cr_assert(x != NULL && x->bytes == bytes);
    memcpy(x->data, value, bytes);
}

Test(amp_scaler, a_wrong_state_is_refused)
{
    static amp_store good, f;
    const tac_scaler_config c = config(64, 2, 0.5, 7);
    const float scales[] = {0.0F, -1.0F, NAN, INFINITY};
    const double one = 1.0, two = 2.0;
    const int64_t interval = -3;
    const int32_t count = -1;
    setup t, other;

    open_setup(&t, TAC_F32, NULL);
    open_setup(&other, TAC_F32, &c);
    iterate(&t, 0);
    good.n = f.n = 0;
    expect_state_refused(&t, &f, NULL); /* an empty file */
    cr_assert_eq(amp_save(tac_scaler_walk, other.s, &good), TAC_OK);
    for (size_t i = 0; i < 4; ++i) {
        f = good;
        spoil(&f, "scaler.scale", &scales[i], sizeof scales[i]);
        expect_state_refused(&t, &f, "scale");
    }
    f = good;
    spoil(&f, "scaler.growth_factor", &one, sizeof one);
    expect_state_refused(&t, &f, "growth_factor");
    f = good;
    spoil(&f, "scaler.backoff_factor", &two, sizeof two);
    expect_state_refused(&t, &f, "backoff_factor");
    f = good;
    spoil(&f, "scaler.growth_interval", &interval, sizeof interval);
    expect_state_refused(&t, &f, "growth_interval");
    f = good;
    spoil(&f, "scaler._growth_tracker", &count, sizeof count);
    expect_state_refused(&t, &f, "tracker");
    f = good;
    f.n -= 1; /* the last item is missing */
    expect_state_refused(&t, &f, NULL);
    close_setup(&t);
    close_setup(&other);
}

Test(amp_scaler, disabled_passes_everything_through)
{
    static amp_store saved;
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;
    tac_scaler_report r;
    setup t, plain;

    c.enabled = 0;
    open_setup(&t, TAC_F32, &c);
    open_setup(&plain, TAC_F32, NULL);
    cr_assert_eq(*tac_scaler_scale(t.s), 1.0F);
    for (int i = 0; i < 3; ++i) {
        set_grads(&t.w, 1, 2, i);
        set_grads(&plain.w, 1, 2, i);
        cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_unscale(t.s, t.o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_step(t.s, t.o, NULL), TAC_OK);
        cr_assert_eq(tac_scaler_update(t.s, NULL), TAC_OK);
        cr_assert_eq(tac_optimizer_step(plain.o, NULL), TAC_OK);
    }
    cr_assert_eq(memcmp(tac_params_values(t.w.params),
                        tac_params_values(plain.w.params),
                        tac_params_padded(t.w.params) * sizeof(float)),
                 0);
    cr_assert_eq(tac_scaler_set_scale(t.s, 7, NULL), TAC_OK);
    cr_assert_eq(amp_scale(t.s), 1.0);
    saved.n = 0;
    cr_assert_eq(amp_save(tac_scaler_walk, t.s, &saved), TAC_OK);
    cr_assert_eq(saved.n, 0, "its state is empty");
    cr_assert_eq(amp_load(tac_scaler_walk, t.s, &saved), TAC_OK);
    cr_assert_eq(tac_scaler_poll(t.s, &r), TAC_OK);
    cr_assert_eq(r.scale, 1.0);
    cr_assert_eq(r.updates + r.skipped + r.consecutive, 0);
    close_setup(&t);
    close_setup(&plain);
}
