/* The simulator against closed forms. */
#include <criterion/criterion.h>
#include <string.h>

#include "localsgd_sim_setup.h"
#include "sim_impl.h"

static tac_context *ctx;

static void set_up(void)
{
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
}

static void tear_down(void)
{
    tac_context_destroy(ctx);
}

TestSuite(localsgd_sim, .init = set_up, .fini = tear_down);

static tac_sim_result run(const tac_sim_config *c, const tac_sim_network *nets)
{
    tac_sim_result r;
    memset(&r, 0xff, sizeof r);
    cr_assert_eq(tac_sim_run(ctx, c, nets, NULL, 0, &r), TAC_OK);
    return r;
}

#define NEAR(a, b)                                                      \
    cr_expect(sim_near(a, b), "%s = %.17g, not %.17g", #a, (double)(a), \
              (double)(b))

Test(localsgd_sim, data_parallel_after_the_step)
{
    tac_sim_config c = sim_config(4, 800, 10);
    const tac_sim_network n = sim_net(100, 0.25);
    c.sending = TAC_SIM_AFTER_STEP;
    const tac_sim_result r = run(&c, &n);
    NEAR(r.total_s, 10 * (3 + 8 + 0.25));
    NEAR(r.compute_s, 30);
    NEAR(r.exposed_s, 10 * 8.25);
    NEAR(r.utilisation, 30 / 112.5);
    NEAR(r.bits_sent, 8000);
    NEAR(r.bits_peak, 800);
    cr_expect_eq(r.syncs, 10);
}

/* With one layer nothing can be hidden behind backward. */
Test(localsgd_sim, data_parallel_with_one_layer)
{
    tac_sim_config c = sim_config(1, 800, 10);
    const tac_sim_network n = sim_net(100, 0.25);
    NEAR(run(&c, &n).total_s, 10 * (3 + 8 + 0.25));
}

/* T = S t_c + floor(S/H) t_ar. */
Test(localsgd_sim, local_sgd)
{
    for (int64_t every = 1; every <= 12; every++)
        for (int64_t layers = 1; layers <= 5; layers += 4) {
            const tac_localsgd_config l = sim_every(every);
            tac_sim_config c = sim_config(layers, 800, 30);
            const tac_sim_network n = sim_net(100, 0.25);
            c.sending = TAC_SIM_AFTER_STEP;
            sim_local(&c, &l);
            const tac_sim_result r = run(&c, &n);
            NEAR(r.total_s, 90 + (double)(30 / every) * 8.25);
            cr_expect_eq(r.syncs, 30 / every);
        }
}

Test(localsgd_sim, a_run_that_ends_is_synchronised)
{
    const tac_localsgd_config l = sim_every(4);
    tac_sim_config c = sim_config(1, 800, 10);
    const tac_sim_network n = sim_net(100, 0);
    sim_local(&c, &l);
    NEAR(run(&c, &n).total_s, 30 + 2 * 8);
    c.finish = 1;
    NEAR(run(&c, &n).total_s, 30 + 3 * 8);
    c.steps = 8; /* all are equal after attempt 8 */
    NEAR(run(&c, &n).total_s, 24 + 2 * 8);
}

Test(localsgd_sim, every_attempt_before_start)
{
    tac_localsgd_config l = sim_every(4);
    tac_sim_config c = sim_config(1, 800, 11);
    const tac_sim_network n = sim_net(100, 0);
    l.schedule.start = 3; /* then 7 and 11 */
    sim_local(&c, &l);
    NEAR(run(&c, &n).total_s, 33 + 5 * 8);
}

Test(localsgd_sim, infinite_bandwidth)
{
    tac_localsgd_config l = sim_every(5);
    tac_sim_config c = sim_config(7, 1e12, 100);
    const tac_sim_network n = sim_net(INFINITY, 0);
    NEAR(run(&c, &n).utilisation, 1);
    sim_local(&c, &l);
    NEAR(run(&c, &n).utilisation, 1);
    l.fragments = 3;
    l.delay = 1;
    const tac_sim_result r = run(&c, &n);
    NEAR(r.utilisation, 1);
    cr_expect(r.exposed_s < 1e-6);
}

/* Layers one after another in one queue: with latency alone, too. */
Test(localsgd_sim, latency_of_each_message)
{
    tac_sim_config c = sim_config(4, 800, 1);
    const tac_sim_network n = sim_net(INFINITY, 16);
    /* The queue begins with the last layer, after 1 + 1/4 of 2 s. */
    NEAR(run(&c, &n).total_s, 1.5 + 4 * 16);
    c.sending = TAC_SIM_AFTER_STEP;
    NEAR(run(&c, &n).total_s, 3 + 16);
}

