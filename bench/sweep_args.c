/* What ddp_train is told: the same for every case but for how replicas talk,
 * the learning rate and the seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "tacit/train_config.h"

enum { POINTS = 8 }; /* evaluations, and half as many logging intervals */

static void add_word(sweep_args *a, const char *word)
{
    if (a->n + 1 < sizeof a->argv / sizeof *a->argv) a->argv[a->n++] = word;
}

void sweep_args_add(sweep_args *a, const char *key, const char *value)
{
    add_word(a, key);
    if (value) add_word(a, value);
}

static const char *text_of(sweep_args *a, const char *format, double value)
{
    char *text = a->text[a->texts];

    if (a->texts + 1 < sizeof a->text / sizeof *a->text) a->texts++;
    snprintf(text, sizeof a->text[0], format, value);
    return text;
}

void sweep_args_add_int(sweep_args *a, const char *key, int64_t value)
{
    sweep_args_add(a, key, text_of(a, "%.0f", (double)value));
}

static void add_what(const sweep_options *o, sweep_args *a)
{
    sweep_args_add(a, "--model", o->model);
    sweep_args_add(a, "--data", o->data);
    if (o->data_dir) sweep_args_add(a, "--data-dir", o->data_dir);
    sweep_args_add(a, "--optimizer", o->optimizer);
    sweep_args_add(a, "--shards", o->shards);
    sweep_args_add(a, "--precision", o->precision);
    if (o->emulate) sweep_args_add(a, "--emulate", o->emulate);
    if (o->threads > 0) sweep_args_add_int(a, "--threads", o->threads);
    sweep_args_add_int(a, "--batch", o->batch);
}

static void add_how(const sweep_case *k, sweep_args *a)
{
    const int has_interval = strcmp(k->sync, "grad") != 0 &&
                             strcmp(k->sync, "none") != 0 &&
                             strcmp(k->sync, "oneshot") != 0;

    snprintf(a->sync, sizeof a->sync, "%s", k->sync);
    snprintf(a->compress, sizeof a->compress, "%s", k->compress);
    sweep_args_add(a, "--sync", a->sync);
    if (has_interval) sweep_args_add_int(a, "--sync-every", k->every);
    if (k->accumulate > 1) sweep_args_add_int(a, "--accumulate", k->accumulate);
    if (strcmp(k->compress, "none") != 0)
        sweep_args_add(a, "--compress", a->compress);
}

static tac_status add_extra(const sweep *s, sweep_args *a)
{
    char *rest = NULL;

    a->extra = strdup(s->o->extra ? s->o->extra : "");
    if (!a->extra) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
    for (char *w = strtok_r(a->extra, " \t\n", &rest); w;
         w = strtok_r(NULL, " \t\n", &rest))
        add_word(a, w);
    if (a->n + 16 < sizeof a->argv / sizeof *a->argv) return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_CONFIG,
                    "--extra has too many words; put some into a file and give "
                    "\"--config FILE\" there");
}

tac_status sweep_args_make(const sweep *s, const sweep_case *k, double lr,
                           int64_t seed, sweep_args *out)
{
    const int64_t each = (k->steps + POINTS - 1) / POINTS;

    memset(out, 0, sizeof *out);
    add_what(s->o, out);
    add_how(k, out);
    sweep_args_add_int(out, "--steps", k->steps);
    sweep_args_add_int(out, "--eval-every", each);
    sweep_args_add_int(out, "--log-every", each > 1 ? each / 2 : 1);
    sweep_args_add(out, "--lr", text_of(out, "%.9g", lr));
    sweep_args_add_int(out, "--seed", seed);
    return add_extra(s, out);
}

void sweep_args_free(sweep_args *a)
{
    free(a->extra);
}
