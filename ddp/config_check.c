/* Checks of the configuration that no single row of the table can make. */
#include "tacit/train_config.h"

#include <stdlib.h>
#include <string.h>

#include "local_options.h"
#include "settings.h"
#include "tacit/codec.h"
#include "tacit/shards.h"

static const long long MOST_STEPS = 1000000000000;

/* `word`: one more that the option knows. */
static tac_status check_every(tac_context *ctx, const char *option,
                              const char *text, const char *word)
{
    char *end = NULL;

    if (!strcmp(text, "epoch") || !strcmp(text, "0") || !strcmp(text, word))
        return TAC_OK;
    if (*text >= '1' && *text <= '9' && strtoll(text, &end, 10) <= MOST_STEPS &&
        *end == '\0')
        return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s %.40s is neither 'epoch' nor a number of steps up to "
                    "1e12; 0 is never",
                    option, text);
}

/* Checkpoints live in the run folder, and so does what auto looks for. */
static tac_status check_saving(tac_context *ctx, const tac_train_config *c)
{
    TAC_TRY(check_every(ctx, "save-every", c->save_every, "best"));
    if (!c->run_dir && strcmp(c->save_every, "0"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--save-every %s needs a folder to save into: give "
                        "--run-dir DIR",
                        c->save_every);
    if (!c->run_dir && c->resume && !strcmp(c->resume, "auto"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--resume auto looks into the run folder: give "
                        "--run-dir DIR, or --resume DIR");
    return TAC_OK;
}

static int is_off(const char *every)
{
    return !strcmp(every, "0") || !strcmp(every, "never");
}

/* Is there an evaluation at each checkpoint? */
static int evaluates_all_saved(const tac_train_config *c)
{
    const int by_epoch = !strcmp(c->save_every, "epoch");

    if (is_off(c->eval_every)) return 0;
    if (!strcmp(c->save_every, "best")) return 1;
    if (by_epoch || !strcmp(c->eval_every, "epoch"))
        return !strcmp(c->save_every, c->eval_every);
    return strtoll(c->save_every, NULL, 10) %
               strtoll(c->eval_every, NULL, 10) ==
           0;
}

static tac_status check_best(tac_context *ctx, const tac_train_config *c)
{
    if (!strcmp(c->save_every, "best") && is_off(c->eval_every))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--save-every best needs evaluations: give "
                        "--eval-every epoch or a number of steps");
    if (is_off(c->save_every) && c->save_total_limit > 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--save-total-limit %lld needs checkpoints: give "
                        "--save-every too, or leave it out",
                        (long long)c->save_total_limit);
    if (!c->load_best) return TAC_OK;
    if (is_off(c->save_every))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--load-best needs checkpoints: give --save-every too, "
                        "or leave it out");
    if (!strcmp(c->sync, "none"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--load-best needs one model of all ranks: leave it "
                        "out, or --sync none");
    if (evaluates_all_saved(c)) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--load-best chooses among checkpoints that were "
                    "evaluated, but --save-every %s saves where --eval-every "
                    "%s does not evaluate: give both the same",
                    c->save_every, c->eval_every);
}

enum { USUAL_BATCH = 32 }; /* of the table */

static tac_status resolve_batch(tac_context *ctx, tac_train_config *c,
                                int world)
{
    const int64_t ranks = (int64_t)world * c->accumulate;

    if (c->global_batch == 0) {
        c->global_batch = c->batch * ranks;
        return TAC_OK;
    }
    if (c->batch != USUAL_BATCH && c->batch * ranks != c->global_batch)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--batch %lld x %d rank%s x --accumulate %lld is %lld, "
                        "and --global-batch is %lld: give one of the two",
                        (long long)c->batch, world, world == 1 ? "" : "s",
                        (long long)c->accumulate, (long long)(c->batch * ranks),
                        (long long)c->global_batch);
    if (c->global_batch % ranks != 0)
        return tac_fail(
            ctx, TAC_ERR_CONFIG,
            "--global-batch %lld does not divide by %d rank%s x --accumulate "
            "%lld; the nearest that does is %lld",
            (long long)c->global_batch, world, world == 1 ? "" : "s",
            (long long)c->accumulate,
            (long long)(ranks * ((c->global_batch + ranks / 2) / ranks > 0
                                     ? (c->global_batch + ranks / 2) / ranks
                                     : 1)));
    c->batch = c->global_batch / ranks;
    return TAC_OK;
}

