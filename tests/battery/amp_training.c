/* amp_training.c: networks that train with a loss scale against ones without:
 * end to end with a skipped step, clipping, accumulation, schedules, and a run
 * that skips for ever. */
#include "amp_net.h"

static void close_to(const char *what, const float *a, const float *b, size_t n,
                     double factor, double atol, double rtol)
{
    size_t worst = 0;
    double off = -1;

    for (size_t i = 0; i < n; ++i) {
        const double x = (double)a[i] * factor, y = (double)b[i];
        const double over = fabs(x - y) - atol - rtol * fabs(y);
        if (!(over <= off)) off = over, worst = i;
    }
    CHECK_MSG(off <= 0, "%s: element %zu: %.9g and %.9g", what, worst,
              (double)a[worst] * factor, (double)b[worst]);
}

static void close_state(net *a, net *b, double atol, double rtol)
{
    static amp_store sa, sb;

    sa.n = sb.n = 0;
    CHECK_OK(amp_save(tac_optimizer_walk, a->o, &sa));
    CHECK_OK(amp_save(tac_optimizer_walk, b->o, &sb));
    if (!CHECK_EQ_U64(sa.n, sb.n)) return;
    for (size_t i = 0; i < sa.n; ++i) {
        if (sa.items[i].dtype != TAC_F32) {
            CHECK_EQ_MEM(sa.items[i].data, sb.items[i].data, sa.items[i].bytes);
            continue;
        }
        close_to(sa.items[i].name,
                 (const float *)(const void *)sa.items[i].data,
                 (const float *)(const void *)sb.items[i].data,
                 sa.items[i].bytes / 4, 1, atol, rtol);
    }
}

static void close_params(const net *a, const net *b, double atol, double rtol)
{
    close_to("parameters", tac_params_values(a->w.params),
             tac_params_values(b->w.params), net_elements(a), 1, atol, rtol);
}

/* --- end to end: init 128, growth 2, interval 1, an inf in the third of four
 * iterations; the control has no scaler and leaves out the same one --- */

static void end_to_end_iteration(net *a, net *control, int k, double tol)
{
    const double scale = amp_scale(a->s);

    if (!net_backward(a) || !net_backward(control)) return;
    CHECK_NEAR(a->loss, control->loss, tol + 1e-6);
    close_to("gradients", tac_params_grads(a->w.params),
             tac_params_grads(control->w.params), net_elements(a), 1 / scale,
             1e-7 + tol, 1e-5 + tol);
    if (k == 2) net_inject(a, INFINITY);
    net_update(a);
    if (k != 2) net_update(control);
}

static void end_to_end(tac_dtype low, tac_optimizer_kind kind, int in_place)
{
    const double tol = low == TAC_F32 ? 0 : 1e-3;
    net_config c = net_defaults(low);
    net a, control;

    c.optimizer = tac_optimizer_defaults(kind);
    c.optimizer.lr = kind == TAC_OPTIMIZER_SGD ? 0.5 : 0.01;
    if (kind == TAC_OPTIMIZER_SGD) c.optimizer.momentum = 0.9;
    c.in_place = in_place;
    net_open(&control, &c);
    net_enable(&c, 128, 1);
    net_open(&a, &c);
    for (int k = 0; k < 4; ++k) end_to_end_iteration(&a, &control, k, tol);
    CHECK_EQ_F64(amp_scale(a.s), 128.0 * 8 * 0.5);
    CHECK_EQ_U64(tac_optimizer_scalars(a.o)->applied, 3);
    close_params(&a, &control, 1e-7 + tol, 1e-5 + tol);
    close_state(&a, &control, 1e-7 + tol, 1e-5 + tol);
    net_close(&a);
    net_close(&control);
}

/* --- clipping: after unscaling; or before it, at max_norm * scale --- */

static void clipped_before(net *a)
{
    if (!net_backward(a)) return;
    CHECK_OK(tac_optimizer_clip(a->o, 0.2 * amp_scale(a->s), NULL));
    CHECK_OK(tac_scaler_unscale(a->s, a->o, NULL));
    CHECK_OK(tac_scaler_step(a->s, a->o, NULL));
    CHECK_OK(tac_scaler_update(a->s, NULL));
}

static void clipping(int in_place)
{
    net_config c = net_defaults(TAC_F32);
    net after, before, control;

    c.max_norm = 0.2;
    c.in_place = in_place;
    net_open(&control, &c);
    net_enable(&c, 128, 1);
    net_open(&after, &c);
    net_open(&before, &c);
    for (int k = 0; k < 4; ++k) {
        net_train(&after, 1);
        net_train(&control, 1);
        CHECK(*tac_optimizer_norm(control.o) > 0.2); /* it does clip */
        CHECK_NEAR(*tac_optimizer_norm(after.o), *tac_optimizer_norm(control.o),
                   1e-6);
        clipped_before(&before);
    }
    close_params(&after, &control, 1e-5, 0);
    close_params(&before, &control, 1e-5, 0);
    net_close(&after);
    net_close(&before);
    net_close(&control);
}

