/* localsgd_config.c: presets, what is refused and with which words, the line
 * that describes, and which attempts synchronise what. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "tacit/localsgd.h"

static void drop(void *arg, tac_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static tac_context *quiet(void)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    cc.log = drop;
    cr_assert_eq(tac_context_create(&cc, &ctx), TAC_OK);
    return ctx;
}

static tac_localsgd_config preset(const char *name, int64_t every)
{
    tac_context *ctx = quiet();
    tac_localsgd_config c;
    cr_assert_eq(tac_localsgd_preset(ctx, name, every, &c), TAC_OK);
    tac_context_destroy(ctx);
    return c;
}

/* Is it refused with these words? */
static void refused(tac_localsgd_config c, int world, int64_t layers,
                    const char *words)
{
    char text[512] = "";
    tac_context *ctx = quiet();
    cr_expect_eq(tac_localsgd_check(ctx, &c, world, layers), TAC_ERR_ARG,
                 "accepted, without '%s'", words);
    (void)tac_context_error(ctx, text, sizeof text);
    cr_expect(strstr(text, words), "'%s' is missing in '%s'", words, text);
    tac_context_destroy(ctx);
}

static void accepted(tac_localsgd_config c, int world, int64_t layers)
{
    char text[512] = "";
    tac_context *ctx = quiet();
    const tac_status s = tac_localsgd_check(ctx, &c, world, layers);
    (void)tac_context_error(ctx, text, sizeof text);
    cr_expect_eq(s, TAC_OK, "%s", text);
    tac_context_destroy(ctx);
}

static void described(const tac_localsgd_config *c, const char *want)
{
    char line[256];
    cr_expect_str_eq(tac_localsgd_describe(c, line, sizeof line), want);
}

Test(localsgd, presets)
{
    tac_context *ctx = quiet();
    char text[256];
    tac_localsgd_config c = preset("local", 16);
    described(&c, "every 16; average");
    c = preset("slowmo", 8);
    described(&c, "every 8; slowmo lr 1 momentum 0.5");
    c = preset("diloco", 30);
    described(&c, "every 30; nesterov lr 0.7 momentum 0.9");
    c = preset("oneshot", 0);
    described(&c, "at the end only; average");
    c = preset("streaming", 100);
    c.fragments = 8;
    c.codec = "fp4";
    c.total = 1000;
    described(
        &c, "every 100, 1000 attempts in all; nesterov lr 0.4 momentum 0.9; 8 "
            "strided fragments; delay 1; alpha 0.5; codec fp4");
    accepted(c, 8, 24);
    cr_expect_eq(tac_localsgd_preset(ctx, "dilocco", 4, &c), TAC_ERR_ARG);
    (void)tac_context_error(ctx, text, sizeof text);
    cr_expect(strstr(text, "local, slowmo, diloco, streaming, oneshot"));
    cr_expect_eq(tac_localsgd_preset(ctx, "local", 0, &c), TAC_ERR_ARG);
    tac_context_destroy(ctx);
}

Test(localsgd, describes_without_overflow)
{
    char line[24], one[1], none[1] = {'x'};
    tac_localsgd_config c = preset("streaming", 100);
    cr_expect_eq(strlen(tac_localsgd_describe(&c, line, sizeof line)), 23);
    cr_expect_str_eq(tac_localsgd_describe(&c, one, 1), "");
    cr_expect_str_eq(tac_localsgd_describe(&c, none, 0), "");
    cr_expect_eq(none[0], 'x');
}

