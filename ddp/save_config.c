/* Settings that a run can't change on its way: with others it would go on, but
 * not be the run that it was. They are compared as text, by option. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/safetensors.h"

static const char *const kept[] = {
    "model",    "data",       "dropout",    "seed",
    "batch",    "accumulate", "optimizer",  "precision",
    "rounding", "loss-scale", "init-scale", "growth-interval",
    "compress",
};

enum { KEPT = sizeof kept / sizeof *kept, VALUE_BYTES = 1024 };

static const tac_option *find_row(const char *key)
{
    const tac_option *row = tac_train_config_options();

    while (row->key && strcmp(row->key, key) != 0) row++;
    return row;
}

/* As few digits as tell it from all others. */
static void number_text(double x, char out[VALUE_BYTES])
{
    int digits = 6;

    do snprintf(out, VALUE_BYTES, "%.*g", digits, x);
    while (digits++ < 17 && strtod(out, NULL) != x);
}

/* The value as it was resolved, which is not always the one that was given. */
static void value_text(const tac_train_config *c, const tac_option *row,
                       char out[VALUE_BYTES])
{
    const void *at = (const char *)c + row->offset;
    const char *text;

    switch (row->type) {
    case TAC_OPT_INT:
        snprintf(out, VALUE_BYTES, "%" PRId64, *(const int64_t *)at);
        return;
    case TAC_OPT_F64: number_text(*(const double *)at, out); return;
    case TAC_OPT_BOOL:
        snprintf(out, VALUE_BYTES, "%s", *(const int *)at ? "true" : "false");
        return;
    default:
        text = *(const char *const *)at;
        snprintf(out, VALUE_BYTES, "%s", text ? text : "");
        return;
    }
}

static void key_text(const char *option, char out[64])
{
    snprintf(out, 64, "config.%s", option);
}

static void count_text(const tac__run *run, char out[32])
{
    snprintf(out, 32, "%zu", tac_dataset_get_info(run->data.train).count);
}

tac_status tac__save_config(const tac__run *run, tac_safetensors_writer *w)
{
    char key[64], value[VALUE_BYTES], count[32];

    for (size_t i = 0; i < KEPT; i++) {
        key_text(kept[i], key);
        value_text(run->config, find_row(kept[i]), value);
        TAC_TRY(tac_safetensors_set_metadata(w, key, value));
    }
    count_text(run, count);
    return tac_safetensors_set_metadata(w, "data.samples", count);
}

/* Data in a folder may have moved: what counts then is how many there are. */
static int same(const char *option, const char *a, const char *b)
{
    if (!strcmp(option, "data") && !strncmp(a, "idx:", 4))
        return !strncmp(b, "idx:", 4);
    return !strcmp(a, b);
}

static tac_status compare(const tac__run *run, const tac_safetensors *f,
                          const char *option)
{
    char key[64], mine[VALUE_BYTES];
    const char *saved;

    key_text(option, key);
    saved = tac_safetensors_metadata(f, key);
    value_text(run->config, find_row(option), mine);
    if (!saved)
        return tac_fail(run->rank->ctx, TAC_ERR_DATA,
                        "%s does not say its --%s; it is damaged, or of "
                        "another version of tacit",
                        run->resumed_from, option);
    if (same(option, saved, mine)) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--%s is %s, but %s was saved with %s: give --%s %s, or "
                    "start anew without --resume",
                    option, mine, run->resumed_from, saved, option, saved);
}

tac_status tac__resume_config(const tac__run *run, const tac_safetensors *f)
{
    for (size_t i = 0; i < KEPT; i++) TAC_TRY(compare(run, f, kept[i]));
    return TAC_OK;
}

tac_status tac__resume_data(const tac__run *run, const tac_safetensors *f)
{
    const char *saved = tac_safetensors_metadata(f, "data.samples");
    char count[32];

    count_text(run, count);
    if (saved && !strcmp(saved, count)) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--data has %s training samples, but %s was saved with "
                    "%s; use the same data, or start anew without --resume",
                    count, run->resumed_from, saved ? saved : "others");
}
