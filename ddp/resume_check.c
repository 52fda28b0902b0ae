/* Do the files of a checkpoint belong together? Each was whole when it was
 * written; but who copies files from one checkpoint into another, or edits one,
 * would get a run that goes on and is none that there ever was. Each file says
 * at which attempt it was saved, and of which rank it is; and the counters of a
 * state follow from the number of attempts. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tacit/safetensors.h"

static const char attempts_key[] = "run.attempts", rank_key[] = "run.rank";

static void number_text(uint64_t n, char out[24])
{
    snprintf(out, 24, "%" PRIu64, n);
}

tac_status tac__save_mark(tac_safetensors_writer *w, uint64_t attempts,
                          int rank)
{
    char text[24];

    number_text(attempts, text);
    TAC_TRY(tac_safetensors_set_metadata(w, attempts_key, text));
    if (rank < 0) return TAC_OK;
    number_text((uint64_t)rank, text);
    return tac_safetensors_set_metadata(w, rank_key, text);
}

/* A file that does not say it was made by another program, on purpose. */
static tac_status compare(const tac__run *run, const tac_safetensors *f,
                          const char *name, const char *key, uint64_t want)
{
    const char *said = tac_safetensors_metadata(f, key);
    char text[24];

    number_text(want, text);
    if (!said || !strcmp(said, text)) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_DATA,
                    "%s/%s has %s %.40s instead of %s: it belongs to another "
                    "place; put the right file there, or take another "
                    "checkpoint",
                    run->resumed_from, name, key, said, text);
}

tac_status tac__resume_mark(const tac__run *run, const tac_safetensors *f,
                            const char *name, int rank)
{
    TAC_TRY(compare(run, f, name, attempts_key, run->resumed_attempts));
    return rank < 0 ? TAC_OK : compare(run, f, name, rank_key, (uint64_t)rank);
}

/* One that is not there, or of another type, is found when it is loaded. */
static tac_status expect(const tac__run *run, const tac_safetensors *f,
                         const char *name, uint64_t want)
{
    const tac_safetensors_item *item = tac_safetensors_find(f, name);
    int64_t value;

    if (!item || item->dtype != TAC_I64 || item->ndim != 0) return TAC_OK;
    memcpy(&value, item->data, sizeof value);
    if (value >= 0 && (uint64_t)value == want) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_DATA,
                    "%s is damaged: %s is %" PRId64 ", but after %" PRIu64
                    " attempts it is %" PRIu64 "; take another checkpoint",
                    run->resumed_from, name, value, run->resumed_attempts,
                    want);
}

/* Where the samplers are after that many attempts; a step does not cross the
 * end of an epoch. */
static uint64_t position_after(const tac__run *run, uint64_t in_epoch)
{
    const tac_train_config *c = run->config;
    const uint64_t world = (uint64_t)run->rank->world;
    const uint64_t end = tac_sampler_length(run->train.sampler) * world;
    const uint64_t p =
        in_epoch * (uint64_t)c->batch * (uint64_t)c->accumulate * world;

    return p < end ? p : end;
}

/* The last position may be filled up for all ranks; samples are counted once.
 */
static uint64_t samples_after(const tac__run *run, uint64_t epoch,
                              uint64_t position)
{
    const uint64_t n = tac_dataset_get_info(run->data.train).count;

    return epoch * n + (position < n ? position : n);
}

tac_status tac__resume_counters(const tac__run *run, const tac_safetensors *f)
{
    const uint64_t attempts = run->resumed_attempts;
    const uint64_t applied = run->resumed_applied;
    const uint64_t epoch = attempts > 0 ? (attempts - 1) / run->epoch_steps : 0;
    const uint64_t position =
        position_after(run, attempts - epoch * run->epoch_steps);
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {
        {"run.step", attempts},
        {"run.attempts", attempts},
        {"run.epoch", epoch},
        {"optimizer.applied", applied},
        {"scaler.skipped", attempts - applied},
        {"sampler.seed", run->config->seed},
        {"sampler.epoch", epoch},
        {"sampler.position", position},
        {"run.samples", samples_after(run, epoch, position)},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TAC_TRY(expect(run, f, all[i].name, all[i].value));
    return TAC_OK;
}
