/* comm_arena.c: memory that one side rotates through.
 *
 * A rank's share of --rotate-mib is cut into sets of buffers, one after the
 * other, so that an operation meets memory that it has not seen for the time of
 * a whole round. All pages are touched before anything is timed. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "comm_bench.h"
#include "tacit/half.h"

/* Between buffers: so that neighbours share no line, and source and
 * destination do not lie at the same place of a page. */
enum { ALIGN = 64, GAP = 320, MOST_PASSES = 6 };

static size_t up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Elements of source and destination; the larger contains the other in
 * place. */
static void extents(const tac__case *k, size_t *src, size_t *dst)
{
    const int scatters = k->coll == TAC_COLL_REDUCE_SCATTER;
    const int gathers = k->coll == TAC_COLL_ALLGATHER;
    *src = gathers ? k->part : k->count;
    *dst = scatters ? k->part : k->count;
}

size_t tac__arena_set_bytes(const tac__case *k, int size)
{
    const size_t esize = tac_dtype_size(k->dtype);
    size_t src, dst;
    (void)size;
    extents(k, &src, &dst);
    if (k->in_place || k->coll == TAC_COLL_BROADCAST)
        return up((src > dst ? src : dst) * esize) + GAP;
    return up(src * esize) + up(dst * esize) + 2 * GAP;
}

/* Where the data is, from now on, for the kernel too: every page once. */
static void touch(char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
}

tac_status tac__arena_open(tac__comm_bench *b, tac__arena *a, size_t bytes,
                           int symmetric)
{
    tac_status s = TAC_OK;
    void *p = NULL;
    a->bytes = up(bytes) + ALIGN;
    if (symmetric) {
        TAC_TRY(tac_mem_alloc(b->comm, a->bytes, &p));
        a->comm = b->comm;
    } else {
        p = malloc(a->bytes);
        if (!p)
            s = tac_fail(b->ctx, TAC_ERR_NOMEM,
                         "no memory for %zu MiB of buffers on rank %d; lower "
                         "--max or --rotate-mib",
                         a->bytes >> 20, b->group.rank);
        TAC_TRY(tac__bench_agree(b, s));
    }
    a->base = p;
    touch(p, a->bytes);
    return TAC_OK;
}

void tac__arena_close(tac__arena *a)
{
    if (a->comm)
        tac_mem_free(a->comm, a->base);
    else
        free(a->base);
    *a = (tac__arena){0};
}

/* ---- contents --------------------------------------------------------------
 */

enum { PATTERN = 1 << 16 }; /* bytes; values repeat after that */

static void pattern(char *out, tac_dtype dtype, int rank)
{
    uint32_t x = 2463534242u + (uint32_t)rank * 7919u;
    const size_t n = PATTERN / tac_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        const float f = ((float)(x >> 8) - 8388608.0f) * 0x1p-26f;
        switch (dtype) {
        case TAC_F32: ((float *)(void *)out)[i] = f; break;
        case TAC_F64: ((double *)(void *)out)[i] = f; break;
        case TAC_F16: ((uint16_t *)(void *)out)[i] = tac_f32_to_f16(f); break;
        case TAC_BF16: ((uint16_t *)(void *)out)[i] = tac_f32_to_bf16(f); break;
        case TAC_I32: ((int32_t *)(void *)out)[i] = (int32_t)(x >> 20); break;
        case TAC_I64: ((int64_t *)(void *)out)[i] = (int64_t)(x >> 20); break;
        default: out[i] = (char)(x >> 28); break;
        }
    }
}

void tac__arena_fill(tac__arena *a, tac_dtype dtype, int rank)
{
    char *values = a->bytes > PATTERN ? malloc(PATTERN) : NULL;
    a->passes = 0;
    if (!values) {
        if (a->bytes) memset(a->base, 0x3c, a->bytes); /* ordinary, too */
        return;
    }
    pattern(values, dtype, rank);
    for (size_t at = 0; at < a->bytes; at += PATTERN)
        memcpy(a->base + at, values,
               a->bytes - at < PATTERN ? a->bytes - at : PATTERN);
    free(values);
}

/* ---- sets ------------------------------------------------------------------
 */

tac__set tac__arena_next(tac__arena *a, const tac__case *k, int rank, int size)
{
    const size_t esize = tac_dtype_size(k->dtype);
    const size_t stride = tac__arena_set_bytes(k, size);
    const size_t sets = a->bytes / stride ? a->bytes / stride : 1;
    const size_t block = (size_t)rank * k->part * esize;
    size_t src, dst;
    if (a->next >= sets) {
        a->next = 0;
        /* Sums in place grow with each pass. */
        if (++a->passes >= MOST_PASSES) tac__arena_fill(a, k->dtype, rank);
    }
    char *at = a->base + a->next++ * stride;
    extents(k, &src, &dst);
    tac__set s = {at, at, src * esize, dst * esize};
    if (k->coll == TAC_COLL_BROADCAST) return s;
    if (!k->in_place)
        s.dst = at + up(s.src_bytes) + GAP;
    else if (k->coll == TAC_COLL_REDUCE_SCATTER)
        s.dst = at + block;
    else if (k->coll == TAC_COLL_ALLGATHER)
        s.src = at + block;
    return s;
}
