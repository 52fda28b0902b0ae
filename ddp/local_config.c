/* From the options of local modes to the one description of how replicas
 * talk. */
#include "local_options.h"

#include <math.h>
#include <string.h>

int tac_train_config_is_local(const tac_train_config *c)
{
    return strcmp(c->sync, "grad") != 0 && strcmp(c->sync, "none") != 0;
}

static tac_outer_kind outer_kind(const char *name)
{
    static const char *const names[] = {"average",  "sgd",    "heavy-ball",
                                        "nesterov", "slowmo", "adam"};
    size_t i = 0;

    while (i + 1 < sizeof names / sizeof *names && strcmp(name, names[i])) i++;
    return (tac_outer_kind)i;
}

static int64_t last_every(const tac_localsgd_config *c)
{
    return c->n_levels > 0 ? c->levels[c->n_levels - 1].every
                           : c->schedule.every;
}

/* One fragment a layer, at most four and at most one an attempt. */
static int64_t own_fragments(const tac_localsgd_config *c, int64_t layers)
{
    const int64_t every = last_every(c);
    const int64_t n = layers < 4 ? layers : 4;

    return n < every ? n : every;
}

/* A run of unknown length has a start all the same, so that it is checked. */
static int64_t start_of(const tac_train_config *c, int64_t total)
{
    if (!isnan(c->sync_start)) return (int64_t)c->sync_start;
    return strcmp(c->sync, "post-local") ? 0 : total / 2;
}

static tac_status fill_schedule(tac_context *ctx, const tac_train_config *c,
                                int64_t total, tac_localsgd_config *out)
{
    TAC_TRY(tac__local_schedule(ctx, c->sync_schedule, &out->schedule));
    if (c->sync_levels) TAC_TRY(tac__local_levels(ctx, c->sync_levels, out));
    out->schedule.start = start_of(c, total);
    out->schedule.min_every = c->sync_min;
    out->schedule.max_every = c->sync_max;
    out->total = total;
    return TAC_OK;
}

static tac_status fill(tac_context *ctx, const tac_train_config *c,
                       int64_t layers, int64_t total, tac_localsgd_config *out)
{
    const char *name = strcmp(c->sync, "post-local") ? c->sync : "local";
    const int streaming = !strcmp(c->sync, "streaming");

    TAC_TRY(tac_localsgd_preset(ctx, name,
                                c->sync_every > 0 ? c->sync_every : 1, out));
    TAC_TRY(fill_schedule(ctx, c, total, out));
    out->outer.kind = outer_kind(c->outer);
    out->outer.lr = c->outer_lr;
    out->outer.momentum = c->outer_momentum;
    out->codec = c->compress;
    out->fragments = c->fragments > 0 ? c->fragments
                     : streaming      ? own_fragments(out, layers)
                                      : 0;
    out->delay = (int64_t)c->sync_delay;
    out->alpha = c->sync_alpha;
    out->stale =
        strcmp(c->stale, "eager") ? TAC_STALE_DELAYED : TAC_STALE_EAGER;
    out->weighting = !strcmp(c->weighting, "samples") ? TAC_WEIGHT_SAMPLES
                     : !strcmp(c->weighting, "steps") ? TAC_WEIGHT_STEPS
                                                      : TAC_WEIGHT_UNIFORM;
    out->drop_probability = c->drop_deltas;
    out->seed = c->seed;
    return tac__local_late(ctx, c->late, out);
}

tac_status tac_train_config_localsgd(tac_context *ctx,
                                     const tac_train_config *c, int workers,
                                     int64_t layers, int64_t total,
                                     tac_localsgd_config *out)
{
    tac_localsgd_config lc;
    tac_status s = fill(ctx, c, layers, total, &lc);

    if (s >= 0) s = tac_localsgd_check(ctx, &lc, workers, layers);
    if (s == TAC_ERR_ARG) s = TAC_ERR_CONFIG;
    if (s >= 0) *out = lc;
    return s;
}

/* Bytes of the name before its last dot. */
static size_t stem(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? (size_t)(dot - name) : strlen(name);
}

int64_t tac__local_layers(const tac_params *p, int64_t *layer)
{
    const char *last = "";
    int64_t n = 0;

    for (size_t i = 0; i < tac_params_count(p); i++) {
        const char *name = tac_params_get(p, i)->name;
        const size_t bytes = stem(name);

        if (n == 0 || bytes != stem(last) || strncmp(name, last, bytes) != 0)
            n++;
        if (layer) layer[i] = n - 1;
        last = name;
    }
    return n;
}
