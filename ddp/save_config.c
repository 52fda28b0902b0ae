/* Settings that a run can't change on its way: with others it would go on, but
 * not be the run that it was. They are compared as text, by option. */
#include "save.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "local.h"
#include "tacit/safetensors.h"

enum { ALWAYS, IN_LOCAL_MODES };

static const struct kept {
    const char *option;
    int when;
} kept[] = {
    {"sync", ALWAYS},
    {"model", ALWAYS},
    {"data", ALWAYS},
    {"shards", ALWAYS},
    {"dropout", ALWAYS},
    {"seed", ALWAYS},
    {"optimizer", ALWAYS},
    {"precision", ALWAYS},
    {"rounding", ALWAYS},
    {"loss-scale", ALWAYS},
    {"init-scale", ALWAYS},
    {"growth-interval", ALWAYS},
    {"compress", ALWAYS},
    {"worker-size", IN_LOCAL_MODES},
    {"sync-every", IN_LOCAL_MODES},
    {"sync-schedule", IN_LOCAL_MODES},
    {"sync-min", IN_LOCAL_MODES},
    {"sync-max", IN_LOCAL_MODES},
    {"sync-levels", IN_LOCAL_MODES},
    {"outer", IN_LOCAL_MODES},
    {"outer-lr", IN_LOCAL_MODES},
    {"outer-momentum", IN_LOCAL_MODES},
    {"sync-delay", IN_LOCAL_MODES},
    {"sync-alpha", IN_LOCAL_MODES},
    {"stale", IN_LOCAL_MODES},
    {"weighting", IN_LOCAL_MODES},
    {"moments", IN_LOCAL_MODES},
    {"late", IN_LOCAL_MODES},
    {"drop-deltas", IN_LOCAL_MODES},
};

enum { KEPT = sizeof kept / sizeof *kept, VALUE_BYTES = TAC__VALUE_BYTES };

static const tac_option *find_row(const char *key)
{
    const tac_option *row = tac_train_config_options();

    while (row->key && strcmp(row->key, key) != 0) row++;
    return row;
}

static int is_kept(const tac_train_config *c, const struct kept *k)
{
    return k->when == ALWAYS || tac_train_config_is_local(c);
}

static void key_text(const char *option, char out[64])
{
    snprintf(out, 64, "config.%s", option);
}

static void count_text(const tac__run *run, char out[32])
{
    snprintf(out, 32, "%zu", tac_dataset_get_info(run->data.train).count);
}

/* What --sync-start and --fragments leave open depends on the length of the run
 * and on the model: the numbers that came of it are kept. NULL: there is no
 * such option. */
static const char *derived(const tac__run *run, int i, int64_t *value)
{
    static const char *const options[] = {"sync-start", "fragments", NULL};
    const tac__local *l = run->replica ? run->replica->local : NULL;

    if (!l) return NULL;
    *value = i == 0                    ? l->config.schedule.start
             : l->config.fragments > 1 ? l->config.fragments
                                       : 1;
    return options[i];
}

static tac_status save_derived(const tac__run *run, tac_safetensors_writer *w)
{
    const char *option;
    char key[64], text[32];
    int64_t value;

    for (int i = 0; (option = derived(run, i, &value)); i++) {
        key_text(option, key);
        snprintf(text, sizeof text, "%" PRId64, value);
        TAC_TRY(tac_safetensors_set_metadata(w, key, text));
    }
    return TAC_OK;
}

static const char regrouped_key[] = "run.regrouped";

int tac__saved_was_regrouped(const tac_safetensors *f)
{
    return tac_safetensors_metadata(f, regrouped_key) != NULL;
}

/* Batches may be dealt otherwise, as long as a step has the same samples. */
static tac_status save_batch(const tac__run *run, tac_safetensors_writer *w)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, run->config->global_batch);
    TAC_TRY(tac_safetensors_set_metadata(w, "config.global-batch", text));
    return run->regrouped
               ? tac_safetensors_set_metadata(w, regrouped_key, "yes")
               : TAC_OK;
}

tac_status tac__save_config(const tac__run *run, tac_safetensors_writer *w)
{
    char key[64], value[VALUE_BYTES], count[32];

    for (size_t i = 0; i < KEPT; i++) {
        if (!is_kept(run->config, &kept[i])) continue;
        key_text(kept[i].option, key);
        tac__config_value(run->config, find_row(kept[i].option), value);
        TAC_TRY(tac_safetensors_set_metadata(w, key, value));
    }
    TAC_TRY(save_derived(run, w));
    TAC_TRY(save_batch(run, w));
    count_text(run, count);
    return tac_safetensors_set_metadata(w, "data.samples", count);
}

