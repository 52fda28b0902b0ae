/* tacit/pool.h: one pool of threads a context.
 *
 * The calling thread takes part in the work, so a pool of one runs everything
 * inline and has no threads. Idle workers sleep on a futex: an idle pool uses
 * no CPU. No OpenMP. One parallel region at a time a pool; a call from inside
 * a region, or from another thread during one, runs its parts serially on the
 * calling thread, cut in the same way.
 *
 * Work is cut into `parts` that depend only on `n`, `grain` and the pool's
 * size, so results of reductions by part are the same at every run. */
#ifndef TACIT_POOL_H
#define TACIT_POOL_H

#include <stddef.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

typedef struct tac_pool tac_pool;

/* The context's pool, made on first use; NULL: out of memory or threads. */
TAC_API tac_pool *tac_context_pool(tac_context *ctx);
TAC_API int tac_pool_size(const tac_pool *pool);

/* [begin, end) of 0..n, part `part` of `parts`. */
typedef void tac_pool_fn(void *arg, size_t begin, size_t end, int part);

/* Runs fn over 0..n cut into at most pool-size parts of at least `grain`
 * items, part boundaries multiples of `grain`; returns when all are done.
 * n = 0: fn is not called. NULL pool: serial. Returns the number of parts. */
TAC_API int tac_pool_for(tac_pool *pool, size_t n, size_t grain,
                         tac_pool_fn *fn, void *arg);

TAC_END_DECLS

#endif
