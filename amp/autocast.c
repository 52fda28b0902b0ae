/* Regions of autocast: what the tape is told, and how regions nest.
 *
 * The tape knows one region; a region remembers the one around it and puts it
 * back. A region that is not enabled is one whose every operation has the rule
 * f32: what 16-bit tensors come in are cast up, f32 ones pass as they are. */
#include <string.h>

#include "master_impl.h"
#include "tacit/autocast.h"

static tac_cast_rule all_f32(const char *op)
{
    (void)op;
    return TAC_CAST_F32;
}

static tac_status check_master(tac_context *ctx, const tac_tape *tape,
                               tac_dtype low, const tac_master *m)
{
    if (m == NULL) return TAC_OK;
    if (m->low != low)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "autocast: the region computes in %s but the working "
                        "weights are %s; make them of the same type",
                        tac_dtype_name(low), tac_dtype_name(m->low));
    if (m->params != tac_tape_params(tape))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "autocast: the working weights belong to other "
                        "parameters than the tape");
    return TAC_OK;
}

static tac_status check(const tac_tape *tape, tac_dtype low,
                        const tac_autocast_config *c)
{
    tac_context *ctx = tac_device_context(tac_tape_device(tape));

    if (c->struct_size != sizeof *c)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "autocast: start from TAC_AUTOCAST_CONFIG_INIT");
    if (low != TAC_F16 && low != TAC_BF16 && low != TAC_F32)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "autocast: a region computes in f16, bf16 or f32, not "
                        "in %s",
                        tac_dtype_name(low));
    if (low == TAC_F32 || !c->enabled) return TAC_OK;
    return check_master(ctx, tape, low, c->master);
}

static tac_tape_autocast region_of(tac_dtype low, const tac_autocast_config *c)
{
    tac_tape_autocast a = {.struct_size = sizeof a};

    if (low == TAC_F32 || !c->enabled) {
        a.low = low == TAC_F32 ? TAC_BF16 : low; /* not used by any rule */
        a.rule = all_f32;
        a.cache = 1;
        return a;
    }
    a.low = low;
    a.rule = tac_autocast_rule;
    a.cache = c->cache;
    a.weights = c->master != NULL ? tac_master_weights(c->master) : NULL;
    return a;
}

tac_status tac_autocast_begin(tac_tape *tape, tac_dtype low,
                              const tac_autocast_config *config,
                              tac_autocast *region)
{
    static const tac_autocast_config defaults = TAC_AUTOCAST_CONFIG_INIT;
    const tac_autocast_config *c = config != NULL ? config : &defaults;
    tac_autocast r;

    memset(&r, 0, sizeof r);
    TAC_TRY(check(tape, low, c));
    r.tape = tape;
    r.inner = region_of(low, c);
    const tac_tape_autocast *outer = tac_tape_get_autocast(tape);
    r.nested = outer != NULL;
    if (outer != NULL) r.outer = *outer;
    TAC_TRY(tac_tape_set_autocast(tape, &r.inner));
    *region = r;
    return TAC_OK;
}

static int same(const tac_tape_autocast *a, const tac_tape_autocast *b)
{
    return a->low == b->low && a->rule == b->rule && a->cache == b->cache &&
           a->weights == b->weights;
}

tac_status tac_autocast_end(tac_autocast *region)
{
    if (region == NULL || region->tape == NULL)
        return tac_fail(NULL, TAC_ERR_STATE,
                        "autocast: the region is not open; call "
                        "tac_autocast_begin first");
    const tac_tape_autocast *on = tac_tape_get_autocast(region->tape);
    if (on == NULL || !same(on, &region->inner))
        return tac_fail(tac_device_context(tac_tape_device(region->tape)),
                        TAC_ERR_STATE,
                        "autocast: another region is on than the one to end; "
                        "end the inner region first");
    TAC_TRY(tac_tape_set_autocast(region->tape,
                                  region->nested ? &region->outer : NULL));
    region->tape = NULL;
    return TAC_OK;
}
