/* reducer_verdict.c: what all ranks must know at the end of a step.
 *
 * Behind the last bucket each rank adds one record to an all-gather: how many
 * gradients are missing and which, and where it saw a NaN. So a rank that
 * forgot a gradient need not leave the others waiting: it submits all buckets
 * all the same, and every rank learns from the records that the step failed,
 * and why. Cost: 80 bytes a rank, hidden behind the last bucket. With
 * find_unused a map of 4 bytes a parameter goes before it. */
#include <stdio.h>
#include <string.h>

#include "reducer_impl.h"

void tac__verdict_clear(tac_reducer *r)
{
    tac__verdict *mine = &r->control.verdicts[r->rank];
    memset(mine, 0, sizeof *mine);
    mine->nan_param = mine->nan_index = mine->nan_bucket = -1;
}

void tac__verdict_missing(tac_reducer *r)
{
    tac__verdict *mine = &r->control.verdicts[r->rank];
    for (size_t i = 0; i < r->n; ++i) {
        if (r->params[i].mark != TAC__ABSENT) continue;
        if (mine->missing < TAC__MISSING_SHOWN)
            mine->first[mine->missing] = (int64_t)i;
        ++mine->missing;
    }
}

/* ---- used maps ------------------------------------------------------------
 */

void tac__used_fill(tac_reducer *r)
{
    for (size_t i = 0; i < r->n; ++i)
        r->control.used[i] = r->params[i].produced != 0;
}

int tac__used_anywhere(const tac_reducer *r, size_t i)
{
    return r->control.used[i] != 0;
}

/* ---- all ranks ------------------------------------------------------------
 */

static tac_status post_used(tac_reducer *r)
{
    tac_req *req;
    tac__used_fill(r);
    if (r->world == 1) return TAC_OK;
    const tac_status s = tac_allreduce(r->comm, NULL, r->control.used, r->n,
                                       TAC_I32, TAC_MAX, NULL, &req);
    if (s < 0) return tac__reducer_break(r, s, "a used map could not start");
    tac__flight_push(r, TAC__KIND_USED, 0, req);
    return TAC_OK;
}

tac_status tac__verdict_post(tac_reducer *r)
{
    tac_req *req;
    r->tail_posted = 1;
    if (r->config.find_unused) TAC_TRY(post_used(r));
    if (r->world == 1) return TAC_OK;
    const tac_status s =
        tac_allgather(r->comm, NULL, r->control.verdicts, sizeof(tac__verdict),
                      TAC_U8, NULL, &req);
    if (s < 0) return tac__reducer_break(r, s, "a verdict could not start");
    tac__flight_push(r, TAC__KIND_VERDICT, 0, req);
    return TAC_OK;
}

/* ---- what it says ---------------------------------------------------------
 */

static void append_names(const tac_reducer *r, const tac__verdict *v,
                         char *text, size_t bytes)
{
    size_t at = 0;
    for (int k = 0; k < TAC__MISSING_SHOWN && k < v->missing; ++k) {
        const int w = snprintf(text + at, bytes - at, "%s'%.80s'",
                               k ? ", " : "", r->params[v->first[k]].name);
        at += (size_t)w;
    }
    if (v->missing > TAC__MISSING_SHOWN)
        snprintf(text + at, bytes - at, " and %lld more",
                 (long long)(v->missing - TAC__MISSING_SHOWN));
}

static tac_status say(tac_reducer *r, tac_status s, const char *text)
{
    return r->rank ? tac_fail_quiet(r->ctx, s, "%s", text)
                   : tac_fail(r->ctx, s, "%s", text);
}

static tac_status say_missing(tac_reducer *r, int q)
{
    const tac__verdict *v = &r->control.verdicts[q];
    char names[768], text[1200];
    append_names(r, v, names, sizeof names);
    snprintf(text, sizeof text,
             "reducer: rank %d produced no gradient for %lld of %zu "
             "parameters: %s; on every rank and in every step each needs "
             "tac_reducer_ready or tac_reducer_unused",
             q, (long long)v->missing, r->n, names);
    return say(r, TAC_ERR_INCOMPLETE, text);
}

static tac_status say_nan(tac_reducer *r, int q)
{
    const tac__verdict *v = &r->control.verdicts[q];
    char text[512];
    snprintf(text, sizeof text,
             "reducer: rank %d: the gradient of '%.200s' is NaN at index %lld "
             "(bucket %lld)",
             q, r->params[v->nan_param].name, (long long)v->nan_index,
             (long long)v->nan_bucket);
    return say(r, TAC_ERR_DIVERGED, text);
}

tac_status tac__verdict_read(tac_reducer *r)
{
    for (int q = 0; q < r->world; ++q)
        if (r->control.verdicts[q].missing) return say_missing(r, q);
    for (int q = 0; q < r->world; ++q)
        if (r->control.verdicts[q].nan_param >= 0) return say_nan(r, q);
    return TAC_OK;
}
