/* model.safetensors: weights that anybody can use. Where ranks are equal, a run
 * also goes on from them. Where each rank has its own they are the ranks' mean:
 * in local modes the averaged model, which evaluation sees, too. The run goes
 * on from each rank's own file. Costs one allreduce of the parameters, unless
 * all are equal at the moment. */
#include "save.h"

#include <stdlib.h>
#include <string.h>

#include "local.h"

/* Where local modes keep a mean for evaluation, `none` has to make room. */
tac_status tac__save_mean_open(tac__saved *saved)
{
    const tac_replica *r = saved->run->replica;
    const size_t *order = tac_params_order(r->params);
    float *to;

    if (strcmp(r->config->sync, "none") != 0) return TAC_OK;
    to = saved->room = malloc(tac_params_elements(r->params) * sizeof *to + 1);
    if (!to)
        return tac_fail(r->ctx, TAC_ERR_NOMEM,
                        "no memory for a copy of the parameters");
    for (size_t k = 0; k < tac_params_count(r->params); k++) {
        const size_t n = tac_params_get(r->params, order[k])->count;

        memcpy(to, tac_params_value(r->params, order[k]), n * sizeof *to);
        to += n;
    }
    return TAC_OK;
}

tac_status tac__save_mean(tac__saved *saved)
{
    const tac__run *run = saved->run;
    tac_req *req = NULL;

    if (!saved->room) return tac__local_settle(run->replica, &saved->mean);
    TAC_TRY(tac_allreduce(run->rank->comm, saved->room, saved->room,
                          tac_params_elements(run->replica->params), TAC_F32,
                          TAC_AVG, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    saved->mean = saved->room;
    return TAC_OK;
}

/* ---- shown in the place of the parameters ---------------------------------
 */

typedef struct stand_in {
    const tac_state_visitor *v;
    const tac_params *params;
    float *mean; /* in the order of the arena, without padding */
    size_t next; /* parameter that is shown, by registration */
} stand_in;

static float *mean_of(const stand_in *x, size_t param)
{
    const size_t *order = tac_params_order(x->params);
    float *at = x->mean;

    for (size_t k = 0; order[k] != param; k++)
        at += tac_params_get(x->params, order[k])->count;
    return at;
}

static tac_status show(void *arg, const tac_state_item *item)
{
    stand_in *x = arg;
    tac_state_item other = *item;

    other.data = mean_of(x, x->next++);
    return x->v->visit(x->v->arg, &other);
}

tac_status tac__save_mean_walk(const tac__saved *saved,
                               const tac_state_visitor *v)
{
    tac_params *params = saved->run->replica->params;
    stand_in x = {v, params, saved->mean, 0};
    const tac_state_visitor in = {show, &x, v->prefix};

    return tac_params_walk(params, &in);
}
