/* Bytes that replicas will exchange, all ranks, from the configuration alone:
 * buckets and codec, or the one description of local modes. */
#include "run.h"
#include "local.h"

#include <string.h>

#include "replica_impl.h"

/* The clock is asked attempt by attempt. */
enum { MOST_ATTEMPTS = 100000000 };

/* Of attempt n, from 1. */
static double rate(void *replica, int64_t n)
{
    return tac__replica_rate(replica, (uint64_t)n);
}

static int depends_on_run(const tac_localsgd_config *c)
{
    return c->schedule.kind == TAC_SYNC_ADACOMM ||
           c->schedule.kind == TAC_SYNC_BUDGET;
}

static tac_status predict_local(const tac__run *run, uint64_t attempts,
                                tac__prediction *out)
{
    tac__local *l = run->replica->local;
    tac_localsgd_prediction p;

    if (!l->lsgd || depends_on_run(&l->config) || attempts > MOST_ATTEMPTS)
        return TAC_OK;
    const tac_localsgd_model m = tac_localsgd_model_of(l->lsgd);
    TAC_TRY(tac_localsgd_predict(run->rank->ctx, &l->config, &m, l->workers,
                                 (int64_t)attempts, rate, run->replica, &p));
    out->known = 1;
    out->syncs = (uint64_t)p.syncs;
    out->wire = p.bytes_wire * (uint64_t)l->workers;
    return TAC_OK;
}

tac_status tac__run_predict(const tac__run *run, uint64_t attempts,
                            tac__prediction *out)
{
    const tac_replica *r = run->replica;
    uint64_t logical;

    *out = (tac__prediction){0};
    if (run->regrouped) return TAC_OK;
    if (r->local) return predict_local(run, attempts, out);
    out->known = 1;
    if (!r->reducer) return TAC_OK;
    out->syncs = attempts;
    tac_reducer_predict(r->reducer, attempts, &logical, &out->wire);
    out->wire *= (uint64_t)run->rank->world;
    return TAC_OK;
}
