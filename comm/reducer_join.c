/* reducer_join.c: ranks that run out of data before the others.
 *
 * With config.join each step with sync begins with an all-gather of 16 bytes a
 * rank: has it joined, and which loss scale do its gradients carry? A rank with
 * data need not look at the answer before the end of its step; a rank without
 * waits for it, and either all have joined or it takes part in the step with
 * zeros. Cost: one small exchange a step. */
#include <string.h>

#include "reducer_impl.h"

tac_status tac__join_post(tac_reducer *r)
{
    tac_req *req;
    r->control.joined[r->rank] = (tac__joined){r->grad_scale, r->joined};
    if (r->world == 1) {
        tac__join_read(r);
        return TAC_OK;
    }
    const tac_status s = tac_allgather(r->comm, NULL, r->control.joined,
                                       sizeof(tac__joined), TAC_U8, NULL, &req);
    if (s < 0) return tac__reducer_break(r, s, "a join could not start");
    tac__flight_push(r, TAC__KIND_JOIN, 0, req);
    return TAC_OK;
}

void tac__join_read(tac_reducer *r)
{
    int count = 0;
    for (int q = 0; q < r->world; ++q) {
        const int joined = r->control.joined[q].joined != 0;
        if (!joined && r->joined)
            r->grad_scale = r->control.joined[q].grad_scale;
        if (joined && !r->was_joined[q]) r->last_joined = q;
        r->was_joined[q] = (unsigned char)joined;
        count += joined;
    }
    r->all_joined = count == r->world;
}

/* All ranks have run out of data: a new epoch may begin. */
static void leave(tac_reducer *r)
{
    memset(r->was_joined, 0, (size_t)r->world);
    r->in_step = r->joined = r->all_joined = 0;
}

static tac_status shadow(tac_reducer *r, int timeout_ms)
{
    for (size_t i = 0; i < r->n; ++i) TAC_TRY(tac__step_unused(r, i));
    return tac__step_finish(r, timeout_ms);
}

static tac_status join(tac_reducer *r, int timeout_ms, int *more)
{
    r->joined = 1;
    TAC_TRY(tac__step_begin(r, 1, 1.0));
    TAC_TRY(tac__flight_wait_all(r, timeout_ms));
    r->head = r->tail = 0;
    if (r->all_joined) {
        leave(r);
        *more = 0;
        return TAC_OK;
    }
    TAC_TRY(shadow(r, timeout_ms));
    *more = 1;
    return TAC_OK;
}

tac_status tac_reducer_join(tac_reducer *r, int timeout_ms, int *more,
                            int *last_rank)
{
    if (!r || !more) return TAC_ERR_ARG;
    if (r->status) return r->status;
    if (r->in_step || !r->config.join)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        r->in_step ? "reducer: join in the middle of a step; "
                                     "call tac_reducer_finish first"
                                   : "reducer: join without config.join, which "
                                     "must be set at create on all ranks");
    tac__watch_enter(r);
    const tac_status s = join(r, timeout_ms, more);
    tac__watch_leave(r);
    if (s) return s;
    if (!*more && last_rank) *last_rank = r->last_joined;
    return TAC_OK;
}
