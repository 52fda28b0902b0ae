/* The simulator against graphs that were worked out by hand. A step is 1 s
 * forward and 2 s backward over two layers: forward 0.5 s a layer, backward
 * 1 s. Times in comments are [begin, end] on the channel. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "localsgd_sim_setup.h"
#include "tac_json_check.h"

static tac_context *ctx;

static void set_up(void)
{
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
}

static void tear_down(void)
{
    tac_context_destroy(ctx);
}

TestSuite(localsgd_sim_graph, .init = set_up, .fini = tear_down);

static double total(const tac_sim_config *c, double bits)
{
    const tac_sim_network n = sim_net(bits, 0);
    tac_sim_result r = {0};
    cr_assert_eq(tac_sim_run(ctx, c, &n, NULL, 0, &r), TAC_OK);
    return r.total_s;
}

#define EXPECT(c, bits, seconds)                                    \
    cr_expect(sim_near(total(&(c), bits), seconds), "%g s, not %g", \
              total(&(c), bits), (double)(seconds))

/* Reductions of 2 s. Step 0: layer 1 [2, 4], layer 0 [4, 6]. Step 1: forward
 * from 6 to 7, layer 1 [8, 10], layer 0 [10, 12]. */
Test(localsgd_sim_graph, queue)
{
    tac_sim_config c = sim_config(2, 4, 1);
    EXPECT(c, 1, 6);
    c.steps = 2;
    EXPECT(c, 1, 12);
}

/* Reductions of 0.25 s. Step 0: layer 1 [2, 2.25], layer 0 [3, 3.25]: only
 * layer 0's is exposed. */
Test(localsgd_sim_graph, hidden_behind_backward)
{
    tac_sim_config c = sim_config(2, 0.5, 10);
    EXPECT(c, 1, 10 * 3.25);
}

/* Reductions of 2 s, wanted one step later. Step 0: [2, 4], [4, 6]. Step 1
 * from 3 without waiting: layer 1 at 5 [6, 8], layer 0 at 6 [8, 10]. Step 2
 * from 6: layer 1 at 8 [10, 12], layer 0 at 9 [12, 14]. Step 3 waits for layer
 * 0 of step 1: from 10, layer 1 at 12 [14, 16], layer 0 at 13 [16, 18]. */
Test(localsgd_sim_graph, delay)
{
    tac_localsgd_config l = sim_every(1);
    tac_sim_config c = sim_config(2, 4, 3);
    l.delay = 1;
    sim_local(&c, &l);
    EXPECT(c, 1, 14);
    c.steps = 4;
    EXPECT(c, 1, 18);
}

/* Every second step, 4 s a layer, delay 1. Step 1: layer 1 at 5 [5, 9], layer 0
 * at 6 [9, 13]. Step 2 from 6 to 9. Step 3: layer 0 waits till 13, forward to
 * 14, layer 1 at 15 [15, 19], layer 0 at 16 [19, 23]. Step 4 from 16 to 19. */
Test(localsgd_sim_graph, delay_and_interval)
{
    tac_localsgd_config l = sim_every(2);
    tac_sim_config c = sim_config(2, 8, 4);
    l.delay = 1;
    sim_local(&c, &l);
    EXPECT(c, 1, 23);
    c.steps = 5;
    EXPECT(c, 1, 23);
    c.steps = 6; /* step 5 from 23: layer 1 at 25 [25, 29], layer 0 [29, 33] */
    EXPECT(c, 1, 33);
}

/* H = 2, two fragments: fragment 1 (layer 1) at odd attempts, 0 at even ones, 4
 * s each. Step 0: layer 1 at 2 [2, 6]. Step 1: layer 0 forward [3, 3.5], layer
 * 1 waits till 6, to 6.5; layer 1 backward at 7.5, layer 0 at 8.5 [8.5, 12.5].
 * Step 2: from 12.5: forward to 13.5, layer 1 at 14.5 [14.5, 18.5], backward to
 * 15.5. */
Test(localsgd_sim_graph, fragments)
{
    tac_localsgd_config l = sim_every(2);
    tac_sim_config c = sim_config(2, 8, 1);
    l.fragments = 2;
    sim_local(&c, &l);
    EXPECT(c, 1, 6);
    c.steps = 2;
    EXPECT(c, 1, 12.5);
    c.steps = 3;
    EXPECT(c, 1, 18.5);
}

