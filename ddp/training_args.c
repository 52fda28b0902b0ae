/* Hugging Face's training arguments as options: docs/trainer.md has the table.
 * Each is set as text, so that the option table checks its range and its
 * message names the argument. */
#include "trainer_impl.h"
#include "training_args_names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    tac_context *ctx;
    const tac_training_args *a;
    tac_options *o;
} reader;

/* ---- one at a time --------------------------------------------------------
 */

static tac_status set(const reader *r, const char *key, const char *value,
                      const char *argument)
{
    char where[96];

    snprintf(where, sizeof where, "training argument %s", argument);
    return tac_options_set(r->o, key, value, TAC_SOURCE_CLI, where);
}

static tac_status set_int(const reader *r, const char *key, int64_t value,
                          const char *argument)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, value);
    return set(r, key, text, argument);
}

static tac_status set_f64(const reader *r, const char *key, double value,
                          const char *argument)
{
    char text[40];

    snprintf(text, sizeof text, "%.17g", value);
    return set(r, key, text, argument);
}

static tac_status set_word(const reader *r, const char *key, const char *text,
                           const tac__word *words, const char *argument)
{
    int i = 0;

    TAC_TRY(tac__word_find(r->ctx, argument, text ? text : "", words, &i));
    return words[i].value ? set(r, key, words[i].value, argument) : TAC_OK;
}

/* ---- amount of work -------------------------------------------------------
 */

static tac_status read_work(const reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(set_int(r, "batch", a->per_device_train_batch_size,
                    "per_device_train_batch_size"));
    TAC_TRY(set_int(r, "eval-batch", a->per_device_eval_batch_size,
                    "per_device_eval_batch_size"));
    TAC_TRY(set_int(r, "accumulate", a->gradient_accumulation_steps,
                    "gradient_accumulation_steps"));
    TAC_TRY(set_f64(r, "epochs", a->num_train_epochs, "num_train_epochs"));
    if (a->max_steps >= 0)
        TAC_TRY(set_int(r, "steps", a->max_steps, "max_steps"));
    return set_int(r, "drop-last", a->dataloader_drop_last != 0,
                   "dataloader_drop_last");
}

/* ---- optimization ---------------------------------------------------------
 */

static const tac__word optimizers[] = {{"adamw_torch", "adamw"},
                                       {"adamw_torch_fused", "adamw"},
                                       {"adafactor", "adafactor"},
                                       {"adamw_bnb_8bit", "adamw8bit"},
                                       {"adamw_8bit", "adamw8bit"},
                                       {"sgd", "sgd"},
                                       {NULL, NULL}};

static const tac__word schedules[] = {{"linear", "linear"},
                                      {"cosine", "cosine"},
                                      {"constant", "constant"},
                                      {"constant_with_warmup", "constant"},
                                      {NULL, NULL}};

/* As torch's sgd has no momentum unless told; `options` may tell. */
static tac_status read_optimizer(const reader *r)
{
    const tac_training_args *a = r->a;
    const char *name;

    TAC_TRY(set_word(r, "optimizer", a->optim, optimizers, "optim"));
    name = tac_options_value(r->o, "optimizer");
    TAC_TRY(set_f64(r, "lr", a->learning_rate, "learning_rate"));
    TAC_TRY(set_f64(r, "weight-decay", a->weight_decay, "weight_decay"));
    if (!strcmp(name, "sgd")) return set_int(r, "momentum", 0, "optim");
    if (!strcmp(name, "adafactor")) return TAC_OK;
    TAC_TRY(set_f64(r, "beta1", a->adam_beta1, "adam_beta1"));
    TAC_TRY(set_f64(r, "beta2", a->adam_beta2, "adam_beta2"));
    return set_f64(r, "eps", a->adam_epsilon, "adam_epsilon");
}

/* "constant" has no warm-up, whatever is given, so giving it is a mistake. */
static tac_status read_warmup(const reader *r)
{
    const double w = r->a->warmup_steps;

    if (w > 0 && !strcmp(r->a->lr_scheduler_type, "constant"))
        return tac_fail(r->ctx, TAC_ERR_CONFIG,
                        "warmup_steps is %g, but lr_scheduler_type constant "
                        "has no warm-up: take constant_with_warmup",
                        w);
    if (!(w >= 0) || (w >= 1 && w != floor(w)))
        return tac_fail(r->ctx, TAC_ERR_CONFIG,
                        "warmup_steps is %g: give a number of steps, or a "
                        "share of all steps between 0 and 1",
                        w);
    if (w < 1) return set_f64(r, "warmup-ratio", w, "warmup_steps");
    return set_int(r, "warmup-steps", (int64_t)w, "warmup_steps");
}

static tac_status read_optimization(const reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(read_optimizer(r));
    TAC_TRY(set_word(r, "schedule", a->lr_scheduler_type, schedules,
                     "lr_scheduler_type"));
    TAC_TRY(read_warmup(r));
    TAC_TRY(set_f64(r, "clip-norm", a->max_grad_norm, "max_grad_norm"));
    if (a->fp16 && a->bf16)
        return tac_fail(r->ctx, TAC_ERR_CONFIG,
                        "fp16 and bf16 are both set: choose one");
    TAC_TRY(set(r, "precision",
                a->fp16   ? "fp16"
                : a->bf16 ? "bf16"
                          : "fp32",
                a->bf16 ? "bf16" : "fp16"));
    return set(r, "recompute", a->gradient_checkpointing ? "block" : "none",
               "gradient_checkpointing");
}