/* What has no meaning where nothing is computed. */
static tac_status check_skipping(tac_context *ctx, const tac_train_config *c)
{
    const char *option = strcmp(c->save_every, "0") ? "save-every"
                         : c->resume                ? "resume"
                         : c->target_accuracy > 0   ? "target-accuracy"
                         : c->record                ? "record"
                         : c->underflow_every > 0   ? "underflow-every"
                         : c->inject_inf            ? "inject-inf"
                                                    : NULL;

    if (!c->skip_compute || !option) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s needs a run that computes: leave it out, or "
                    "--skip-compute",
                    option);
}

/* Two options that would write over each other's file. */
static tac_status check_same_file(tac_context *ctx, const char *const *option,
                                  const char *const *path, int i)
{
    for (int k = 0; k < i; k++)
        if (path[i] && path[k] && !strcmp(path[i], path[k]))
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--%s and --%s are both %.200s; give each a file "
                            "of its own",
                            option[k], option[i], path[i]);
    return TAC_OK;
}

static tac_status check_paths(tac_context *ctx, const tac_train_config *c)
{
    enum { FILES = 4 };
    const char *const option[] = {"json",          "trace",   "record",
                                  "attempt-times", "run-dir", "resume",
                                  "data-dir",      "emulate", "param-groups"};
    const char *const path[] = {c->json,          c->trace,   c->record,
                                c->attempt_times, c->run_dir, c->resume,
                                c->data_dir,      c->emulate, c->param_groups};

    for (int i = 0; i < (int)(sizeof path / sizeof *path); i++) {
        if (path[i] && !*path[i])
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--%s is empty; give it a value, or leave it out",
                            option[i]);
        if (i < FILES) TAC_TRY(check_same_file(ctx, option, path, i));
    }
    return TAC_OK;
}

static tac_status check_data(tac_context *ctx, const tac_train_config *c)
{
    if (!c->data_dir || !strcmp(c->data, "fashion-mnist")) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--data-dir is the folder of fashion-mnist, and means "
                    "nothing to --data %.100s: leave it out, or use --data "
                    "idx:DIR",
                    c->data);
}

static tac_status check_compress(tac_context *ctx, const tac_train_config *c)
{
    tac_codec *codec = NULL;
    const tac_status s = tac_codec_create(ctx, c->compress, &codec);

    tac_codec_destroy(codec);
    if (s < 0) return s == TAC_ERR_ARG ? TAC_ERR_CONFIG : s;
    if (strcmp(c->sync, "none") || !strcmp(c->compress, "none")) return TAC_OK;
    return tac_fail(
        ctx, TAC_ERR_CONFIG,
        "--compress %.60s means nothing to --sync none, which sends "
        "nothing: leave it out, or use another --sync",
        c->compress);
}

tac_status tac_train_config_resolve(tac_context *ctx, tac_train_config *c,
                                    int world)
{
    TAC_TRY(tac__config_check_ranges(ctx, c));
    TAC_TRY(check_paths(ctx, c));
    TAC_TRY(check_data(ctx, c));
    TAC_TRY(check_skipping(ctx, c));
    TAC_TRY(check_every(ctx, "eval-every", c->eval_every, "never"));
    TAC_TRY(check_saving(ctx, c));
    TAC_TRY(check_best(ctx, c));
    TAC_TRY(check_compress(ctx, c));
    TAC_TRY(tac_shards_check(ctx, c->shards));
    if (c->warmup_ratio > 0 && c->warmup_steps > 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--warmup-ratio and --warmup-steps are two ways to say "
                        "the same: leave one out");
    if (c->steps == 0 && c->epochs <= 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "nothing to do: give --epochs above 0, or --steps");
    if (c->record && !strcmp(c->sync, "none"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--record needs gradients that are averaged: leave "
                        "out --sync none");
    TAC_TRY(tac__settings_resolve(ctx, c, world));
    TAC_TRY(tac__local_resolve(ctx, c, world));
    return resolve_batch(ctx, c, world);
}