/* The same after the step. Step 0 [3, 7]. Step 1 from 7: [10, 14]. */
Test(localsgd_sim_graph, fragments_after_the_step)
{
    tac_localsgd_config l = sim_every(2);
    tac_sim_config c = sim_config(2, 8, 2);
    l.fragments = 2;
    c.sending = TAC_SIM_AFTER_STEP;
    sim_local(&c, &l);
    EXPECT(c, 1, 14);
    l.delay = 1; /* [3, 7], [7, 11]; step 2 from 7: [11, 15] */
    EXPECT(c, 1, 11);
    c.steps = 3;
    EXPECT(c, 1, 15);
}

/* With a delay of a whole interval a result is wanted when the next one is
 * sent. One layer, H = 2, 10 s: step 1 [6, 16]; step 3 ends at 12 and queues
 * [16, 26]; step 4 waits till 16; step 5 ends at 22 and queues [26, 36]. */
Test(localsgd_sim_graph, delay_of_an_interval)
{
    tac_localsgd_config l = sim_every(2);
    tac_sim_config c = sim_config(1, 10, 4);
    l.delay = 2;
    sim_local(&c, &l);
    EXPECT(c, 1, 26);
    c.steps = 5;
    EXPECT(c, 1, 26);
    c.steps = 6;
    EXPECT(c, 1, 36);
    c.steps = 7; /* waits for [16, 26] */
    EXPECT(c, 1, 36);
    c.steps = 8; /* to 32; [36, 46] */
    EXPECT(c, 1, 46);
}

/* The first message takes 32 s, the others 0.64 s: [3, 35]; step 1 from 3 to 6
 * [35, 35.64]; step 2 waits till 35, to 38 [38, 38.64]. */
Test(localsgd_sim_graph, a_late_result_is_not_lost)
{
    tac_localsgd_config l = sim_every(1);
    tac_sim_config c = sim_config(1, 1000, 3);
    l.delay = 1;
    l.codec = "topk:0.01,start=1";
    c.bits = 0;
    sim_local(&c, &l);
    EXPECT(c, 1000, 38.64);
}

/* Compute 3 : 1 and parameters 1 : 3. Layer 0: forward 0.75, backward 1.5;
 * layer 1: 0.25, 0.5. Layer 1 at 1.5 [1.5, 4.5], layer 0 at 3 [4.5, 5.5]. */
Test(localsgd_sim_graph, unequal_layers)
{
    const double share[] = {3, 1}, params[] = {1, 3};
    tac_sim_config c = sim_config(2, 4, 1);
    c.share = share;
    c.layer_params = params;
    EXPECT(c, 1, 5.5);
    c.steps = 2; /* forward from 5.5; layer 1 at 7 [7, 10], layer 0 [10, 11] */
    EXPECT(c, 1, 11);
}

/* ---- the picture ------------------------------------------------------------
 */

static char *trace_of(const tac_sim_config *c, double bits, int64_t steps)
{
    char path[] = "/tmp/tacit-sim-XXXXXX";
    const tac_sim_network n = sim_net(bits, 0);
    tac_sim_result r;
    const int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(tac_sim_run(ctx, c, &n, path, steps, &r), TAC_OK);
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    cr_assert(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    unlink(path);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

Test(localsgd_sim_graph, trace)
{
    tac_localsgd_config l = sim_every(2);
    tac_sim_config c = sim_config(2, 8, 10);
    l.delay = 1;
    c.workers = 3;
    c.straggler_factor = 2;
    sim_local(&c, &l);
    char *text = trace_of(&c, 1, 0); /* H + delay + 2 = 5 steps */
    cr_expect(tac_json_is_valid(text));
    cr_expect_eq(count(text, "\"forward\""), 2 * 5 * 2);
    cr_expect_eq(count(text, "\"backward\""), 2 * 5 * 2);
    cr_expect_eq(count(text, "\"reduce\""), 2 * 2 * 2);
    cr_expect_eq(count(text, "\"a slow worker\""), 1);
    cr_expect(count(text, "\"wait\"") >= 1);
    free(text);
    text = trace_of(&c, 1, 1);
    cr_expect_eq(count(text, "\"forward\""), 2 * 1 * 2);
    cr_expect_eq(count(text, "\"reduce\""), 0);
    free(text);
}

Test(localsgd_sim_graph, trace_changes_nothing)
{
    tac_localsgd_config l = sim_every(3);
    tac_sim_config c = sim_config(5, 100, 20);
    const tac_sim_network n = sim_net(10, 0.1);
    tac_sim_result a, b;
    sim_local(&c, &l);
    cr_assert_eq(tac_sim_run(ctx, &c, &n, NULL, 0, &a), TAC_OK);
    cr_assert_eq(tac_sim_run(ctx, &c, &n, "/dev/null", 20, &b), TAC_OK);
    cr_expect(sim_near(a.total_s, b.total_s));
}
