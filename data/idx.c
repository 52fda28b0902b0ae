/* idx.c: the IDX format, read strictly.
 *
 * Cost: one pass; memory grows by doubling from 1 MiB with what arrives, so
 * that at most twice the real data is ever held. Reference: the description on
 * the MNIST page (Y. LeCun, C. Cortes, C. Burges). */
#include "tacit/idx.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

enum { FIRST_BYTES = 1 << 20, TRAILING_BYTES = 1 << 16 };

size_t tac_idx_type_size(tac_idx_type t)
{
    switch (t) {
    case TAC_IDX_U8:
    case TAC_IDX_I8: return 1;
    case TAC_IDX_I16: return 2;
    case TAC_IDX_I32:
    case TAC_IDX_F32: return 4;
    case TAC_IDX_F64: return 8;
    case TAC_IDX_ANY: break;
    }
    return 0;
}

/* What is being read, for messages. */
typedef struct reader {
    tac_context *ctx;
    const char *path;
    tac__source *source;
} reader;

static uint32_t big_endian_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static tac_status short_header(const reader *r, size_t expected, size_t found)
{
    return tac_fail(r->ctx, TAC_ERR_DATA,
                    "%s: truncated: expected %zu bytes of IDX header, found "
                    "%zu; get the file again",
                    r->path, expected, found);
}

static tac_status check_magic(const reader *r, const unsigned char magic[4],
                              tac_idx_type type, int ndim)
{
    const unsigned found = big_endian_u32(magic);
    if (magic[0] || magic[1] || !tac_idx_type_size((tac_idx_type)magic[2]))
        return tac_fail(r->ctx, TAC_ERR_DATA,
                        "%s: wrong magic: expected bytes 00 00 type "
                        "dimensions, found 0x%08x; this is no IDX file",
                        r->path, found);
    if (magic[3] == 0 || magic[3] > TAC_IDX_MAX_DIMS)
        return tac_fail(r->ctx, TAC_ERR_DATA,
                        "%s: wrong magic: expected 1 to %d dimensions, found "
                        "%d (0x%08x)",
                        r->path, TAC_IDX_MAX_DIMS, magic[3], found);
    if ((type != TAC_IDX_ANY && magic[2] != type) || (ndim && magic[3] != ndim))
        return tac_fail(r->ctx, TAC_ERR_DATA,
                        "%s: wrong magic: expected 0x%08x (0: any), found "
                        "0x%08x; is it another of the data's files?",
                        r->path, (unsigned)type << 8 | (unsigned)ndim, found);
    return TAC_OK;
}

/* Multiplies dimensions into idx->count; the bytes must fit as well. */
static tac_status check_size(const reader *r, tac_idx *idx)
{
    size_t bytes = tac_idx_type_size(idx->type);
    for (int d = 0; d < idx->ndim; ++d)
        if (idx->shape[d] == 0) bytes = 0;
    for (int d = 0; d < idx->ndim; ++d) {
        if (__builtin_mul_overflow(bytes, idx->shape[d], &bytes))
            return tac_fail(r->ctx, TAC_ERR_DATA,
                            "%s: the product of its %d dimensions overflows "
                            "(dimension %d is %zu); the header is wrong",
                            r->path, idx->ndim, d, idx->shape[d]);
    }
    idx->count = bytes / tac_idx_type_size(idx->type);
    return TAC_OK;
}

static tac_status read_header(const reader *r, tac_idx_type type, int ndim,
                              tac_idx *idx)
{
    unsigned char head[4 + 4 * TAC_IDX_MAX_DIMS];
    size_t got = 0;
    TAC_TRY(tac__source_read(r->source, head, 4, &got));
    if (got < 4) return short_header(r, 4, got);
    TAC_TRY(check_magic(r, head, type, ndim));
    idx->type = (tac_idx_type)head[2];
    idx->ndim = head[3];
    const size_t bytes = 4 * (size_t)idx->ndim;
    TAC_TRY(tac__source_read(r->source, head + 4, bytes, &got));
    if (got < bytes) return short_header(r, 4 + bytes, 4 + got);
    for (int d = 0; d < idx->ndim; ++d)
        idx->shape[d] = big_endian_u32(head + 4 + 4 * d);
    return check_size(r, idx);
}