Test(localsgd_sim, ring_and_halving)
{
    tac_sim_config c = sim_config(1, 800, 10);
    const tac_sim_network n = sim_net(100, 0.25);
    c.topology = TAC_SIM_RING;
    for (c.workers = 1; c.workers <= 9; c.workers++) {
        const double m = (double)c.workers;
        const tac_sim_result r = run(&c, &n);
        NEAR(r.total_s, 10 * (3 + 2 * (m - 1) * 0.25 + 2 * (1 - 1 / m) * 8));
        NEAR(r.bits_sent, 8000);
        NEAR(r.bits_link, 8000 * 2 * (1 - 1 / m));
    }
    c.topology = TAC_SIM_HALVING;
    c.workers = 8;
    NEAR(run(&c, &n).total_s, 10 * (3 + 6 * 0.25 + 14));
    c.workers = 9;
    NEAR(run(&c, &n).total_s, 10 * (3 + 8 * 0.25 + 16. / 9 * 8));
}

Test(localsgd_sim, one_worker_waits_for_nobody)
{
    tac_sim_config c = sim_config(3, 800, 10);
    const tac_sim_network n = {1, 1, 100, 100};
    c.workers = 1;
    c.codec_s = 1;
    NEAR(run(&c, &n).utilisation, 1);
}

Test(localsgd_sim, the_slower_direction_counts)
{
    tac_sim_config c = sim_config(1, 800, 1);
    const tac_sim_network up = {100, 1e9, 0, 0}, down = {1e9, 100, 0, 0};
    NEAR(run(&c, &up).total_s, 11);
    NEAR(run(&c, &down).total_s, 11);
}

Test(localsgd_sim, time_of_the_codec)
{
    tac_sim_config c = sim_config(1, 800, 2);
    const tac_sim_network n = sim_net(100, 0);
    c.codec_s = 0.01;
    NEAR(run(&c, &n).total_s, 2 * (3 + 8 + 8));
}

Test(localsgd_sim, all_wait_for_the_slow)
{
    const tac_localsgd_config l = sim_every(5);
    tac_sim_config c = sim_config(1, 800, 10);
    const tac_sim_network n = sim_net(100, 0);
    c.workers = 7;
    c.straggler_factor = 1.5;
    sim_local(&c, &l);
    const tac_sim_result r = run(&c, &n);
    NEAR(r.total_s, 10 * 4.5 + 2 * 8);
    NEAR(r.compute_s, 30);
    NEAR(r.exposed_s, 16);
    cr_expect_eq(r.classes, 2);
    c.straggler_share = 1;
    cr_expect_eq(run(&c, &n).classes, 1);
    NEAR(run(&c, &n).total_s, 10 * 4.5 + 2 * 8);
}

/* Only the largest period that divides an attempt runs. */
Test(localsgd_sim, levels_add_up)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = sim_config(1, 800, 48);
    const tac_sim_network n[3] = {sim_net(800, 0), sim_net(400, 0),
                                  sim_net(100, 0.5)};
    l.n_levels = 3;
    l.levels[0] = (tac_sync_level){2, 2};
    l.levels[1] = (tac_sync_level){8, 4};
    l.levels[2] = (tac_sync_level){16, 12};
    c.workers = 16;
    c.topology = TAC_SIM_RING;
    sim_local(&c, &l);
    const double n0 = 48. / 2 - 48. / 4, n1 = 48. / 4 - 48. / 12, n2 = 4;
    const double r0 = 1, r1 = 2 - 2. / 8, r2 = 2 - 2. / 16;
    const tac_sim_result r = run(&c, n);
    NEAR(r.bits_link, 800 * (r0 * n0 + r1 * n1 + r2 * n2));
    NEAR(r.bits_sent, 800 * (n0 + n1 + n2));
    NEAR(r.total_s, 144 + n0 * r0 + n1 * r1 * 2 + n2 * (r2 * 8 + 2 * 15 * 0.5));
    cr_expect_eq(r.classes, 1);
}

/* A slow worker delays its group at once, all others at the outermost level. */
Test(localsgd_sim, levels_keep_a_slow_worker_apart)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = sim_config(1, 800, 4);
    const tac_sim_network n[2] = {sim_net(800, 0), sim_net(100, 0)};
    l.n_levels = 2;
    l.levels[0] = (tac_sync_level){2, 1};
    l.levels[1] = (tac_sync_level){8, 4};
    c.workers = 8;
    c.straggler_factor = 2;
    sim_local(&c, &l);
    const tac_sim_result r = run(&c, n);
    NEAR(r.total_s, 4 * 6 + 3 * 1 + 8); /* three inner ones, one outer */
    cr_expect_eq(r.classes, 3);         /* slow, beside it, elsewhere */
}

