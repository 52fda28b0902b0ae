/* reducer_memory.c: the arena of gradients and the memory of control messages.
 *
 * Both come from the communicator, so that peers on the same host read them in
 * place, and so that a failed communicator, which may still use them, also
 * frees them. If it has no memory for the arena (a small /dev/shm), all ranks
 * take ordinary memory instead, with one warning. */
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "reducer_impl.h"

static tac_status plain_alloc(tac_reducer *r, size_t bytes, void **out)
{
    const size_t size = bytes ? (bytes + TAC__ARENA_ALIGN - 1) /
                                    TAC__ARENA_ALIGN * TAC__ARENA_ALIGN
                              : TAC__ARENA_ALIGN;
    void *p = size < bytes ? NULL : aligned_alloc(TAC__ARENA_ALIGN, size);
    if (!p)
        return tac_fail(r->ctx, TAC_ERR_NOMEM,
                        "reducer: no memory for %zu bytes of gradients", bytes);
    memset(p, 0, size);
    *out = p;
    return TAC_OK;
}

tac_status tac__arena_alloc(tac_reducer *r, size_t bytes, void **out,
                            int *plain)
{
    *plain = r->world == 1;
    if (r->world == 1) return plain_alloc(r, bytes, out);
    const tac_status s = tac_mem_alloc(r->comm, bytes, out);
    if (s != TAC_ERR_NOMEM && s != TAC_ERR_UNSUPPORTED) return s;
    if (!r->rank)
        tac_log(r->ctx, TAC_LOG_WARN,
                "reducer: %zu bytes of gradients lie in ordinary memory, which "
                "costs copies: shared memory is too small (see /dev/shm)",
                bytes);
    *plain = 1;
    void *p = NULL;
    const tac_status agreed =
        tac__comm_agree(r->comm, plain_alloc(r, bytes, &p), NULL);
    if (agreed) free(p);
    if (!agreed) *out = p;
    return agreed;
}

/* After a failure the communicator may still use its memory and frees it in
 * tac_comm_destroy; ordinary memory must then be given up for lost. */
void tac__arena_free(tac_reducer *r, void *arena, int plain)
{
    const int in_use = r->world > 1 && r->status;
    if (in_use || !arena) return;
    if (plain)
        free(arena);
    else
        tac_mem_free(r->comm, arena);
}

static size_t reserve(size_t *at, size_t bytes)
{
    const size_t here = *at;
    *at =
        (here + bytes + TAC__ARENA_ALIGN - 1) & ~(size_t)(TAC__ARENA_ALIGN - 1);
    return here;
}

tac_status tac__control_alloc(tac_reducer *r)
{
    const size_t world = (size_t)r->world, n = r->n;
    tac__control *c = &r->control;
    size_t bytes = 0;
    const size_t verdicts = reserve(&bytes, world * sizeof *c->verdicts);
    const size_t used = reserve(&bytes, n * sizeof *c->used);
    const size_t joined = reserve(&bytes, world * sizeof *c->joined);
    const size_t order = reserve(&bytes, (2 * n + 1) * sizeof *c->order);

    TAC_TRY(r->world == 1 ? plain_alloc(r, bytes, &c->block)
                          : tac_mem_alloc(r->comm, bytes, &c->block));
    char *block = c->block;
    c->verdicts = (tac__verdict *)(void *)(block + verdicts);
    c->used = (int32_t *)(void *)(block + used);
    c->joined = (tac__joined *)(void *)(block + joined);
    c->order = (int64_t *)(void *)(block + order);
    return TAC_OK;
}

void tac__control_free(tac_reducer *r)
{
    if (!r->control.block) return;
    if (r->world == 1)
        free(r->control.block);
    else if (!r->status)
        tac_mem_free(r->comm, r->control.block);
    r->control.block = NULL;
}