/* ---- comparing ------------------------------------------------------------
 */

/* Data in a folder may have moved: what counts then is how many there are. */
static int same(const char *option, const char *a, const char *b)
{
    if (!strcmp(option, "data") && !strncmp(a, "idx:", 4))
        return !strncmp(b, "idx:", 4);
    return !strcmp(a, b);
}

static tac_status differ(const tac__run *run, const char *option,
                         const char *mine, const char *saved)
{
    if (!*saved)
        return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                        "--%s is %s, but %s was saved without it: leave it "
                        "out, or start anew without --resume",
                        option, mine, run->resumed_from);
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--%s is %s, but %s was saved with %s: give --%s %s, or "
                    "start anew without --resume",
                    option, *mine ? mine : "not given", run->resumed_from,
                    saved, option, saved);
}

static tac_status compare(const tac__run *run, const tac_safetensors *f,
                          const char *option, const char *mine)
{
    char key[64];
    const char *saved;

    key_text(option, key);
    saved = tac_safetensors_metadata(f, key);
    if (!saved)
        return tac_fail(run->rank->ctx, TAC_ERR_DATA,
                        "%s does not say its --%s; it is damaged, or of "
                        "another version of tacit",
                        run->resumed_from, option);
    return same(option, saved, mine) ? TAC_OK
                                     : differ(run, option, mine, saved);
}

static long long number_of(const tac_safetensors *f, const char *key)
{
    const char *text = tac_safetensors_metadata(f, key);
    const long long n = text ? strtoll(text, NULL, 10) : 0;

    return n > 0 && n < INT32_MAX ? n : 0;
}

/* Files of before this was kept have its factors. */
static long long saved_batch(const tac__run *run, const tac_safetensors *f)
{
    long long whole = number_of(f, "config.global-batch");

    if (whole > 0) return whole;
    if (__builtin_mul_overflow(number_of(f, "config.batch"),
                               number_of(f, "config.accumulate"), &whole) ||
        __builtin_mul_overflow(whole, run->resumed_world, &whole))
        return 0;
    return whole;
}

/* In a step the same samples; how ranks and micro-steps share them is free. */
tac_status tac__resume_batch(const tac__run *run, const tac_safetensors *f)
{
    const tac_train_config *c = run->config;
    const long long saved = saved_batch(run, f), mine = c->global_batch;
    const long long shares = (long long)run->rank->world * c->accumulate;
    char hint[128];

    if (saved == mine) return TAC_OK;
    if (saved > 0 && saved % shares == 0)
        snprintf(hint, sizeof hint, "give --batch %lld", saved / shares);
    else
        snprintf(hint, sizeof hint,
                 "use a number of ranks and an --accumulate whose product "
                 "divides it, and --global-batch %lld",
                 saved);
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "a step has %lld samples (%d ranks x --batch %lld x "
                    "--accumulate %lld), but %s was saved with %lld: %s, or "
                    "start anew without --resume",
                    mine, run->rank->world, (long long)c->batch,
                    (long long)c->accumulate, run->resumed_from, saved, hint);
}

tac_status tac__resume_config(const tac__run *run, const tac_safetensors *f)
{
    char mine[VALUE_BYTES];

    for (size_t i = 0; i < KEPT; i++) {
        if (!is_kept(run->config, &kept[i])) continue;
        tac__config_value(run->config, find_row(kept[i].option), mine);
        TAC_TRY(compare(run, f, kept[i].option, mine));
    }
    return TAC_OK;
}

static tac_status compare_derived(const tac__run *run, const tac_safetensors *f)
{
    const char *option;
    char mine[32];
    int64_t value;

    for (int i = 0; (option = derived(run, i, &value)); i++) {
        snprintf(mine, sizeof mine, "%" PRId64, value);
        TAC_TRY(compare(run, f, option, mine));
    }
    return TAC_OK;
}

tac_status tac__resume_data(const tac__run *run, const tac_safetensors *f)
{
    const char *saved = tac_safetensors_metadata(f, "data.samples");
    char count[32];

    count_text(run, count);
    if (saved && !strcmp(saved, count)) return compare_derived(run, f);
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--data has %s training samples, but %s was saved with "
                    "%s; use the same data, or start anew without --resume",
                    count, run->resumed_from, saved ? saved : "others");
}