Test(localsgd, refuses)
{
    const tac_localsgd_config good = preset("diloco", 10);
    tac_localsgd_config c = good;
#define BAD(change, words)        \
    do {                          \
        c = good;                 \
        change;                   \
        refused(c, 8, 12, words); \
    } while (0)
    BAD(c.struct_size = 8, "TAC_LOCALSGD_CONFIG_INIT");
    BAD(c.schedule.every = 0, "the least is 1");
    BAD(c.schedule.start = -1, "0 means none");
    BAD(c.total = -1, "unknown");
    BAD((c.schedule.min_every = 5, c.schedule.max_every = 4), "no limit");
    BAD(c.schedule.kind = TAC_SYNC_QSR, "qsr");
    BAD(c.schedule.kind = TAC_SYNC_BUDGET, "budget");
    BAD(c.schedule.kind = TAC_SYNC_CUSTOM, "next");
    BAD(c.schedule.kind = (tac_sync_kind)99, "tac_sync_kind");
    BAD(c.outer.kind = (tac_outer_kind)99, "tac_outer_kind");
    BAD(c.outer.lr = NAN, "outer learning rate");
    BAD(c.outer.momentum = 1, "below 1");
    BAD((c.outer.kind = TAC_OUTER_ADAM, c.outer.eps = -1), "adam");
    BAD(c.outer.kind = TAC_OUTER_CUSTOM, "`fn`");
    BAD(c.fragments = 13, "12 layers");
    BAD(c.delay = 11, "every 10");
    BAD(c.alpha = 1.5, "0 to 1");
    BAD(c.stale = TAC_STALE_EAGER, "one interval (10");
    BAD((c.stale = TAC_STALE_EAGER, c.delay = 10, c.drop_probability = 0.1),
        "can't drop");
    BAD(c.codec = "powersgd:4", "shapes");
    BAD(c.codec = "fp5", "fp4");
    BAD(c.late = TAC_LATE_DROP, "deadline");
    BAD(c.drop_probability = -0.1, "probability");
    BAD(c.weighting = (tac_weighting)9, "tac_weighting");
    BAD((c.n_levels = 1, c.levels[0] = (tac_sync_level){4, 4}),
        "must have all");
    BAD((c.n_levels = 2, c.levels[0] = (tac_sync_level){3, 2},
         c.levels[1] = (tac_sync_level){8, 4}),
        "whole groups");
    BAD((c.n_levels = 2, c.levels[0] = (tac_sync_level){2, 4},
         c.levels[1] = (tac_sync_level){8, 4}),
        "less often");
    BAD(c.n_levels = 5, "0 to 4");
    BAD((c.schedule.kind = TAC_SYNC_ADACOMM, c.n_levels = 1,
         c.levels[0] = (tac_sync_level){8, 4}),
        "fixed");
    c = good;
    c.delay = 10;
    c.stale = TAC_STALE_EAGER;
    accepted(c, 8, 12);
    accepted(good, 1, 0);
}

Test(localsgd, fragments)
{
    tac_localsgd_config c = preset("streaming", 10);
    int64_t n[4] = {0};
    cr_expect_eq(tac_localsgd_fragment_of(&c, 7, 12), 0);
    c.fragments = 4;
    cr_expect_eq(tac_localsgd_fragment_of(&c, 7, 12), 3);
    c.strided = 0;
    for (int64_t l = 0; l < 12; l++) n[tac_localsgd_fragment_of(&c, l, 12)]++;
    for (int p = 0; p < 4; p++) cr_expect_eq(n[p], 3);
    cr_expect_eq(tac_localsgd_fragment_of(&c, 11, 12), 3);
}

/* ---- the clock ------------------------------------------------------------
 */

/* Attempts at which something is due, as "3 6 7". */
static void dues(const tac_localsgd_config *c, int64_t attempts, char *out)
{
    tac__clock k;
    tac__clock_open(&k, c, 1000);
    *out = '\0';
    for (int64_t n = 1; n <= attempts; n++) {
        tac__clock_tick(&k, 0.1);
        const tac__due due = tac__clock_due(&k, n);
        if (due.any)
            sprintf(out + strlen(out), "%s%d", *out ? " " : "", (int)n);
        if (due.any && !due.end && tac__clock_ends(&k))
            tac__clock_next(&k, 0.1, 2.0 / (double)n, 0.5);
    }
}

static void due_at(const tac_localsgd_config *c, const char *want)
{
    char got[256];
    dues(c, 20, got);
    cr_expect_str_eq(got, want);
}

static int64_t growing(void *arg, const tac_sync_view *v)
{
    (void)arg;
    return v->last + 1;
}

