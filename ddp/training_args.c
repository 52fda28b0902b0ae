/* Hugging Face's training arguments as options: docs/trainer.md has the table.
 * Each is set as text, so that the option table checks its range and its
 * message names the argument. */
#include "trainer_impl.h"
#include "training_args_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- amount of work -------------------------------------------------------
 */

static tac_status read_work(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(tac__args_set_int(r, "batch", a->per_device_train_batch_size,
                              "per_device_train_batch_size"));
    TAC_TRY(tac__args_set_int(r, "eval-batch", a->per_device_eval_batch_size,
                              "per_device_eval_batch_size"));
    TAC_TRY(tac__args_set_int(r, "accumulate", a->gradient_accumulation_steps,
                              "gradient_accumulation_steps"));
    TAC_TRY(tac__args_set_f64(r, "epochs", a->num_train_epochs,
                              "num_train_epochs"));
    if (a->max_steps >= 0)
        TAC_TRY(tac__args_set_int(r, "steps", a->max_steps, "max_steps"));
    return tac__args_set_int(r, "drop-last", a->dataloader_drop_last != 0,
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
static tac_status read_optimizer(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;
    const char *name;

    TAC_TRY(tac__args_set_word(r, "optimizer", a->optim, optimizers, "optim"));
    name = tac_options_value(r->o, "optimizer");
    TAC_TRY(tac__args_set_f64(r, "lr", a->learning_rate, "learning_rate"));
    TAC_TRY(
        tac__args_set_f64(r, "weight-decay", a->weight_decay, "weight_decay"));
    if (!strcmp(name, "sgd"))
        return tac__args_set_int(r, "momentum", 0, "optim");
    if (!strcmp(name, "adafactor")) return TAC_OK;
    TAC_TRY(tac__args_set_f64(r, "beta1", a->adam_beta1, "adam_beta1"));
    TAC_TRY(tac__args_set_f64(r, "beta2", a->adam_beta2, "adam_beta2"));
    return tac__args_set_f64(r, "eps", a->adam_epsilon, "adam_epsilon");
}

/* "constant" has no warm-up, whatever is given, so giving it is a mistake. */
static tac_status read_warmup(const tac__args_reader *r)
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
    if (w < 1) return tac__args_set_f64(r, "warmup-ratio", w, "warmup_steps");
    return tac__args_set_int(r, "warmup-steps", (int64_t)w, "warmup_steps");
}

static tac_status read_optimization(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(read_optimizer(r));
    TAC_TRY(tac__args_set_word(r, "schedule", a->lr_scheduler_type, schedules,
                               "lr_scheduler_type"));
    TAC_TRY(read_warmup(r));
    TAC_TRY(
        tac__args_set_f64(r, "clip-norm", a->max_grad_norm, "max_grad_norm"));
    if (a->fp16 && a->bf16)
        return tac_fail(r->ctx, TAC_ERR_CONFIG,
                        "fp16 and bf16 are both set: choose one");
    TAC_TRY(tac__args_set(r, "precision",
                          a->fp16   ? "fp16"
                          : a->bf16 ? "bf16"
                                    : "fp32",
                          a->bf16 ? "bf16" : "fp16"));
    return tac__args_set(r, "recompute",
                         a->gradient_checkpointing ? "block" : "none",
                         "gradient_checkpointing");
}

static tac_status read_run(const tac__args_reader *r)
{
    const tac_training_args *a = r->a;

    TAC_TRY(tac__args_set_int(r, "load-best", a->load_best_model_at_end != 0,
                              "load_best_model_at_end"));
    if (a->resume_from_checkpoint)
        TAC_TRY(tac__args_set(r, "resume", a->resume_from_checkpoint,
                              "resume_from_checkpoint"));
    TAC_TRY(tac__args_set_int(r, "deterministic", a->full_determinism != 0,
                              "full_determinism"));
    return tac__args_set_int(r, "seed", (int64_t)a->seed, "seed");
}

/* ---- everything else ------------------------------------------------------
 */

/* "key=value" or "key", as on ddp_train's command line with or without "--". */
static tac_status read_word(const tac__args_reader *r, char *word)
{
    char *value;

    if (!strncmp(word, "--", 2)) word += 2;
    value = strchr(word, '=');
    if (value) *value++ = '\0';
    return tac_options_set(r->o, word, value ? value : "true", TAC_SOURCE_CLI,
                           "training argument options");
}

static tac_status read_options(const tac__args_reader *r)
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
    const tac__args_reader r = {ctx, &args, o};

    if (a->struct_size < sizeof(size_t))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "training arguments: struct_size is %zu; start from "
                        "TAC_TRAINING_ARGS_INIT",
                        a->struct_size);
    memcpy(&args, a,
           a->struct_size < sizeof args ? a->struct_size : sizeof args);
    TAC_TRY(read_work(&r));
    TAC_TRY(read_optimization(&r));
    TAC_TRY(tac__args_logging(&r));
    TAC_TRY(tac__args_evaluation(&r));
    TAC_TRY(tac__args_saving(&r));
    TAC_TRY(read_run(&r));
    return read_options(&r);
}