static tac_status out_of_memory(const reader *r, size_t bytes)
{
    return tac_fail(r->ctx, TAC_ERR_NOMEM,
                    "%s: no memory for %zu bytes of its data", r->path, bytes);
}

/* Reads up to `bytes` into a buffer that grows as they come. */
static tac_status read_growing(const reader *r, size_t bytes,
                               unsigned char **data, size_t *found)
{
    size_t capacity = 0, used = 0;
    while (used < bytes) {
        if (used == capacity) {
            const size_t more = capacity ? capacity : FIRST_BYTES;
            capacity += more < bytes - capacity ? more : bytes - capacity;
            unsigned char *p = realloc(*data, capacity);
            if (!p) return out_of_memory(r, capacity);
            *data = p;
        }
        size_t got = 0;
        TAC_TRY(
            tac__source_read(r->source, *data + used, capacity - used, &got));
        if (got == 0) break;
        used += got;
    }
    *found = used;
    return TAC_OK;
}

static tac_status check_end(const reader *r, size_t bytes)
{
    unsigned char *rest = malloc(TRAILING_BYTES);
    if (!rest) return out_of_memory(r, TRAILING_BYTES);
    size_t got = 0;
    tac_status status = tac__source_read(r->source, rest, TRAILING_BYTES, &got);
    free(rest);
    if (status < 0 || got == 0) return status;
    return tac_fail(r->ctx, TAC_ERR_DATA,
                    "%s: trailing bytes: expected %zu bytes of data, found "
                    "%s%zu; the header doesn't fit the data",
                    r->path, bytes, got == TRAILING_BYTES ? "at least " : "",
                    bytes + got);
}

/* Big-endian elements to this machine's order, in place. */
static void to_native(unsigned char *p, size_t count, size_t size)
{
    for (size_t i = 0; i < count; ++i, p += size) {
        if (size == 2) {
            const uint16_t v = (uint16_t)(p[0] << 8 | p[1]);
            memcpy(p, &v, 2);
        } else if (size == 4) {
            const uint32_t v = big_endian_u32(p);
            memcpy(p, &v, 4);
        } else {
            const uint64_t v =
                (uint64_t)big_endian_u32(p) << 32 | big_endian_u32(p + 4);
            memcpy(p, &v, 8);
        }
    }
}

static tac_status read_body(const reader *r, tac_idx *idx)
{
    const size_t size = tac_idx_type_size(idx->type);
    const size_t bytes = idx->count * size;
    size_t found = 0;
    unsigned char *data = NULL;
    tac_status status = read_growing(r, bytes, &data, &found);
    if (status >= 0 && found < bytes)
        status = tac_fail(
            r->ctx, TAC_ERR_DATA,
            "%s: truncated: expected %zu bytes of data%s, found "
            "%zu; get the file again",
            r->path, bytes,
            tac__source_is_gzip(r->source) ? ", decompressed" : "", found);
    if (status >= 0) status = check_end(r, bytes);
    if (status < 0) {
        free(data);
        return status;
    }
    if (size > 1) to_native(data, idx->count, size);
    idx->data = data;
    return TAC_OK;
}

tac_status tac_idx_read(tac_context *ctx, const char *path, tac_idx_type type,
                        int ndim, tac_idx *out)
{
    if (!path || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_idx_read: path and out must not be NULL");
    reader r = {ctx, path, NULL};
    TAC_TRY(tac__source_open(ctx, path, &r.source));
    tac_idx idx = {0};
    tac_status status = read_header(&r, type, ndim, &idx);
    if (status >= 0) status = read_body(&r, &idx);
    tac__source_close(r.source);
    if (status >= 0) *out = idx;
    return status;
}

void tac_idx_free(tac_idx *idx)
{
    if (!idx) return;
    free(idx->data);
    memset(idx, 0, sizeof(*idx));
}
