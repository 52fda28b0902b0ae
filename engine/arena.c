/* The bump arena: a short list of chunks, of which all but the last are full.
 * After a reset there is one chunk. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/arena.h"

enum {
    MAX_CHUNKS = 48,       /* sizes double, so they are never used up */
    MIN_CHUNK = 64 * 1024, /* bytes of the smallest overflow chunk */
};

typedef struct chunk {
    unsigned char *base;
    size_t bytes;
} chunk;

struct tac_arena {
    tac_context *ctx;
    tac_allocator alloc;
    chunk chunks[MAX_CHUNKS];
    size_t n_chunks;
    size_t current, used; /* chunk being filled, bytes used in it */
    size_t total;         /* bytes in use over all chunks */
    size_t high_water;
    size_t wanted; /* by reserve */
    int dry;
};

tac_status tac_arena_create(tac_context *ctx, const tac_allocator *alloc,
                            tac_arena **out)
{
    tac_arena *a = calloc(1, sizeof *a);

    if (a == NULL)
        return tac_fail(ctx, TAC_ERR_NOMEM, "arena: no memory for it");
    a->ctx = ctx;
    a->alloc = *alloc;
    *out = a;
    return TAC_OK;
}

static void free_chunks(tac_arena *a)
{
    for (size_t i = 0; i < a->n_chunks; ++i)
        a->alloc.free(a->alloc.arg, a->chunks[i].base);
    a->n_chunks = 0;
}

void tac_arena_destroy(tac_arena *a)
{
    if (a == NULL) return;
    free_chunks(a);
    free(a);
}

static tac_status add_chunk(tac_arena *a, size_t bytes)
{
    void *base = NULL;

    if (a->n_chunks == MAX_CHUNKS)
        return tac_fail(a->ctx, TAC_ERR_NOMEM,
                        "arena: more than %d chunks between two resets",
                        (int)MAX_CHUNKS);
    TAC_TRY(a->alloc.alloc(a->alloc.arg, bytes, &base));
    a->chunks[a->n_chunks].base = base;
    a->chunks[a->n_chunks].bytes = bytes;
    a->n_chunks += 1;
    return TAC_OK;
}

/* Goes on to a chunk with room: the next one if a release left one that is
 * large enough, else a new one at the end. */
static tac_status next_chunk(tac_arena *a, size_t bytes)
{
    size_t i = a->n_chunks == 0 ? 0 : a->current + 1;

    while (i < a->n_chunks && a->chunks[i].bytes < bytes) ++i;
    if (i == a->n_chunks) {
        size_t size = tac_arena_capacity(a);
        if (size < MIN_CHUNK) size = MIN_CHUNK;
        TAC_TRY(add_chunk(a, size < bytes ? bytes : size));
    }
    a->current = i;
    a->used = 0;
    return TAC_OK;
}

static void count(tac_arena *a, size_t bytes)
{
    a->total += bytes;
    if (a->total > a->high_water) a->high_water = a->total;
}

static tac_status too_large(const tac_arena *a, size_t bytes)
{
    return tac_fail(a->ctx, TAC_ERR_NOMEM,
                    "arena: %zu bytes are more than can be addressed", bytes);
}

tac_status tac_arena_alloc(tac_arena *a, size_t bytes, void **out)
{
    if (bytes > SIZE_MAX / 4 || a->total > SIZE_MAX / 4)
        return too_large(a, bytes);
    const size_t size =
        (bytes + TAC_ARENA_ALIGN - 1) / TAC_ARENA_ALIGN * TAC_ARENA_ALIGN;
    if (a->dry) {
        count(a, size);
        *out = NULL;
        return TAC_OK;
    }
    if (a->n_chunks == 0 || size > a->chunks[a->current].bytes - a->used)
        TAC_TRY(next_chunk(a, size));
    *out = a->chunks[a->current].base + a->used;
    a->used += size;
    count(a, size);
    return TAC_OK;
}

tac_arena_mark tac_arena_get_mark(const tac_arena *a)
{
    return (tac_arena_mark){a->current, a->used, a->total};
}

void tac_arena_release(tac_arena *a, tac_arena_mark mark)
{
    a->current = mark.chunk;
    a->used = mark.used;
    a->total = mark.total;
}

tac_status tac_arena_reset(tac_arena *a, int dry)
{
    a->current = a->used = a->total = 0;
    a->dry = dry;
    if (dry) return TAC_OK;
    const size_t need = a->high_water > a->wanted ? a->high_water : a->wanted;
    if (need == 0) return TAC_OK;
    if (a->n_chunks == 1 && a->chunks[0].bytes >= need) return TAC_OK;
    free_chunks(a);
    return add_chunk(a, need);
}

void tac_arena_reserve(tac_arena *a, size_t bytes)
{
    if (bytes > a->wanted) a->wanted = bytes;
}

size_t tac_arena_used(const tac_arena *a)
{
    return a->total;
}

size_t tac_arena_high_water(const tac_arena *a)
{
    return a->high_water;
}

size_t tac_arena_capacity(const tac_arena *a)
{
    size_t bytes = 0;

    for (size_t i = 0; i < a->n_chunks; ++i) bytes += a->chunks[i].bytes;
    return bytes;
}

static tac_status host_alloc(void *arg, size_t bytes, void **out)
{
    void *p = NULL;

    (void)arg;
    if (bytes < TAC_ARENA_ALIGN) bytes = TAC_ARENA_ALIGN;
    if (posix_memalign(&p, TAC_ARENA_ALIGN, bytes) != 0)
        return tac_fail(NULL, TAC_ERR_NOMEM, "no memory for %zu bytes", bytes);
    *out = p;
    return TAC_OK;
}

static void host_free(void *arg, void *p)
{
    (void)arg;
    free(p);
}

tac_allocator tac_host_allocator(void)
{
    return (tac_allocator){NULL, host_alloc, host_free};
}