Test(localsgd, schedules)
{
    tac_localsgd_config c = preset("local", 6);
    due_at(&c, "6 12 18");
    c.total = 20;
    due_at(&c, "6 12 18 20");
    c.schedule.start = 3;
    due_at(&c, "1 2 3 9 15 20");
    c = preset("oneshot", 0);
    c.total = 20;
    due_at(&c, "20");
    c = preset("streaming", 7);
    c.fragments = 3; /* offsets 0, 2, 4 */
    due_at(&c, "2 4 7 9 11 14 16 18");
    c.fragments = 20; /* more than attempts: several at once */
    due_at(&c, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
    c = preset("local", 2);
    c.schedule.kind = TAC_SYNC_QSR;
    c.schedule.alpha = 0.25; /* floor(2.5^2) = 6 */
    due_at(&c, "6 12 18");
    c.schedule.max_every = 5;
    due_at(&c, "5 10 15 20");
    c.schedule.alpha = 0.1; /* every */
    due_at(&c, "2 4 6 8 10 12 14 16 18 20");
    c.schedule.kind = TAC_SYNC_CUSTOM;
    c.schedule.next = growing;
    due_at(&c, "1 3 6 10 15 20");
    c = preset("local", 4);
    c.schedule.kind = TAC_SYNC_ADACOMM; /* 4, then ceil(4 sqrt(4 / n)) */
    due_at(&c, "4 8 11 14 17 19");
    c.schedule.kind = TAC_SYNC_BUDGET; /* 1000 / (250 * 0.5) = 8 */
    c.schedule.bytes_per_second = 250;
    due_at(&c, "4 12 20");
    c = preset("local", 1);
    c.n_levels = 2;
    c.levels[0] = (tac_sync_level){2, 4};
    c.levels[1] = (tac_sync_level){8, 6};
    due_at(&c, "4 6 8 12 16 18 20");
}

/* Only the outermost of several levels that are due runs. */
Test(localsgd, levels)
{
    tac__clock k;
    tac_localsgd_config c = preset("local", 1);
    c.n_levels = 3;
    c.levels[0] = (tac_sync_level){2, 2};
    c.levels[1] = (tac_sync_level){4, 4};
    c.levels[2] = (tac_sync_level){8, 8};
    tac__clock_open(&k, &c, 0);
    for (int n = 1; n <= 16; n++) {
        tac__clock_tick(&k, 1);
        const tac__due due = tac__clock_due(&k, n);
        const int outer = tac__clock_is_due(&k, &due, n, 0);
        cr_expect_eq(outer, n % 8 == 0);
        cr_expect_eq(due.any, n % 2 == 0);
        if (due.any && !outer) cr_expect_eq(due.inner, n % 4 == 0);
        if (tac__clock_ends(&k)) tac__clock_next(&k, 1, NAN, NAN);
    }
}

static double constant(void *arg, int64_t n)
{
    (void)n;
    return *(const double *)arg;
}

Test(localsgd, predicts)
{
    tac_context *ctx = quiet();
    const size_t layers[] = {100, 0, 300};
    const tac_localsgd_model m = {3, layers, 7, 2};
    tac_localsgd_prediction p;
    double lr = 0.1;
    tac_localsgd_config c = preset("local", 4);
    cr_assert_eq(tac_localsgd_predict(ctx, &c, &m, 4, 10, NULL, NULL, &p), 0);
    cr_expect_eq(p.syncs, 3);
    cr_expect_eq(p.bytes_wire, 3 * (1600 + 28 + 16));
    c.codec = "fp4";
    cr_assert_eq(tac_localsgd_predict(ctx, &c, &m, 4, 8, NULL, NULL, &p), 0);
    cr_expect_eq(p.bytes_wire, 2 * (200 + 8 + 28 + 16));
    cr_expect_eq(p.bytes_logical, 2 * (1600 + 28 + 16));
    cr_assert_eq(tac_localsgd_predict(ctx, &c, &m, 1, 8, NULL, NULL, &p), 0);
    cr_expect_eq(p.bytes_wire, p.bytes_logical); /* nothing is compressed */
    c.schedule.kind = TAC_SYNC_QSR;
    c.schedule.alpha = 0.3;
    cr_assert_eq(tac_localsgd_predict(ctx, &c, &m, 4, 18, constant, &lr, &p),
                 0);
    cr_expect_eq(p.syncs, 3); /* floor(3^2) = 8 or 9: 0.3 / 0.1 < 3 */
    c.schedule.kind = TAC_SYNC_BUDGET;
    c.schedule.bytes_per_second = 1;
    cr_expect_eq(tac_localsgd_predict(ctx, &c, &m, 4, 9, NULL, NULL, &p),
                 TAC_ERR_UNSUPPORTED);
    c = preset("local", 4);
    c.total = 5;
    cr_expect_eq(tac_localsgd_predict(ctx, &c, &m, 4, 6, NULL, NULL, &p),
                 TAC_ERR_ARG);
    tac_context_destroy(ctx);
}