Test(localsgd_sim, time_and_bandwidth_scale)
{
    tac_localsgd_config l = sim_every(6);
    tac_sim_config c = sim_config(6, 4096, 60);
    l.fragments = 3;
    l.delay = 2;
    sim_local(&c, &l);
    for (double b = 16; b < 1e5; b *= 2) {
        const tac_sim_network n = sim_net(b, 0.125);
        const tac_sim_network slow = sim_net(b / 4, 0.5);
        tac_sim_config longer = c;
        longer.step_s *= 4;
        const tac_sim_result x = run(&c, &n), y = run(&longer, &slow);
        NEAR(y.total_s, 4 * x.total_s);
        NEAR(y.utilisation, x.utilisation);
    }
}

Test(localsgd_sim, faster_is_never_slower)
{
    tac_localsgd_config l = sim_every(7);
    tac_sim_config c = sim_config(5, 1000, 50);
    l.fragments = 2;
    l.delay = 3;
    sim_local(&c, &l);
    for (int sending = 0; sending < 2; sending++) {
        double before = INFINITY;
        c.sending = (tac_sim_sending)sending;
        for (double b = 1; b < 1e6; b *= 1.3) {
            const tac_sim_network n = sim_net(b, 0.01);
            const double t = run(&c, &n).total_s;
            cr_expect(t <= before, "%g s at %g bits/s, %g s before", t, b,
                      before);
            before = t;
        }
        NEAR(before, 150); /* the last is sent after attempt 49 */
    }
}

/* E max(|X|, |Y|) = 2 / sqrt(pi). */
Test(localsgd_sim, jitter)
{
    tac_sim_config c = sim_config(1, 800, 20000);
    const tac_sim_network n = {INFINITY, INFINITY, 0, 0.5};
    const double t = run(&c, &n).total_s;
    cr_expect_eq(run(&c, &n).total_s, t);
    const double mean = (t - 60000) / 20000;
    cr_expect(fabs(mean - 0.5 * 1.1283791671) < 0.006, "mean %g", mean);
    c.seed = 1;
    cr_expect_neq(run(&c, &n).total_s, t);
    c.workers = 10000; /* the latest of many: E about 4 */
    const double late = (run(&c, &n).total_s - 60000) / 20000 / 0.5;
    cr_expect(late > 3.9 && late < 4.2, "%g", late);
}

/* Groups of the innermost level have luck of their own, so the slowest of four
 * is later than one: sums of 3 draws, mean 1.69, deviation 0.52. */
Test(localsgd_sim, jitter_of_groups)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = sim_config(1, 800, 4000);
    tac_sim_network n[2] = {{INFINITY, INFINITY, 0, 0.5},
                            {INFINITY, INFINITY, 0, 0}};
    l.n_levels = 2;
    l.levels[0] = (tac_sync_level){2, 1};
    l.levels[1] = (tac_sync_level){8, 4};
    c.workers = 8;
    sim_local(&c, &l);
    const tac_sim_result r = run(&c, n);
    cr_expect_eq(r.classes, 4);
    const double late = (r.total_s - 12000) / 1000;
    cr_expect(late > 1.69 + 0.4 && late < 1.69 + 0.7, "%g", late);
    n[0].jitter_s = 0;
    cr_expect_eq(run(&c, n).classes, 1);
}

Test(localsgd_sim, the_latest_of_many)
{
    cr_expect_eq(tac__sim_latest(1, 5, 0), 0);
    /* P(|N| < x)^M = u */
    for (int m = 2; m < 1000; m *= 3)
        for (double u = 0.01; u < 1; u += 0.07) {
            const double x = tac__sim_latest(2, m, u) / 2;
            NEAR(pow(erf(x / sqrt(2)), m), u);
        }
    cr_expect(isfinite(tac__sim_latest(1, 10000000, 1 - 0x1p-53)));
}

Test(localsgd_sim, ten_thousand_workers)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = sim_config(24, 1e6, 200);
    const tac_sim_network n[3] = {sim_net(1e6, 0), sim_net(1e5, 0),
                                  sim_net(1e4, 0)};
    l.n_levels = 3;
    l.levels[0] = (tac_sync_level){8, 1};
    l.levels[1] = (tac_sync_level){80, 10};
    l.levels[2] = (tac_sync_level){10000, 100};
    c.workers = 10000;
    c.straggler_factor = 1.25;
    c.straggler_share = 0.01;
    sim_local(&c, &l);
    const tac_sim_result r = run(&c, n);
    cr_expect(r.classes >= 3 && r.classes < 12, "%d classes", (int)r.classes);
    cr_expect(r.total_s > 200 * 3 * 1.25);
}

Test(localsgd_sim, networks_have_names)
{
    tac_sim_network n = {0};
    int count = 0;
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++) {
        cr_expect_eq(tac_sim_network_find(ctx, e->name, &n), TAC_OK);
        cr_expect(n.up_bits == e->net.up_bits && n.latency_s > 0);
        cr_expect(e->doc && strlen(e->doc) > 8);
        count++;
    }
    cr_expect_eq(count, 6);
}
