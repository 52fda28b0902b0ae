/* Going on with another number of ranks: docs/checkpoints.md.
 *
 * Where gradients are averaged all ranks have the same of everything but what a
 * codec still owes, and samples are counted over all ranks: with the same
 * samples in a step the run goes on with any number of ranks. What a codec
 * owes is a rank's own, and so is everything in the other modes. */
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
    if (tac__saved_is_apart(run))
        return refuse(run, "with this --sync each rank has a state of its own");
    if (has_shards(run))
        return refuse(run, "with these --shards each rank has samples of its "
                           "own");
    TAC_TRY(codec_has_state(run, &owes));
    if (owes)
        return refuse(run, "what --compress still owes is each rank's own");
    return TAC_OK;
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
