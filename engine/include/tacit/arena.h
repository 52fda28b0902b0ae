/* tacit/arena.h: a bump arena over a caller's allocator.
 *
 * Allocation is an addition; freeing is going back to a mark or to the start.
 * A request that does not fit is met by an overflow chunk, and the next reset
 * replaces all chunks by one that is large enough for everything seen so far.
 * So an arena that does the same work after each reset allocates nothing after
 * the second. A dry arena counts what would be used and has no memory.
 *
 * Thread-safety: one thread at a time an arena. */
#ifndef TACIT_ARENA_H
#define TACIT_ARENA_H

#include <stddef.h>

#include "tacit/context.h"
#include "tacit/device.h"

TAC_BEGIN_DECLS

#define TAC_ARENA_ALIGN 64 /* bytes; every pointer and size is a multiple */

typedef struct tac_arena tac_arena;

/* A place in the arena to go back to. Plain value; valid until the arena goes
 * back to an earlier place. */
typedef struct tac_arena_mark {
    size_t chunk, used, total;
} tac_arena_mark;

/* `alloc` is copied; what it points to must outlive the arena. Nothing is
 * allocated before the first use or tac_arena_reserve. Errors: NOMEM. */
TAC_API tac_status tac_arena_create(tac_context *ctx,
                                    const tac_allocator *alloc,
                                    tac_arena **out);
TAC_API void tac_arena_destroy(tac_arena *a); /* NULL is legal */

/* 64-byte aligned, not cleared; `bytes` is rounded up to a multiple of 64.
 * 0 bytes give a valid pointer to nothing. Dry: *out is NULL.
 * Errors: NOMEM (also for sizes that overflow). */
TAC_API tac_status tac_arena_alloc(tac_arena *a, size_t bytes, void **out);

TAC_API tac_arena_mark tac_arena_get_mark(const tac_arena *a);
/* Frees all that was allocated since the mark. Memory is kept for reuse. */
TAC_API void tac_arena_release(tac_arena *a, tac_arena_mark mark);

/* Frees everything, merges overflow chunks into one of at least the high-water
 * mark, and leaves dry mode or enters it. Errors: NOMEM. */
TAC_API tac_status tac_arena_reset(tac_arena *a, int dry);
/* Makes the next reset provide at least `bytes` in one piece. */
TAC_API void tac_arena_reserve(tac_arena *a, size_t bytes);

/* Bytes in use now; most ever in use, dry runs included; bytes held. */
TAC_API size_t tac_arena_used(const tac_arena *a);
TAC_API size_t tac_arena_high_water(const tac_arena *a);
TAC_API size_t tac_arena_capacity(const tac_arena *a);

/* malloc and free as an allocator table, for host-side arenas. */
TAC_API tac_allocator tac_host_allocator(void);

TAC_END_DECLS

#endif
