/* From arguments or a configuration to an option table: so that config.ini, the
 * comparison of ranks and the checks are the same for all who train. */
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tacit/model.h"

/* ---- a structure as options -----------------------------------------------
 */

/* The field's value as text; 0: it is unset. */
static int value_text(const tac_train_config *c, const tac_option *row,
                      char *out, size_t bytes)
{
    const void *at = (const char *)c + row->offset;
    const char *text;
    double x;

    switch (row->type) {
    case TAC_OPT_BOOL:
        snprintf(out, bytes, "%s", *(const int *)at ? "true" : "false");
        return 1;
    case TAC_OPT_INT:
        snprintf(out, bytes, "%" PRId64, *(const int64_t *)at);
        return 1;
    case TAC_OPT_SIZE:
        snprintf(out, bytes, "%" PRIu64, *(const uint64_t *)at);
        return 1;
    case TAC_OPT_F64:
        x = *(const double *)at;
        snprintf(out, bytes, isnan(x) ? "auto" : "%.17g", x);
        return 1;
    default: break;
    }
    text = *(const char *const *)at;
    if (text) snprintf(out, bytes, "%s", text);
    return text != NULL;
}

/* What is as by default keeps saying so. */
static tac_status read_struct(const tac_train_config *c, tac_options *o)
{
    tac_train_config usual;
    char text[4096], other[4096];

    TAC_TRY(tac_train_config_defaults(&usual));
    for (const tac_option *row = tac_train_config_options(); row->key; row++) {
        const int set = value_text(c, row, text, sizeof text);
        const int was = value_text(&usual, row, other, sizeof other);

        if (!set || (was && !strcmp(text, other))) continue;
        TAC_TRY(tac_options_set(o, row->key, text, TAC_SOURCE_CLI,
                                "the program's configuration"));
    }
    return TAC_OK;
}

tac_status tac_training_args_config(tac_context *ctx,
                                    const tac_training_args *args,
                                    tac_train_config *out, tac_options **owner)
{
    tac_train_config c;
    const tac_options_config oc = {"trainer", "", NULL,
                                   tac_train_config_options(), out};
    tac_options *o = NULL;
    tac_status s;

    memset(&c, 0, sizeof c);
    TAC_TRY(tac_options_create(ctx, &oc, &o));
    s = tac__training_args_read(ctx, args, o);
    if (s < 0) {
        tac_options_destroy(o);
        return s;
    }
    *owner = o;
    return TAC_OK;
}

/* ---- what the trainer decides itself --------------------------------------
 */

/* Settings of communicators and contexts, which are there already. */
static tac_status refuse_others(tac_trainer *t, const tac_options *o)
{
    static const char *const keys[] = {
        "ranks",   "threads",    "transport", "emulate", "progress",
        "timeout", "stall-warn", "trace",     "config",  NULL};

    for (int i = 0; keys[i]; i++)
        if (tac_options_source(o, keys[i]) != TAC_SOURCE_DEFAULT)
            return tac_fail(t->rank.ctx, TAC_ERR_CONFIG,
                            "the option %s is not the trainer's: give it to "
                            "tac_launch, which makes the communicator",
                            keys[i]);
    return TAC_OK;
}

static tac_status check_determinism(tac_trainer *t)
{
    if (!t->rank.config.deterministic ||
        tac_comm_config_of(t->rank.comm)->deterministic ||
        tac_comm_size(t->rank.comm) == 1)
        return TAC_OK;
    return tac_fail(t->rank.ctx, TAC_ERR_CONFIG,
                    "full_determinism needs a communicator that is so, too: "
                    "set comm.deterministic of tac_launch_config");
}

/* What the program brings along is named for those who read config.ini. */
static tac_status name_own(tac_trainer *t, tac_options *o)
{
    const tac_model_source *m = t->config.model;
    char name[128];

    if (m)
        TAC_TRY(tac_options_set(o, "model", m->spec ? m->spec : "own",
                                TAC_SOURCE_CLI, "the program's model"));
    if (!t->config.train_dataset) return TAC_OK;
    snprintf(name, sizeof name, "own:%s",
             tac_dataset_name(t->config.train_dataset));
    return tac_options_set(o, "data", name, TAC_SOURCE_CLI,
                           "the program's data");
}

static tac_status make(tac_trainer *t, tac_options *o)
{
    tac_context *ctx = t->rank.ctx;
    const tac_training_args *a = t->config.args;

    if (a) {
        TAC_TRY(tac__training_args_read(ctx, a, o));
        TAC_TRY(refuse_others(t, o));
    } else {
        TAC_TRY(read_struct(t->config.config, o));
    }
    return name_own(t, o);
}

tac_status tac__trainer_options(tac_trainer *t, const tac_options *options)
{
    tac__rank *rank = &t->rank;
    const tac_options_config oc = {"trainer", "", NULL,
                                   tac_train_config_options(), &rank->config};

    if (!t->config.args == !t->config.config)
        return tac_fail(rank->ctx, TAC_ERR_ARG,
                        "a trainer needs either args or config, not both");
    rank->options = options;
    if (options) {
        rank->config = *t->config.config;
        return TAC_OK;
    }
    TAC_TRY(tac_options_create(rank->ctx, &oc, &t->owned));
    rank->options = t->owned;
    TAC_TRY(make(t, t->owned));
    return check_determinism(t);
}
