/* Do the files of a checkpoint belong together? Each was whole when it was
 * written; but who copies files from one checkpoint into another, or edits one,
 * would get a run that goes on and is none that there ever was. Each file says
 * of which checkpoint it is, at which attempt it was saved, and of which rank
 * it is; and the counters of a state follow from the number of attempts. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tacit/safetensors.h"

static const char id_key[] = "checkpoint.id", attempts_key[] = "run.attempts",
                  rank_key[] = "run.rank";

/* The time will do. */
tac_status tac__save_id(const tac__run *run, uint64_t *out)
{
    struct timespec now;
    int64_t id;
    tac_req *req = NULL;

    clock_gettime(CLOCK_REALTIME, &now);
    id = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    TAC_TRY(tac_broadcast(run->rank->comm, &id, 1, TAC_I64, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    *out = (uint64_t)id;
    return TAC_OK;
}

static void number_text(uint64_t n, char out[24])
{
    snprintf(out, 24, "%" PRIu64, n);
}

static tac_status write_number(tac_safetensors_writer *w, const char *key,
                               uint64_t n)
{
    char text[24];

    number_text(n, text);
    return tac_safetensors_set_metadata(w, key, text);
}

tac_status tac__save_mark(tac_safetensors_writer *w, uint64_t id,
                          uint64_t attempts, int rank)
{
    TAC_TRY(write_number(w, id_key, id));
    TAC_TRY(write_number(w, attempts_key, attempts));
    return rank < 0 ? TAC_OK : write_number(w, rank_key, (uint64_t)rank);
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
                            const char *name, int rank, uint64_t *id)
{
    const char *said = tac_safetensors_metadata(f, id_key);

    TAC_TRY(compare(run, f, name, attempts_key, run->resumed_attempts));
    if (rank >= 0) TAC_TRY(compare(run, f, name, rank_key, (uint64_t)rank));
    if (*id) return compare(run, f, name, id_key, *id);
    *id = said ? strtoull(said, NULL, 10) : 0;
    return TAC_OK;
}

/* 0: it is not there, or of another type, which is found when it is loaded. */
static int read_counter(const tac_safetensors *f, const char *name,
                        int64_t *out)
{
    const tac_safetensors_item *item = tac_safetensors_find(f, name);

    if (!item || item->dtype != TAC_I64 || item->ndim != 0) return 0;
    memcpy(out, item->data, sizeof *out);
    return 1;
}

typedef struct expected {
    const char *name;
    uint64_t value;
} expected;

static tac_status expect(const tac__run *run, const tac_safetensors *f,
                         const expected *e)
{
    int64_t value;

    if (!read_counter(f, e->name, &value) ||
        (value >= 0 && (uint64_t)value == e->value))
        return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_DATA,
                    "%s is damaged: %s is %" PRId64 ", but after %" PRIu64
                    " attempts it is %" PRIu64 "; take another checkpoint",
                    run->resumed_from, e->name, value, run->resumed_attempts,
                    e->value);
}

static tac_status expect_all(const tac__run *run, const tac_safetensors *f,
                             const expected *e, size_t n)
{
    for (size_t i = 0; i < n; i++) TAC_TRY(expect(run, f, &e[i]));
    return TAC_OK;
}

/* Where the samplers are after that many attempts; a step does not cross the
 * end of an epoch. */
static uint64_t position_after(const tac__run *run, uint64_t in_epoch)
{
    const tac_train_config *c = run->config;
    const uint64_t world = (uint64_t)run->resumed_world;
    const uint64_t n = tac_dataset_get_info(run->data.train).count;
    const uint64_t end = (n + world - 1) / world * world;
    const uint64_t p = in_epoch * (uint64_t)c->global_batch;

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

static tac_status state_counters(const tac__run *run, const tac_safetensors *f)
{
    const uint64_t attempts = run->resumed_attempts;
    const uint64_t epoch = attempts > 0 ? (attempts - 1) / run->epoch_steps : 0;
    const uint64_t position =
        position_after(run, attempts - epoch * run->epoch_steps);
    const expected all[] = {
        {"run.step", attempts},
        {"run.attempts", attempts},
        {"run.epoch", epoch},
        {"sampler.seed", run->config->seed},
        {"sampler.epoch", epoch},
        {"sampler.position", position},
        {"run.samples", samples_after(run, epoch, position)},
    };
    /* Late workers drop samples, which are not counted then. */
    const size_t n =
        sizeof all / sizeof *all - !strncmp(run->config->late, "drop", 4);

    return expect_all(run, f, all, n);
}

/* Attempts that were not applied. */
typedef struct lost {
    uint64_t skipped, dropped;
} lost;

/* By this rank's own word: where ranks skip and drop alone, each knows only its
 * own. What can't be is no word. */
static lost said_to_be_lost(const tac__run *run, const tac_safetensors *f)
{
    int64_t skipped = 0, dropped = 0;

    read_counter(f, "scaler.skipped", &skipped);
    read_counter(f, "local.dropped", &dropped);
    if (skipped < 0 || dropped < 0 || INT64_MAX - skipped < dropped ||
        (uint64_t)(skipped + dropped) > run->resumed_attempts)
        return (lost){0, 0};
    return (lost){(uint64_t)skipped, (uint64_t)dropped};
}

static tac_status update_counters(const tac__run *run, const tac_safetensors *f)
{
    const uint64_t attempts = run->resumed_attempts;
    lost l = said_to_be_lost(run, f);

    /* Of rank 0, or of all, the checkpoint says it, too. */
    if (!tac__saved_is_apart(run) || run->rank->rank == 0)
        l.skipped = attempts - run->resumed_applied - l.dropped;
    const expected all[] = {
        {"scaler.skipped", l.skipped},
        {"local.dropped", l.dropped},
        {"optimizer.applied", attempts - l.skipped - l.dropped},
        {"localsgd.attempts", attempts},
        {"localsgd.skipped", l.skipped + l.dropped},
    };

    return expect_all(run, f, all, sizeof all / sizeof *all);
}

tac_status tac__resume_counters(const tac__run *run, const tac_safetensors *f,
                                tac__file file)
{
    if (file == TAC__FILE_STATE) TAC_TRY(state_counters(run, f));
    return update_counters(run, f);
}