/* ---- when what is due -----------------------------------------------------
 */

enum { NO, STEPS, EPOCH, BEST };

static const tac__word strategies[] = {
    {"no", NULL}, {"steps", NULL}, {"epoch", NULL}, {NULL, NULL}};
static const tac__word save_strategies[] = {{"no", NULL},
                                            {"steps", NULL},
                                            {"epoch", NULL},
                                            {"best", NULL},
                                            {NULL, NULL}};

/* Ends of epochs are always logged. */
static tac_status read_logging(const reader *r)
{
    const tac_training_args *a = r->a;
    int when = NO;

    TAC_TRY(tac__word_find(r->ctx, "logging_strategy",
                           a->logging_strategy ? a->logging_strategy : "",
                           strategies, &when));
    TAC_TRY(set_int(r, "log-first", a->logging_first_step != 0,
                    "logging_first_step"));
    return set_int(r, "log-every",
                   when == STEPS ? a->logging_steps : INT64_C(1000000000000),
                   "logging_steps");
}

/* One strategy from its two names. */
static tac_status eval_strategy(const reader *r, const char **out)
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

static tac_status read_evaluation(const reader *r)
{
    const tac_training_args *a = r->a;
    const char *text;
    int when = NO;

    TAC_TRY(eval_strategy(r, &text));
    TAC_TRY(tac__word_find(r->ctx, "eval_strategy", text, strategies, &when));
    if (when == NO) return set(r, "eval-every", "never", "eval_strategy");
    if (when == EPOCH) return set(r, "eval-every", "epoch", "eval_strategy");
    return set_int(r, "eval-every",
                   a->eval_steps ? a->eval_steps : a->logging_steps,
                   "eval_steps");
}

static tac_status check_greater(const reader *r, const char *metric)
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

static tac_status read_saving(const reader *r)
{
    const tac_training_args *a = r->a;
    const char *metric =
        a->metric_for_best_model ? a->metric_for_best_model : "loss";
    int when = NO;

    TAC_TRY(tac__word_find(r->ctx, "save_strategy",
                           a->save_strategy ? a->save_strategy : "",
                           save_strategies, &when));
    TAC_TRY(check_greater(r, metric));
    TAC_TRY(set(r, "best-metric", metric, "metric_for_best_model"));
    if (!a->output_dir) return TAC_OK;
    TAC_TRY(set(r, "run-dir", a->output_dir, "output_dir"));
    if (when == NO) return set(r, "save-every", "0", "save_strategy");
    TAC_TRY(set_int(r, "save-total-limit", a->save_total_limit,
                    "save_total_limit"));
    if (when == STEPS)
        return set_int(r, "save-every", a->save_steps, "save_steps");
    return set(r, "save-every", when == EPOCH ? "epoch" : "best",
               "save_strategy");
}

static tac_status read_run(const reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(set_int(r, "load-best", a->load_best_model_at_end != 0,
                    "load_best_model_at_end"));
    if (a->resume_from_checkpoint)
        TAC_TRY(set(r, "resume", a->resume_from_checkpoint,
                    "resume_from_checkpoint"));
    TAC_TRY(set_int(r, "deterministic", a->full_determinism != 0,
                    "full_determinism"));
    return set_int(r, "seed", (int64_t)a->seed, "seed");
}

/* ---- everything else ------------------------------------------------------
 */

/* "key=value" or "key", as on ddp_train's command line with or without "--". */
static tac_status read_word(const reader *r, char *word)
{
    char *value;

    if (!strncmp(word, "--", 2)) word += 2;
    value = strchr(word, '=');
    if (value) *value++ = '\0';
    return tac_options_set(r->o, word, value ? value : "true", TAC_SOURCE_CLI,
                           "training argument options");
}

static tac_status read_options(const reader *r)
{
    char text[2048];
    char *rest = NULL;

    if (!r->a->options) return TAC_OK;
    if (strlen(r->a->options) >= sizeof text)
        return tac_fail(r->ctx, TAC_ERR_CONFIG,
                        "options of the training arguments are longer than "
                        "%zu bytes",
                        sizeof text - 1);
    strcpy(text, r->a->options);
    for (char *word = strtok_r(text, " \t\n", &rest); word;
         word = strtok_r(NULL, " \t\n", &rest))
        TAC_TRY(read_word(r, word));
    return TAC_OK;
}

tac_status tac__training_args_read(tac_context *ctx, const tac_training_args *a,
                                   tac_options *o)
{
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    const reader r = {ctx, &args, o};

    if (a->struct_size < sizeof(size_t))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "training arguments: struct_size is %zu; start from "
                        "TAC_TRAINING_ARGS_INIT",
                        a->struct_size);
    memcpy(&args, a,
           a->struct_size < sizeof args ? a->struct_size : sizeof args);
    TAC_TRY(read_work(&r));
    TAC_TRY(read_optimization(&r));
    TAC_TRY(read_logging(&r));
    TAC_TRY(read_evaluation(&r));
    TAC_TRY(read_saving(&r));
    TAC_TRY(read_run(&r));
    return read_options(&r);
}
