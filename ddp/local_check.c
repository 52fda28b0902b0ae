/* Which option means something to which mode, and what a mode leaves open. */
#include "local_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/codec.h"

/* ---- which mode has what --------------------------------------------------
 */

enum {
    LOCAL = 1,
    POST_LOCAL = 2,
    SLOWMO = 4,
    DILOCO = 8,
    STREAMING = 16,
    ONESHOT = 32,
    AGAIN = LOCAL | POST_LOCAL | SLOWMO | DILOCO | STREAMING,
    ALL = AGAIN | ONESHOT
};

static const struct {
    const char *name;
    int mode;
} modes[] = {
    {"local", LOCAL},   {"post-local", POST_LOCAL}, {"slowmo", SLOWMO},
    {"diloco", DILOCO}, {"streaming", STREAMING},   {"oneshot", ONESHOT},
    {NULL, 0}};

/* What `oneshot` has not is about averages before the last one. */
static const struct {
    const char *option;
    int modes;
} uses[] = {
    {"sync-every", AGAIN},
    {"sync-start", AGAIN},
    {"sync-schedule", AGAIN},
    {"sync-min", AGAIN},
    {"sync-max", AGAIN},
    {"sync-levels", AGAIN},
    {"worker-size", ALL},
    {"outer", ALL},
    {"outer-lr", ALL},
    {"outer-momentum", ALL},
    {"fragments", AGAIN},
    {"sync-delay", AGAIN},
    {"sync-alpha", AGAIN},
    {"stale", AGAIN},
    {"weighting", ALL},
    {"moments", ALL},
    {"late", ALL},
    {"drop-deltas", AGAIN},
    {NULL, 0},
};

static int mode_of(const tac_train_config *c)
{
    for (size_t i = 0; modes[i].name; i++)
        if (!strcmp(c->sync, modes[i].name)) return modes[i].mode;
    return 0;
}

static const tac_option *find_row(const char *key)
{
    const tac_option *row = tac_train_config_options();

    while (row->key && strcmp(row->key, key) != 0) row++;
    return row;
}

/* Has the option its default? Only the types that these options have. */
static int is_default(const tac_train_config *c, const char *key)
{
    const tac_option *row = find_row(key);
    const void *at = (const char *)c + row->offset;
    const char *text;

    if (row->type == TAC_OPT_INT)
        return *(const int64_t *)at == strtoll(row->def, NULL, 10);
    if (row->type == TAC_OPT_F64) {
        const double value = *(const double *)at;
        return row->def[0] == 'a' ? isnan(value)
                                  : value == strtod(row->def, NULL);
    }
    text = *(const char *const *)at;
    return text && row->def ? !strcmp(text, row->def) : text == row->def;
}

static tac_status check_uses(tac_context *ctx, const tac_train_config *c)
{
    const int mode = mode_of(c);

    for (size_t i = 0; uses[i].option; i++) {
        if (uses[i].modes & mode || is_default(c, uses[i].option)) continue;
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--%s means nothing to --sync %s: leave it out, or use "
                        "local, post-local, slowmo, diloco%s streaming%s",
                        uses[i].option, c->sync,
                        uses[i].modes & ONESHOT ? "," : " or",
                        uses[i].modes & ONESHOT ? " or oneshot" : "");
    }
    return TAC_OK;
}

/* ---- what is left open ----------------------------------------------------
 */

static const char *own_outer(int mode)
{
    if (mode == SLOWMO) return "slowmo";
    return mode & (DILOCO | STREAMING) ? "nesterov" : "average";
}

static double own_outer_lr(int mode)
{
    return mode == DILOCO ? 0.7 : mode == STREAMING ? 0.4 : 1;
}

static tac_status resolve_outer(tac_context *ctx, tac_train_config *c)
{
    const int mode = mode_of(c);

    if (!strcmp(c->outer, "auto")) c->outer = own_outer(mode);
    const int plain = !strcmp(c->outer, "average");
    const int rate_alone = plain || !strcmp(c->outer, "sgd");
    const char *idle = plain && !isnan(c->outer_lr)              ? "lr"
                       : rate_alone && !isnan(c->outer_momentum) ? "momentum"
                                                                 : NULL;

    if (idle)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--outer-%s means nothing to the outer optimizer %s: "
                        "leave it out, or choose another with --outer",
                        idle, c->outer);
    if (isnan(c->outer_lr)) c->outer_lr = plain ? 1 : own_outer_lr(mode);
    if (isnan(c->outer_momentum))
        c->outer_momentum = rate_alone                    ? 0
                            : !strcmp(c->outer, "slowmo") ? 0.5
                                                          : 0.9;
    return TAC_OK;
}

