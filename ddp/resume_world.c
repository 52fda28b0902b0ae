/* Going on with another number of ranks: docs/checkpoints.md.
 *
 * Where gradients are averaged all ranks have the same of everything but what a
 * codec still owes, and samples are counted over all ranks: with the same
 * samples in a step the run goes on with any number of ranks. What a codec
 * owes is a rank's own.
 *
 * In local modes each rank has a state of its own, but right after an average
 * all have the same parameters, anchor and outer state. From there any number
 * may go on: rank r takes the state of the optimizer and scaler that rank r
 * modulo the former number had. */
#include "save.h"

#include <string.h>

#include "tacit/codec.h"
#include "tacit/safetensors.h"

static int is_other(const tac__run *run)
{
    return run->resumed_world != run->rank->world;
}

static tac_status refuse(const tac__run *run, const char *why)
{
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "%s was saved by %d ranks, and there are %d now, but %s: "
                    "start %d ranks, or start anew without --resume",
                    run->resumed_from, run->resumed_world, run->rank->world,
                    why, run->resumed_world);
}

/* What was saved belongs to as many shards as there were ranks. */
static int has_shards(const tac__run *run)
{
    return strcmp(run->config->shards, "iid") != 0;
}

static tac_status codec_has_state(const tac__run *run, int *out)
{
    tac_codec *codec = NULL;

    TAC_TRY(tac_codec_create(run->rank->ctx, run->config->compress, &codec));
    *out = codec && tac_codec_has_state(codec);
    tac_codec_destroy(codec);
    return TAC_OK;
}

tac_status tac__resume_world(const tac__run *run)
{
    int owes = 0;

    if (!is_other(run)) return TAC_OK;
    if (!strcmp(run->config->sync, "none"))
        return refuse(run, "with --sync none each rank has a model of its own");
    if (run->config->worker_size > 1 || run->config->sync_levels)
        return refuse(run, "ranks form groups (--worker-size, --sync-levels)");
    if (has_shards(run))
        return refuse(run, "with these --shards each rank has samples of its "
                           "own");
    TAC_TRY(codec_has_state(run, &owes));
    if (owes)
        return refuse(run, "what --compress still owes is each rank's own");
    return TAC_OK;
}

static int is_zero(const tac_safetensors_item *item)
{
    int64_t value;

    if (item->dtype != TAC_I64 || item->ndim != 0) return 0;
    memcpy(&value, item->data, sizeof value);
    return value == 0;
}

/* Nothing under way: "localsgd.flight0.active". */
static int has_flights(const tac_safetensors *f)
{
    for (size_t i = 0; i < tac_safetensors_count(f); i++) {
        const tac_safetensors_item *item = tac_safetensors_get(f, i);

        if (!strncmp(item->name, "localsgd.flight", 15) &&
            strstr(item->name, ".active") && !is_zero(item))
            return 1;
    }
    return 0;
}

tac_status tac__resume_equal(const tac__run *run, const tac_safetensors *f)
{
    const tac_safetensors_item *clean = tac_safetensors_find(f, "local.clean");

    if (!is_other(run) || !tac_train_config_is_local(run->config))
        return TAC_OK;
    if (clean && !is_zero(clean) && !has_flights(f)) return TAC_OK;
    return refuse(run, "it lies between two averages, where each rank has "
                       "parameters of its own (a checkpoint right after one, "
                       "with --save-every a multiple of --sync-every, can be "
                       "gone on from by any number)");
}

int tac__resume_rank(const tac__run *run)
{
    return run->rank->rank % run->resumed_world;
}

static void add(tac__totals *sum, const tac__totals *t)
{
    sum->bytes_logical += t->bytes_logical;
    sum->bytes_wire += t->bytes_wire;
    sum->bytes_between_hosts += t->bytes_between_hosts;
    sum->bytes_sync_logical += t->bytes_sync_logical;
    sum->bytes_sync_wire += t->bytes_sync_wire;
    sum->cpu_s += t->cpu_s;
}

static tac_status add_rank(const tac__run *run, int rank, tac__totals *sum)
{
    char name[TAC__FILE_NAME];
    tac__totals t = {0};
    tac_safetensors *f = NULL;
    tac_status s;

    tac__saved_name(TAC__FILE_RANK, rank, name);
    TAC_TRY(tac__resume_open(run, name, &f));
    s = tac_safetensors_load(f, tac__saved_walk_totals, &t, TAC_LOAD_PARTIAL);
    tac_safetensors_close(f);
    if (s >= 0) add(sum, &t);
    return s;
}

tac_status tac__resume_totals(tac__run *run, tac__totals *totals)
{
    const int world = run->rank->world;

    if (!is_other(run)) return TAC_OK;
    *totals = (tac__totals){0};
    for (int r = run->rank->rank; r < run->resumed_world; r += world)
        TAC_TRY(add_rank(run, r, totals));
    return TAC_OK;
}
