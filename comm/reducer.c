/* reducer.c: create, destroy, hooks, and questions.
 *
 * Creation prepares everything that can fail on this rank alone, then agrees on
 * the verdict, then compares lists and configurations, and only then takes
 * memory from the communicator. */
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "reducer_impl.h"

/* ---- create ---------------------------------------------------------------
 */

static tac_status alloc_arrays(tac_reducer *r)
{
    const size_t n = r->n;
    r->initial_bytes = calloc(n + 1, sizeof *r->initial_bytes);
    r->bucket_bytes = calloc(n + 1, sizeof *r->bucket_bytes);
    r->order = calloc(n + 1, sizeof *r->order);
    r->last_order = calloc(n + 1, sizeof *r->last_order);
    r->flights = calloc(n + 4, sizeof *r->flights);
    r->was_joined = calloc((size_t)r->world, 1);
    return r->initial_bytes && r->bucket_bytes && r->order && r->last_order &&
                   r->flights && r->was_joined
               ? TAC_OK
               : TAC_ERR_NOMEM;
}

/* What this rank can do and check alone. */
static tac_status prepare(tac_reducer *r, const tac_param_desc *params,
                          size_t n, const tac_reducer_config *config)
{
    TAC_TRY(tac__reducer_copy_params(r, params, n));
    TAC_TRY(tac__reducer_copy_config(r, config));
    TAC_TRY(alloc_arrays(r));
    TAC_TRY(tac__layout_make(r, NULL, &r->layout));
    tac__reducer_note_buckets(r);
    memcpy(r->initial_bytes, r->bucket_bytes, n * sizeof *r->initial_bytes);
    r->initial_buckets = r->layout.n_buckets;
    return TAC_OK;
}

/* What all ranks do together. */
static tac_status connect_ranks(tac_reducer *r)
{
    TAC_TRY(tac__reducer_verify(r));
    TAC_TRY(tac__control_alloc(r));
    if (!r->own_memory) return TAC_OK;
    TAC_TRY(tac__arena_alloc(r, r->layout.bytes, &r->arena, &r->arena_plain));
    tac__layout_bind(r, r->arena);
    return TAC_OK;
}

static tac_status agree(tac_reducer *r, tac_status mine)
{
    char text[512];
    if (mine == TAC_ERR_NOMEM)
        tac_fail_quiet(r->ctx, mine, "reducer: out of memory at create");
    if (r->world == 1) return mine;
    (void)tac_context_error(r->ctx, text, sizeof text);
    return tac__comm_agree(r->comm, mine, mine ? text : NULL);
}

tac_status tac_reducer_create(tac_comm *comm, const tac_param_desc *params,
                              size_t n, const tac_reducer_config *config,
                              tac_reducer **out)
{
    if (!comm || !out) return TAC_ERR_ARG;
    tac_context *ctx = tac_comm_context(comm);
    tac_reducer *r = calloc(1, sizeof *r);
    if (!r) {
        if (tac_comm_size(comm) == 1) return TAC_ERR_NOMEM;
        return tac__comm_agree(comm, TAC_ERR_NOMEM,
                               "reducer: out of memory at create");
    }
    r->comm = comm;
    r->ctx = ctx;
    r->rank = tac_comm_rank(comm);
    r->world = tac_comm_size(comm);
    r->wire_dtype = TAC_WIRE_SAME;
    tac_status s = agree(r, prepare(r, params, n, config));
    if (!s) s = connect_ranks(r);
    if (s) {
        tac_reducer_destroy(r);
        return s;
    }
    *out = r;
    return TAC_OK;
}

/* ---- destroy --------------------------------------------------------------
 */

static void free_params(tac_reducer *r)
{
    for (size_t i = 0; i < r->n && r->params; ++i) {
        free(r->params[i].name);
        free(r->params[i].extents);
        free(r->params[i].saved);
    }
    free(r->params);
}

void tac_reducer_destroy(tac_reducer *r)
{
    if (!r) return;
    if (r->head < r->tail)
        (void)tac__reducer_break(r, TAC_ERR_ABORTED,
                                 "a reducer was destroyed in a step");
    if (!r->status) r->status = tac_comm_error(r->comm, NULL, 0);
    tac__arena_free(r, r->arena, r->arena_plain);
    tac__control_free(r);
    tac__layout_free(&r->layout);
    tac__layouts_free(r);
    free_params(r);
    free(r->limits);
    free(r->initial_bytes);
    free(r->bucket_bytes);
    free(r->order);
    free(r->last_order);
    free(r->flights);
    free(r->was_joined);
    free(r);
}

/* ---- hooks and questions --------------------------------------------------
 */

tac_status tac_reducer_set_hook(tac_reducer *r, tac_reducer_hook_fn *start,
                                tac_reducer_done_fn *done, void *state)
{
    if (!r || !start) return TAC_ERR_ARG;
    if (r->hook || r->codec || r->wire_dtype != TAC_WIRE_SAME || r->begun)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: a hook is set once, instead of a codec or a "
                        "cast, before the first step");
    r->hook = start;
    r->done = done;
    r->hook_state = state;
    return TAC_OK;
}

tac_status tac_reducer_grad_ptr(const tac_reducer *r, size_t i, void **out)
{
    if (!r || !out || i >= r->n) return TAC_ERR_ARG;
    *out = r->params[i].grad;
    return TAC_OK;
}

size_t tac_reducer_buckets(const tac_reducer *r)
{
    return r ? r->layout.n_buckets : 0;
}

tac_status tac_reducer_bucket(const tac_reducer *r, size_t b,
                              tac_bucket_view *out)
{
    if (!r || !out || b >= r->layout.n_buckets) return TAC_ERR_ARG;
    tac__bucket_show(r, b, out);
    return TAC_OK;
}
