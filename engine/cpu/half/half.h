/* half.h: tables for f16 and bf16 over the f32 table. Private to cpu/.
 *
 * A 16-bit value is widened to f32, which is exact, the f32 kernel computes,
 * and the result is rounded once. So a 16-bit table has the semantics of the
 * f32 table below it (NaN, ties, random numbers, order of sums), half its
 * memory, and almost its speed: what is widened is a piece that stays in a
 * cache between the conversions and the kernel. One source (half_table.inc) is
 * compiled for each type.
 *
 * Threads. Each part of the pool converts and computes its own pieces, calling
 * f32 kernels serially, so that a piece is never handed from core to core. F32
 * kernels that keep state (oneDNN) have a state of their own for each part.
 *
 * Scratch. Pieces of fixed size are on the stack. Larger ones come from one
 * space for a call and one for each part of the pool; they only ever grow, so
 * nothing is allocated after the first call with a shape. */
#ifndef TAC_CPU_HALF_H
#define TAC_CPU_HALF_H

#include "tacit/kernels.h"

typedef struct tac__half_space {
    float *p;
    size_t floats;
} tac__half_space;

typedef struct tac__half_part {
    tac__half_space space;
    tac_cpu_cache cache; /* of f32 kernels that this part calls */
} tac__half_part;

/* In its slot of kc->cache. One kernel runs at a time, so all share it. */
typedef struct tac__half {
    tac_context *ctx;
    tac_kernels base; /* the f32 table */
    tac__half_space whole;
    tac__half_part *parts;
    size_t part_count;
} tac__half;

static inline tac__half *tac__half_of(const tac_kctx *kc)
{
    const tac_cpu_cache *cache = kc->cache;
    return cache->slots[TAC_CPU_SLOT_HALF];
}

/* Errors: NOMEM. */
tac_status tac__half_create(tac_context *ctx, const tac_kernels *base,
                            void **out);
void tac__half_destroy(void *state); /* NULL is legal */
/* Bytes of scratch that it holds; NULL: 0. */
size_t tac__half_bytes(const void *state);

/* At least `floats` of scratch for the call; NULL after a failure, which has
 * been told. Valid until the next call of this function. */
float *tac__half_scratch(const tac_kctx *kc, size_t floats);
/* Makes the spaces of as many parts as kc->pool has at least `floats` large,
 * and the caches that the parts need. Errors: NOMEM, those of a cache. */
tac_status tac__half_reserve(const tac_kctx *kc, size_t floats);

/* After tac__half_reserve: a part's space, and the context of f32 kernels that
 * are called within the part. */
static inline float *tac__half_space_of(const tac_kctx *kc, int part)
{
    return tac__half_of(kc)->parts[part].space.p;
}

static inline tac_kctx tac__half_part_kctx(const tac_kctx *kc, int part)
{
    return (tac_kctx){.ctx = kc->ctx,
                      .queue = kc->queue,
                      .cache = &tac__half_of(kc)->parts[part].cache};
}

/* Fills every entry of a table whose dtype is f16 or bf16 except those for a
 * step's scalars. They need a tac_cpu_cache with the state above. */
void tac__half_apply(tac_kernels *table);
void tac__half_apply_f16(tac_kernels *table);
void tac__half_apply_bf16(tac_kernels *table);

/* Rounded up to whole cache lines of floats. */
static inline size_t tac__half_line(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

#endif
