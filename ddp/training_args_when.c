/* Training arguments that say when what is due: logging, evaluating, saving. */
#include "trainer_impl.h"
#include "training_args_names.h"

#include <string.h>

enum { NO, STEPS, EPOCH, BEST };

static const tac__word strategies[] = {
    {"no", NULL}, {"steps", NULL}, {"epoch", NULL}, {NULL, NULL}};
static const tac__word save_strategies[] = {{"no", NULL},
                                            {"steps", NULL},
                                            {"epoch", NULL},
                                            {"best", NULL},
                                            {NULL, NULL}};

/* Ends of epochs are always logged. */
tac_status tac__args_logging(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;
    int when = NO;

    TAC_TRY(tac__word_find(r->ctx, "logging_strategy",
                           a->logging_strategy ? a->logging_strategy : "",
                           strategies, &when));
    TAC_TRY(tac__args_set_int(r, "log-first", a->logging_first_step != 0,
                              "logging_first_step"));
    return tac__args_set_int(r, "log-every",
                             when == STEPS ? a->logging_steps
                                           : INT64_C(1000000000000),
                             "logging_steps");
}

/* One strategy from its two names. */
static tac_status eval_strategy(const tac__args_reader *r, const char **out)
{
    const char *now = r->a->eval_strategy, *old = r->a->evaluation_strategy;

    *out = now ? now : old ? old : "no";
    if (old && tac_context_rank(r->ctx) == 0)
        tac_log(r->ctx, TAC_LOG_WARN,
                "evaluation_strategy is the old name of eval_strategy: use the "
                "new one");
    if (!now || !old || !strcmp(now, old)) return TAC_OK;
    return tac_fail(r->ctx, TAC_ERR_CONFIG,
                    "eval_strategy is '%s' and evaluation_strategy, its older "
                    "name, '%s': give one of them",
                    now, old);
}

tac_status tac__args_evaluation(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;
    const char *text;
    int when = NO;

    TAC_TRY(eval_strategy(r, &text));
    TAC_TRY(tac__word_find(r->ctx, "eval_strategy", text, strategies, &when));
    if (when == NO)
        return tac__args_set(r, "eval-every", "never", "eval_strategy");
    if (when == EPOCH)
        return tac__args_set(r, "eval-every", "epoch", "eval_strategy");
    return tac__args_set_int(r, "eval-every",
                             a->eval_steps ? a->eval_steps : a->logging_steps,
                             "eval_steps");
}

static tac_status check_greater(const tac__args_reader *r, const char *metric)
{
    const int lower = tac_checkpoint_is_lower_better(metric);

    if (r->a->greater_is_better < 0 || (r->a->greater_is_better == 0) == lower)
        return TAC_OK;
    return tac_fail(r->ctx, TAC_ERR_CONFIG,
                    "greater_is_better is %d, but of metrics whose names end "
                    "in loss less is better, of others more, and "
                    "metric_for_best_model is %.60s: name it so",
                    r->a->greater_is_better, metric);
}

tac_status tac__args_saving(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;
    const char *metric =
        a->metric_for_best_model ? a->metric_for_best_model : "loss";
    int when = NO;

    TAC_TRY(tac__word_find(r->ctx, "save_strategy",
                           a->save_strategy ? a->save_strategy : "",
                           save_strategies, &when));
    TAC_TRY(check_greater(r, metric));
    TAC_TRY(tac__args_set(r, "best-metric", metric, "metric_for_best_model"));
    if (!a->output_dir) return TAC_OK;
    TAC_TRY(tac__args_set(r, "run-dir", a->output_dir, "output_dir"));
    if (when == NO) return tac__args_set(r, "save-every", "0", "save_strategy");
    TAC_TRY(tac__args_set_int(r, "save-total-limit", a->save_total_limit,
                              "save_total_limit"));
    if (when == STEPS)
        return tac__args_set_int(r, "save-every", a->save_steps, "save_steps");
    return tac__args_set(r, "save-every", when == EPOCH ? "epoch" : "best",
                         "save_strategy");
}
