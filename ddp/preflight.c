/* Are there samples enough? Asked before anything is built, of numbers that all
 * ranks know, so all come to the same answer. */
#include "run.h"

#include <inttypes.h>

static uint64_t parts(uint64_t whole, uint64_t part)
{
    return whole / part + (whole % part != 0);
}

static tac_status too_few_for_ranks(const tac__run *run, uint64_t samples)
{
    const char *s = samples == 1 ? "" : "s";

    if (samples == 0)
        return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                        "%s has no training samples: give data that has some",
                        run->config->data);
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "%s has %" PRIu64 " training sample%s, and of %d ranks "
                    "some would have none: use at most %" PRIu64 " rank%s, or "
                    "more data",
                    run->config->data, samples, s, run->rank->world, samples,
                    s);
}

static tac_status too_few_for_batch(const tac__run *run, uint64_t samples,
                                    uint64_t each)
{
    const tac_train_config *c = run->config;

    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "%d rank%s x --batch %" PRId64 " is %" PRId64
                    " samples, and %s has %" PRIu64
                    " for training: lower --batch to at most %" PRIu64
                    " (--global-batch %" PRIu64 ")%s",
                    run->rank->world, run->rank->world == 1 ? "" : "s",
                    c->batch, run->rank->world * c->batch, c->data, samples,
                    each,
                    each * (uint64_t)run->rank->world * (uint64_t)c->accumulate,
                    run->rank->world == 1 ? "" : ", or use fewer ranks");
}

/* Micro-steps of a step are of one epoch. */
static tac_status too_few_for_steps(const tac__run *run, uint64_t batches)
{
    const tac_train_config *c = run->config;

    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--accumulate %" PRId64 " is more than the %" PRIu64
                    " batches of %" PRId64 " samples that a rank has in an "
                    "epoch, whose end no step crosses: lower --accumulate to "
                    "at most %" PRIu64 ", or --batch",
                    c->accumulate, batches, c->batch, batches);
}

static int is_empty(const tac_dataset *set)
{
    return set && tac_dataset_get_info(set).count == 0;
}

/* A twelfth of the training images, fixed, is for validation. */
static tac_status check_evaluation(const tac__run *run, uint64_t train)
{
    const char *data = run->config->data;
    const char *missing = NULL;

    if (is_empty(run->data.val))
        missing = "validation samples (a twelfth of the training samples)";
    else if (is_empty(run->data.test))
        missing = "test samples";
    if (!missing) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "%s has %" PRIu64
                    " training samples, but no %s: give it at least 12 samples "
                    "for training and 1 for the test",
                    data, train, missing);
}

/* A batch that nobody has asked for is as large as the data allows. */
static int is_asked(const tac__run *run)
{
    const tac_options *o = run->rank->options;
    tac_train_config usual;

    if (o)
        return tac_options_source(o, "batch") != TAC_SOURCE_DEFAULT ||
               tac_options_source(o, "global-batch") != TAC_SOURCE_DEFAULT;
    return tac_train_config_defaults(&usual) >= 0 &&
           run->config->batch != usual.batch;
}

tac_status tac__preflight_samples(const tac__run *run)
{
    const uint64_t samples = tac_dataset_get_info(run->data.train).count;

    TAC_TRY(check_evaluation(run, samples));
    return samples < (uint64_t)run->rank->world
               ? too_few_for_ranks(run, samples)
               : TAC_OK;
}

tac_status tac__preflight_batch(const tac__run *run)
{
    const tac_train_config *c = run->config;
    const uint64_t samples = tac_dataset_get_info(run->data.train).count;
    const uint64_t each = parts(samples, (uint64_t)run->rank->world);
    const uint64_t batches = parts(each, (uint64_t)c->batch);

    if ((uint64_t)c->batch > each && is_asked(run))
        return too_few_for_batch(run, samples, each);
    return (uint64_t)c->accumulate > batches ? too_few_for_steps(run, batches)
                                             : TAC_OK;
}
