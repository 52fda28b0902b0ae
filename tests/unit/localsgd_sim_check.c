/* What the simulator refuses, and the search for the bandwidth. */
#include <criterion/criterion.h>
#include <string.h>

#include "localsgd_sim_setup.h"

static tac_context *ctx;

static void quiet(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void set_up(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    config.log = quiet;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
}

static void tear_down(void)
{
    tac_context_destroy(ctx);
}

TestSuite(localsgd_sim_check, .init = set_up, .fini = tear_down);

static tac_status try(const tac_sim_config *c, const tac_sim_network *n)
{
    tac_sim_result r, before;
    memset(&r, 0xa5, sizeof r);
    before = r;
    const tac_status s = tac_sim_run(ctx, c, n, NULL, 0, &r);
    if (s < 0) cr_expect_eq(memcmp(&r, &before, sizeof r), 0);
    return s;
}

static void expect_message(const char *what)
{
    char text[1024];
    tac_context_error(ctx, text, sizeof text);
    cr_expect(strstr(text, what), "'%s' is not in: %s", what, text);
}

#define REFUSED(field, value, what)                  \
    do {                                             \
        tac_sim_config bad = sim_config(4, 100, 10); \
        const tac_sim_network ok = sim_net(10, 0);   \
        bad.field = value;                           \
        cr_expect_eq(try(&bad, &ok), TAC_ERR_ARG);   \
        expect_message(what);                        \
    } while (0)

Test(localsgd_sim_check, fields)
{
    const double negative[] = {1, 1, -1, 1}, fraction[] = {1, 1, 1.5, 1};
    const double nothing[] = {0, 0, 0, 0};
    REFUSED(struct_size, 3, "TAC_SIM_CONFIG_INIT");
    REFUSED(steps, 0, "give 1 to");
    REFUSED(layers, 0, "give 1 to");
    REFUSED(params, 0, "above 0");
    REFUSED(params, NAN, "above 0");
    REFUSED(bits, -1, "at least 0");
    REFUSED(codec_s, INFINITY, "at least 0");
    REFUSED(step_s, 0, "compute time");
    REFUSED(layer_params, fraction, "layer 2 is 1.5");
    REFUSED(layer_params, nothing, "must have some");
    REFUSED(share, negative, "layer 2 is -1");
    REFUSED(workers, 0, "give 1 to");
    REFUSED(straggler_factor, 0, "1 is as long");
    REFUSED(straggler_share, 1.5, "to 1 (all)");
    REFUSED(topology, (tac_sim_topology)7, "tac_sim_topology");
    REFUSED(sending, (tac_sim_sending)7, "tac_sim_sending");
    REFUSED(method, (tac_sim_method)7, "tac_sim_method");
    REFUSED(method, TAC_SIM_LOCAL, "set `localsgd`");
}

Test(localsgd_sim_check, networks)
{
    const tac_sim_config c = sim_config(4, 100, 10);
    const tac_sim_network bad[] = {
        {0, 1, 0, 0}, {1, NAN, 0, 0}, {1, 1, -1, 0}, {1, 1, 0, INFINITY}};
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(try(&c, &bad[i]), TAC_ERR_ARG);
        expect_message("level 0");
        expect_message("give numbers");
    }
    tac_sim_network n = {5, 6, 7, 8};
    cr_expect_eq(tac_sim_network_find(ctx, "token-ring", &n), TAC_ERR_ARG);
    expect_message("eth-1g, wan-100m");
    cr_expect_eq(n.up_bits, 5);
}

Test(localsgd_sim_check, what_training_refuses)
{
    const tac_sim_network n = sim_net(10, 0);
    tac_localsgd_config l = sim_every(0);
    tac_sim_config c = sim_config(4, 100, 10);
    sim_local(&c, &l);
    cr_expect_eq(try(&c, &n), TAC_ERR_ARG);
    l.schedule.every = 4;
    l.schedule.kind = TAC_SYNC_ADACOMM;
    cr_expect_eq(try(&c, &n), TAC_ERR_UNSUPPORTED);
    expect_message("fixed intervals or qsr");
    l.schedule.kind = TAC_SYNC_FIXED;
    l.total = 9;
    cr_expect_eq(try(&c, &n), TAC_ERR_ARG);
    expect_message("lower `steps`");
    l.total = 10;
    cr_expect_eq(try(&c, &n), TAC_OK);
}

Test(localsgd_sim_check, a_trace_that_can_not_be_written)
{
    const tac_sim_config c = sim_config(4, 100, 10);
    const tac_sim_network n = sim_net(10, 0);
    tac_sim_result r;
    cr_expect_eq(tac_sim_run(ctx, &c, &n, "/nowhere/t.json", 0, &r),
                 TAC_ERR_IO);
    expect_message("/nowhere/t.json");
}

/* DP of one layer needs t_c / (t_c + b / W) >= u: W >= b u / (t_c (1 - u)). */
Test(localsgd_sim_check, search)
{
    const tac_sim_config c = sim_config(1, 300, 10);
    const tac_sim_network n = {0, 0, 0, 0}; /* bandwidth is not read */
    const double targets[] = {0.95, 0.5, 1, 0.9};
    const double grid[] = {99, 100, 101, 899, 901, 1899, 1901};
    double out[4] = {-1, -1, -1, -1};
    cr_assert_eq(tac_sim_required(ctx, &c, &n, targets, 4, grid, 7, out),
                 TAC_OK);
    cr_expect_eq(out[0], 1901);
    cr_expect(out[1] == 100 || out[1] == 101); /* on the edge */
    cr_expect(isinf(out[2]));
    cr_expect_eq(out[3], 901);
}

Test(localsgd_sim_check, search_with_levels)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = sim_config(1, 300, 10);
    const tac_sim_network n[2] = {sim_net(300, 0), {0, 0, 0, 0}};
    const double target = 0.5, grid[] = {10, 30, 40, 1000};
    double out = -1;
    l.n_levels = 2;
    l.levels[0] = (tac_sync_level){2, 1};
    l.levels[1] = (tac_sync_level){4, 2};
    c.workers = 4;
    sim_local(&c, &l);
    /* 30 s of compute, 5 inner ones of 1 s: 25 s for 5 outer ones, 60 bits/s.
     */
    cr_assert_eq(tac_sim_required(ctx, &c, n, &target, 1, grid, 4, &out),
                 TAC_OK);
    cr_expect_eq(out, 1000);
}

Test(localsgd_sim_check, search_is_checked)
{
    const tac_sim_config c = sim_config(1, 300, 10);
    const tac_sim_network n = {0, 0, 0, 0};
    const double zero = 0, half = 0.5, falls[] = {2, 1};
    double out = -1;
    cr_expect_eq(tac_sim_required(ctx, &c, &n, &zero, 1, &half, 1, &out),
                 TAC_ERR_ARG);
    expect_message("above 0, up to 1");
    cr_expect_eq(tac_sim_required(ctx, &c, &n, &half, 1, falls, 2, &out),
                 TAC_ERR_ARG);
    expect_message("ascend");
    cr_expect_eq(out, -1);
}
