/* What an earlier run wrote as JSON, to be printed once more. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efficiency.h"

static double number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

static int64_t whole(const json_t *o, const char *key, int64_t least)
{
    const double v = number(o, key);

    return v >= (double)least && v < 9e15 ? (int64_t)v : least;
}

static void text(const json_t *o, const char *key, char *out, size_t bytes)
{
    const char *v = json_string_value(json_object_get(o, key));

    snprintf(out, bytes, "%s", v ? v : "");
}

static void read_list(const json_t *o, const char *key, double *out)
{
    const json_t *list = json_object_get(o, key);

    for (size_t i = 0; i < EFF_SEEDS; i++) {
        const json_t *v = json_array_get(list, i);
        out[i] = json_is_number(v) ? json_number_value(v) : NAN;
    }
}

static void read_told(const json_t *o, eff_row *r)
{
    static const char *const parts[] = {"baseline", "alone", "added", "other"};
    char word[16];

    text(o, "key", r->key, sizeof r->key);
    text(o, "label", r->label, sizeof r->label);
    text(o, "part", word, sizeof word);
    for (int p = 0; p < 4; p++)
        if (strcmp(word, parts[p]) == 0) r->part = (eff_part)p;
    r->batch = whole(o, "batch", 1);
    r->accumulate = whole(o, "accumulate", 1);
    text(o, "recompute", word, sizeof word);
    r->recompute = strcmp(word, "block") == 0;
    text(o, "sync", r->sync, sizeof r->sync);
    r->every = whole(o, "sync_every", 0);
    text(o, "precision", r->precision, sizeof r->precision);
    text(o, "optimizer", r->optimizer, sizeof r->optimizer);
    text(o, "compress", r->compress, sizeof r->compress);
    r->lr = number(o, "lr");
    r->steps = whole(o, "steps", 0);
    r->samples = whole(o, "samples", 0);
    r->syncs = whole(o, "syncs", 0);
}

static void read_measured(const eff *e, const json_t *o, eff_row *r)
{
    const json_t *memory = json_object_get(o, "memory");
    const json_t *kinds = json_object_get(o, "memory_kinds");
    const json_t *modelled = json_object_get(o, "modelled_s_sample");

    for (int m = 0; m < EFF_MEMORY; m++)
        r->memory[m] = number(memory, eff_memory_name((eff_memory)m));
    r->memory_total = number(memory, "total");
    for (size_t k = 0; k < EFF_KINDS; k++) {
        const json_t *kind = json_object_get(kinds, eff_kind_name(k));
        r->kind[k] = number(kind, "measured");
        r->kind_predicted[k] = number(kind, "predicted");
    }
    r->bytes = number(o, "bytes_counted");
    r->bytes_predicted = number(o, "bytes_predicted");
    r->bytes_step = number(o, "bytes_step");
    r->bytes_sample = number(o, "bytes_sample");
    r->compute_s = number(o, "compute_s");
    for (size_t i = 0; i < SWEEP_NETWORKS; i++)
        r->modelled[i] =
            i < e->n_networks ? number(modelled, e->network_names[i]) : NAN;
    read_list(o, "seconds_each", r->time);
    read_list(o, "eval_each", r->eval);
    read_list(o, "test_each", r->test);
    for (int64_t s = 0; s < e->seeds_done; s++)
        r->made[s] = isfinite(r->eval[s]) || whole(o, "diverged", 0) > 0;
}

static void read_networks(eff *e, const json_t *o)
{
    const json_t *list = json_object_get(o, "networks");

    for (size_t i = 0; i < json_array_size(list) && i < SWEEP_NETWORKS; i++) {
        text(json_array_get(list, i), "name", e->network_names[i],
             sizeof e->network_names[i]);
        text(json_array_get(list, i), "link", e->network_links[i],
             sizeof e->network_links[i]);
        e->n_networks = i + 1;
    }
}

static void read_setup(eff *e, const json_t *o)
{
    char command[4096];

    text(o, "command", command, sizeof command);
    free(e->command);
    e->command = strdup(command);
    text(o, "model", e->model, sizeof e->model);
    text(o, "data", e->data, sizeof e->data);
    text(o, "how", e->how, sizeof e->how);
    e->world = (int)whole(o, "world", 1);
    e->params = number(o, "parameters");
    e->train_count = (size_t)whole(o, "train_count", 0);
    e->val_count = (size_t)whole(o, "val_count", 0);
    e->test_count = (size_t)whole(o, "test_count", 0);
    e->oversubscribed = json_is_true(json_object_get(o, "oversubscribed"));
    read_networks(e, o);
}

static int read_rows(eff *e, const json_t *o)
{
    const json_t *list = json_object_get(o, "rows");

    for (size_t i = 0; i < json_array_size(list) && i < EFF_ROWS; i++) {
        eff_row *r = &e->rows[e->n_rows++];
        const double compute = number(json_array_get(list, i), "compute_s");

        read_told(json_array_get(list, i), r);
        read_measured(e, json_array_get(list, i), r);
        for (size_t s = 0; s < EFF_SEEDS; s++) r->computing[s] = compute;
    }
    return e->n_rows > 0 && strcmp(e->rows[0].key, "baseline") == 0;
}

tac_status eff_read_json(eff *e, const char *path)
{
    json_error_t error;
    json_t *o = json_load_file(path, 0, &error);
    char program[16];

    if (!o && error.line < 0)
        return tac_fail(e->ctx, TAC_ERR_CONFIG, "--print: %s", error.text);
    if (!o)
        return tac_fail(e->ctx, TAC_ERR_CONFIG, "--print %s: line %d: %s", path,
                        error.line, error.text);
    text(o, "program", program, sizeof program);
    e->seeds_done = whole(o, "seeds", 1);
    const int good = strcmp(program, "efficiency") == 0 &&
                     e->seeds_done <= EFF_SEEDS && (read_setup(e, o), 1) &&
                     read_rows(e, o);
    json_decref(o);
    if (good) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_CONFIG,
                    "--print %s: this is not what efficiency --json writes",
                    path);
}
