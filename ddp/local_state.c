/* Saving what local modes are made of: docs/checkpoints.md. */
#include "local.h"

static tac_status show_int(const tac_state_visitor *v, const char *name, int *x)
{
    int64_t wide = *x;
    const tac_status s = tac_state_visit(v, name, TAC_I64, 0, NULL, &wide);

    *x = wide != 0;
    return s;
}

static tac_status show(void *replica, const tac_state_visitor *v)
{
    tac_replica *r = replica;
    tac__local *l = r->local;

    TAC_TRY(tac_state_visit_u64(v, "dropped", &r->dropped));
    TAC_TRY(show_int(v, "dropping", &l->dropping));
    TAC_TRY(show_int(v, "clean", &l->clean));
    return tac_state_visit_f64(v, "sync_s", &l->sync_s);
}

tac_status tac__local_walk(void *replica, const tac_state_visitor *v)
{
    tac_replica *r = replica;

    if (!r->local) return TAC_OK;
    TAC_TRY(tac_state_walk(v, "local.", show, r));
    return r->local->lsgd ? tac_localsgd_walk(r->local->lsgd, v) : TAC_OK;
}

tac_status tac__local_land(tac_replica *r)
{
    const tac__local *l = r->local;

    return l && l->lsgd ? tac_localsgd_settle(l->lsgd) : TAC_OK;
}

/* What is under way arrives, and waits for its time. */
tac_status tac__local_settle(tac_replica *r, float **mean)
{
    tac__local *l = r->local;

    *mean = NULL;
    if (!l || !l->lsgd) return TAC_OK;
    TAC_TRY(tac_localsgd_settle(l->lsgd));
    if (l->clean || !l->mean) return TAC_OK;
    TAC_TRY(tac_localsgd_mean(l->lsgd, l->mean));
    *mean = l->mean;
    return TAC_OK;
}