/* The threshold does not depend on the scale: the same update at 1 and 2^16. */
static void clip_at_any_scale(int in_place)
{
    net_config c = net_defaults(TAC_F32);
    net one, large;

    c.max_norm = 0.2;
    c.in_place = in_place;
    net_enable(&c, 1, 2000);
    net_open(&one, &c);
    net_enable(&c, 65536, 2000);
    net_open(&large, &c);
    net_train(&one, 5);
    net_train(&large, 5);
    close_params(&large, &one, 1e-7, 1e-6);
    net_close(&one);
    net_close(&large);
}

/* --- accumulation: micro-steps with one check at the end --- */

static void accumulation(tac_dtype low, int micro_steps, int in_place)
{
    const double tol = low == TAC_F32 ? 0 : 1e-3;
    net_config c = net_defaults(low);
    net a, control, whole;

    c.max_norm = 0.5;
    c.in_place = in_place;
    net_open(&whole, &c);
    c.micro_steps = micro_steps;
    net_open(&control, &c);
    net_enable(&c, 128, 1);
    net_open(&a, &c);
    net_train(&a, 4);
    net_train(&control, 4);
    net_train(&whole, 4);
    CHECK_EQ_F64(amp_scale(a.s), 2048);
    close_params(&a, &control, 1e-7 + tol, 1e-5 + tol);
    close_params(&a, &whole, 1e-6 + tol, 1e-5 + tol);
    net_close(&a);
    net_close(&control);
    net_close(&whole);
}

/* --- a skipped step: the scale halves once, the learning rate waits --- */

static void skipped_step_moves_nothing_but_the_scale(void)
{
    const tac_schedule schedule = {TAC_SCHEDULE_LINEAR, 0.5, 0.1, 2, 8};
    net_config c = net_defaults(TAC_F16);
    tac_scaler_report r;
    net n;

    c.schedule = &schedule;
    net_enable(&c, 65536, 2000);
    net_open(&n, &c);
    for (uint64_t k = 0, applied = 0; k < 8; ++k) {
        const int bad = k == 0 || k == 3;
        net_backward(&n);
        if (bad) net_inject(&n, k == 0 ? INFINITY : NAN);
        net_update(&n);
        CHECK_EQ_F64((double)(float)tac_optimizer_scalars(n.o)->lr,
                     (double)(float)tac_schedule_lr(&schedule, applied));
        applied += !bad;
        CHECK_EQ_U64(tac_optimizer_scalars(n.o)->applied, applied);
    }
    CHECK_OK(tac_scaler_poll(n.s, &r));
    CHECK_EQ_F64(r.scale, 16384);
    CHECK_EQ_U64(r.skipped, 2);
    CHECK_EQ(n.log.warnings, 0);
    net_close(&n);
}

/* A sample that is not a number never trains; after max_skips the run is told
 * to end, with the first tensor that it reached. */
static void endless_skips_end(void)
{
    net_config c = net_defaults(TAC_F16);
    tac_scaler_report r;
    tac_status s = TAC_OK;
    int k = 0;
    net n;

    net_enable(&c, 65536, 2000);
    c.scaler.max_skips = 20;
    net_open(&n, &c);
    n.x[3] = INFINITY;
    for (; k < 30 && s == TAC_OK; ++k) {
        net_train(&n, 1);
        s = tac_scaler_poll(n.s, &r);
    }
    CHECK_EQ(s, TAC_ERR_DIVERGED);
    CHECK_EQ(k, 20);
    CHECK_EQ_F64(r.scale, 1.0);
    CHECK_MSG(strstr(n.log.last, "fc1.weight, element") != NULL, "%s",
              n.log.last);
    net_close(&n);
}

int main(void)
{
    const tac_dtype types[] = {TAC_F32, TAC_F16, TAC_BF16};

    for (int in_place = 0; in_place < 2; ++in_place) {
        for (int i = 0; i < 3; ++i) {
            end_to_end(types[i], TAC_OPTIMIZER_SGD, in_place);
            end_to_end(types[i], TAC_OPTIMIZER_ADAMW, in_place);
            accumulation(types[i], 2, in_place);
            accumulation(types[i], 4, in_place);
        }
        clipping(in_place);
        clip_at_any_scale(in_place);
    }
    skipped_step_moves_nothing_but_the_scale();
    endless_skips_end();
    return tac_check_summary();
}