static tac_status resolve_interval(tac_context *ctx, tac_train_config *c)
{
    tac_sync_schedule s = {.kind = TAC_SYNC_FIXED};

    TAC_TRY(tac__local_schedule(ctx, c->sync_schedule, &s));
    if (s.kind == TAC_SYNC_FIXED && (c->sync_min || c->sync_max))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--sync-%s limits an interval that changes: add "
                        "--sync-schedule qsr:ALPHA, adacomm or budget:BYTES, "
                        "or leave it out",
                        c->sync_min ? "min" : "max");
    if (c->sync_levels && c->sync_every)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--sync-levels %.60s says when all workers average: "
                        "leave out --sync-every",
                        c->sync_levels);
    if (c->sync_every == 0 && !c->sync_levels && mode_of(c) != ONESHOT)
        c->sync_every = 16;
    return TAC_OK;
}

static void resolve_streaming(tac_train_config *c)
{
    const int streaming = mode_of(c) == STREAMING;

    if (isnan(c->sync_delay)) c->sync_delay = streaming ? 1 : 0;
    if (isnan(c->sync_alpha)) c->sync_alpha = streaming ? 0.5 : 0;
}

/* ---- what can't be --------------------------------------------------------
 */

static tac_status check_whole(tac_context *ctx, const char *option, double x)
{
    if (isnan(x) || x == floor(x)) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG, "--%s %g is no whole number of steps",
                    option, x);
}

/* Adafactor's are factored, adamw8bit's are no floats. */
static tac_status check_moments(tac_context *ctx, const tac_train_config *c)
{
    const int sgd = !strcmp(c->optimizer, "sgd");

    if (!strcmp(c->moments, "keep")) return TAC_OK;
    if (sgd && c->momentum > 0) return TAC_OK;
    if (!strcmp(c->optimizer, "adamw")) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--moments %s needs moments that are f32 arrays, which "
                    "--optimizer %s%s has not: use keep, or adamw, or sgd with "
                    "momentum",
                    c->moments, c->optimizer, sgd ? " --momentum 0" : "");
}

static tac_status check_workers(tac_context *ctx, const tac_train_config *c,
                                int world)
{
    if (world % c->worker_size == 0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--worker-size %lld does not divide the %d ranks: use a "
                    "size that does, or another number of ranks",
                    (long long)c->worker_size, world);
}

static tac_status check_record(tac_context *ctx, const tac_train_config *c)
{
    if (!c->record || c->worker_size > 1) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--record needs gradients that are averaged, which --sync "
                    "%s does only within workers: leave it out, or use --sync "
                    "grad or a --worker-size above 1",
                    c->sync);
}

/* What localsgd/ itself refuses, as early as possible: with layers and the
 * length of the run unknown. */
static tac_status try_config(tac_context *ctx, const tac_train_config *c,
                             int world)
{
    tac_localsgd_config unused;

    return tac_train_config_localsgd(ctx, c, world / (int)c->worker_size, 0, 0,
                                     &unused);
}

tac_status tac__local_resolve(tac_context *ctx, tac_train_config *c, int world)
{
    TAC_TRY(check_uses(ctx, c));
    if (!tac_train_config_is_local(c)) return TAC_OK;
    TAC_TRY(resolve_outer(ctx, c));
    TAC_TRY(resolve_interval(ctx, c));
    resolve_streaming(c);
    TAC_TRY(check_whole(ctx, "sync-start", c->sync_start));
    TAC_TRY(check_whole(ctx, "sync-delay", c->sync_delay));
    TAC_TRY(check_moments(ctx, c));
    TAC_TRY(check_workers(ctx, c, world));
    TAC_TRY(check_record(ctx, c));
    return try_config(ctx, c, world);
}
