/* One attempt at an optimizer step: its micro-steps, and where they are in the
 * epoch. */
#include "run.h"
#include "local.h"
#include "replica_impl.h"

static int is_last_of_group(const tac__run *run, uint64_t batch)
{
    const uint64_t k = (uint64_t)run->config->accumulate;

    return (batch + 1) % k == 0 ||
           batch + 1 == tac_loader_batches(run->train.loader);
}

/* Batches of the group that begins with this one: the last may be smaller, also
 * where what is left after it is dropped. */
static size_t group_size(const tac__run *run, uint64_t group)
{
    const uint64_t k = (uint64_t)run->config->accumulate;
    const uint64_t left = tac_loader_batches(run->train.loader) - group;

    return (size_t)(left < k ? left : k);
}

/* Of a whole step of `n` a rank: over all ranks, in local modes over those of
 * this worker. */
static double samples_of(const tac__run *run, uint64_t position, size_t n)
{
    const tac_sampler *s = run->train.sampler;
    const size_t size = (size_t)run->config->worker_size;
    const size_t first = (size_t)run->rank->rank / size * size;

    if (!run->replica->local)
        return (double)tac_sampler_step_count(s, position, n);
    return (double)tac_sampler_step_count_of(s, position, n, first,
                                             first + size);
}

/* What the batch is in its group; `batch` counts from the epoch's start. */
static tac_micro place(const tac__run *run, const tac_batch *b)
{
    const size_t n = (size_t)run->config->batch;
    const uint64_t a_step = n * (uint64_t)run->rank->world;
    const uint64_t group =
        b->step - b->step % (uint64_t)run->config->accumulate;
    const tac_micro m = {
        .first = b->step == group,
        .last = is_last_of_group(run, b->step),
        .samples = samples_of(run, group * a_step, n * group_size(run, group)),
        .first_sample = b->count ? b->position[0] : 0};

    return m;
}

/* Does a worker compute this step? Not if it has no samples, or is late. */
static int is_computed(const tac__run *run, const tac_micro *micro)
{
    const tac__local *l = run->replica->local;

    return !l || (micro->samples > 0 && !l->dropping);
}

/* The samples of a step that is dropped are gone. */
static tac_status drop(tac__run *run, const tac_batch *batch,
                       const tac_micro *micro)
{
    run->dropped_samples += (double)batch->valid_count;
    if (!micro->last) return TAC_OK;
    run->replica->attempts++;
    run->replica->dropped++;
    return TAC_OK;
}

/* The micro-steps of one attempt; *done: the epoch is over. */
static tac_status attempt(tac__run *run, tac_micro *micro, int *computed,
                          int *done)
{
    const tac_batch *batch;

    while (!micro->last) {
        TAC_TRY(tac_loader_next(run->train.loader, &batch));
        if (!batch) {
            *done = 1;
            return TAC_OK;
        }
        *micro = place(run, batch);
        *computed = is_computed(run, micro);
        TAC_TRY(*computed ? tac_replica_step(run->replica, batch, micro)
                          : drop(run, batch, micro));
        run->samples += (int64_t)batch->step_count;
    }
    return TAC_OK;
}

/* With --skip-compute: a step without its batches, hence known from its place
 * alone. */
static tac_status attempt_to_send(tac__run *run, tac_micro *micro,
                                  int *computed, int *done)
{
    const uint64_t step = run->step - run->epoch * run->epoch_steps;
    const uint64_t group = step * (uint64_t)run->config->accumulate;
    const size_t batch = (size_t)run->config->batch;
    const uint64_t position = group * batch * (uint64_t)run->rank->world;

    *done = step >= run->epoch_steps;
    if (*done) return TAC_OK;
    const size_t n = batch * group_size(run, group);
    *micro = (tac_micro){
        .first = 1, .last = 1, .samples = samples_of(run, position, n)};
    *computed = is_computed(run, micro);
    run->samples +=
        (int64_t)tac_sampler_step_count(run->train.sampler, position, n);
    if (*computed) return tac__replica_exchange(run->replica);
    run->replica->attempts++;
    run->replica->dropped++;
    return TAC_OK;
}

tac_status tac__run_attempt(tac__run *run, tac_micro *micro, int *computed,
                            int *done)
{
    return (run->config->skip_compute ? attempt_to_send
                                      : attempt)(run, micro, computed, done);
}
