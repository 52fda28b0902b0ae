/* shared_chunk.c: chunks of an operation and the slots they lie in. */
#include "algs/shared.h"

/* Elements as bytes. Where every rank has a core: source, own and peer's slot
 * of two chunks stay in its second-level cache. */
#define CHUNK_BYTES         ((size_t)128 << 10)
#define CHUNK_BYTES_CROWDED ((size_t)512 << 10)
/* Destinations from here on are stored past the caches, unless they are still
 * there from being read: in place, and no other rank's chunk has come between.
 * (Two ranks' symmetric memory in place, 16 MiB: 1.28 ms through the caches,
 * 2.09 past them; out of place the other way round.) */
#define STREAM_BYTES ((size_t)256 << 10)

size_t tac__shared_unit(const tac_req *req)
{
    const size_t line = 64 / req->esize;
    return req->wire && req->wire->block > line ? req->wire->block : line;
}

size_t tac__shared_stride(const tac_req *req, size_t n)
{
    return (tac__wire_bytes(req, n) + 63) / 64 * 64;
}

size_t tac__shared_fit(const tac_req *req, size_t parts)
{
    const tac__domain *d = req->comm->domain;
    const size_t unit = tac__shared_unit(req);
    const size_t wanted = d->crowded ? CHUNK_BYTES_CROWDED : CHUNK_BYTES;
    size_t n = tac__min(wanted, d->slot_bytes) / req->esize / parts;
    n = n > unit ? n / unit * unit : unit;
    while (n > unit && tac__shared_stride(req, n) * parts > d->slot_bytes)
        n -= unit;
    return n * parts;
}

size_t tac__shared_length(const tac_req *req, size_t at)
{
    return at < req->count ? tac__min(req->chunk, req->count - at) : 0;
}

static uint64_t step_of(const tac_req *req, size_t at)
{
    return req->comm->domain->step + at / req->chunk - req->pos / req->chunk;
}

/* Whoever has read a line that another core wrote holds it in its own cache: it
 * should be the one to write there next. So two ranks that write for each other
 * swap their places each time around the slots. (Two ranks, 16 MiB on an Intel
 * server: 2.45 ms instead of 3.34.) */
static int is_swapped(uint64_t step)
{
    return step / TAC__SLOTS & 1u;
}

char *tac__shared_slot(const tac_req *req, int r, size_t at)
{
    const tac__domain *d = req->comm->domain;
    const uint64_t step = step_of(req, at);
    return tac__domain_slot(d, d->size == 2 && is_swapped(step) ? 1 - r : r,
                            step);
}

char *tac__shared_part(const tac_req *req, int from, int to, size_t at,
                       size_t stride)
{
    const tac__domain *d = req->comm->domain;
    const uint64_t step = step_of(req, at);
    return is_swapped(step)
               ? tac__domain_slot(d, to, step) + (size_t)from * stride
               : tac__domain_slot(d, from, step) + (size_t)to * stride;
}

int tac__shared_streams(const tac_req *req, size_t bytes)
{
    const int evicted = req->comm->domain->crowded && !req->symmetric;
    return bytes >= STREAM_BYTES && (req->src != req->dst || evicted);
}

unsigned tac__shared_stream_dst(const tac_req *req)
{
    const int streams = tac__shared_streams(req, req->count * req->esize);
    return streams ? TAC__STREAM_DST : 0;
}

tac__work tac__shared_work(const tac_req *req, size_t n)
{
    if (req->wire) return (tac__work){0, 0};
    return tac__work_begin(tac__min(n, req->count) * req->esize);
}

void tac__shared_worked(tac_req *req, tac__work w)
{
    if (!req->wire) tac__work_end(req, w);
}

void tac__shared_copy_in(const tac_req *req, void *slot, const void *src,
                         size_t bytes)
{
    req->comm->kernels->copy(slot, src, bytes, 0);
}

void tac__shared_copy_out(const tac_req *req, void *dst, const void *slot,
                          size_t bytes)
{
    const size_t all = req->count * req->esize;
    req->comm->kernels->copy(dst, slot, bytes, tac__shared_streams(req, all));
}

void tac__shared_stage_src(tac_req *req, size_t at, size_t n)
{
    tac__shared_copy_in(req, tac__shared_slot(req, req->comm->rank, at),
                        req->src + at * req->esize, n * req->esize);
}
