/* safetensors_write.c: the file, written in one go: length, header, tensors.
 * Costs a megabyte of buffer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "files.h"
#include "safetensors_impl.h"
#include "safetensors_writer.h"
#include "tacit/json.h"

enum { BUFFER = 1 << 20 };

/* ---- the header ---------------------------------------------------------- */

/* The Python library's order of types, which puts large elements first. */
static int rank_of(tac_dtype t)
{
    static const int rank[TAC_DTYPE_COUNT] = {
        [TAC_I64] = 0,  [TAC_F64] = 1, [TAC_F32] = 2, [TAC_I32] = 3,
        [TAC_BF16] = 4, [TAC_F16] = 5, [TAC_U8] = 6,
    };

    return rank[t];
}

static int compare(const void *a, const void *b)
{
    const tac__entry *x = a, *y = b;
    const int order = rank_of(x->dtype) - rank_of(y->dtype);

    return order ? order : strcmp(x->name, y->name);
}

static void put_metadata(const tac_safetensors_writer *w, tac_json *j)
{
    if (w->n_pairs == 0) return;
    tac_json_begin_object(j, "__metadata__");
    for (size_t i = 0; i < w->n_pairs; i++)
        tac_json_str(j, w->pairs[i].key, w->pairs[i].value);
    tac_json_end_object(j);
}

static void put_entry(const tac__entry *e, uint64_t begin, tac_json *j)
{
    tac_json_begin_object(j, e->name);
    tac_json_str(j, "dtype", tac__safetensors_dtype_name(e->dtype));
    tac_json_begin_array(j, "shape");
    for (int d = 0; d < e->ndim; d++) tac_json_u64(j, NULL, e->shape[d]);
    tac_json_end_array(j);
    tac_json_begin_array(j, "data_offsets");
    tac_json_u64(j, NULL, begin);
    tac_json_u64(j, NULL, begin + e->bytes);
    tac_json_end_array(j);
    tac_json_end_object(j);
}

static void put_header(const tac_safetensors_writer *w, tac_json *j)
{
    uint64_t at = 0;

    tac_json_begin_object(j, NULL);
    put_metadata(w, j);
    for (size_t i = 0; i < w->count; i++) {
        put_entry(&w->entries[i], at, j);
        at += w->entries[i].bytes;
    }
    tac_json_end_object(j);
}

/* ---- the file ------------------------------------------------------------ */

/* Small pieces are gathered, so that each write is worth its call. */
typedef struct sink {
    int fd;
    unsigned char *buffer; /* [BUFFER] */
    size_t used;
    XXH3_state_t *hash;
} sink;

static int flush(sink *s)
{
    const size_t n = s->used;

    s->used = 0;
    return tac__files_write_all(s->fd, s->buffer, n);
}

static int put(sink *s, const void *p, size_t bytes)
{
    if (bytes == 0) return 0;
    XXH3_64bits_update(s->hash, p, bytes);
    if (bytes > BUFFER - s->used && flush(s) != 0) return -1;
    if (bytes > BUFFER) return tac__files_write_all(s->fd, p, bytes);
    memcpy(s->buffer + s->used, p, bytes);
    s->used += bytes;
    return 0;
}

static int put_all(const tac_safetensors_writer *w, const char *header,
                   size_t bytes, sink *s)
{
    const size_t padded = (bytes + 7) / 8 * 8;
    unsigned char length[8];
    int rc;

    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> (8 * i));
    rc = put(s, length, 8);
    if (rc == 0) rc = put(s, header, bytes);
    if (rc == 0) rc = put(s, "       ", padded - bytes);
    for (size_t i = 0; rc == 0 && i < w->count; i++) {
        const tac__entry *e = &w->entries[i];

        rc = put(s, e->data ? e->data : e->small, e->bytes);
    }
    if (rc == 0) rc = flush(s);
    return rc == 0 ? fsync(s->fd) : rc;
}

static tac_status write_file(const tac_safetensors_writer *w, const char *path,
                             const char *header, size_t bytes, sink *s)
{
    int rc, error;

    s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    rc = s->fd < 0 ? -1 : put_all(w, header, bytes, s);
    error = errno;
    if (s->fd >= 0) {
        if (close(s->fd) != 0 && rc == 0) {
            error = errno;
            rc = -1;
        }
        if (rc != 0) unlink(path);
    }
    if (rc == 0) return TAC_OK;
    return tac_fail(w->ctx, TAC_ERR_IO,
                    "cannot write %s: %s; check the path, its permissions and "
                    "the free space",
                    path, strerror(error));
}

static tac_status write_with_header(const tac_safetensors_writer *w,
                                    const char *path, tac_json *j,
                                    uint64_t *hash)
{
    sink s = {.buffer = malloc(BUFFER), .hash = XXH3_createState()};
    size_t bytes = 0;
    const char *header;
    tac_status status = TAC_ERR_NOMEM;

    if (j) put_header(w, j);
    header = j ? tac_json_text(j, &bytes) : NULL;
    if (!header || !s.buffer || !s.hash)
        tac_fail(w->ctx, status, "no memory to write %s", path);
    else if (bytes > TAC_SAFETENSORS_MAX_HEADER)
        status = tac_fail(w->ctx, TAC_ERR_ARG,
                          "the header of %s would have %zu bytes; at most %d "
                          "are allowed: use fewer tensors or shorter names",
                          path, bytes, TAC_SAFETENSORS_MAX_HEADER);
    else {
        XXH3_64bits_reset(s.hash);
        status = write_file(w, path, header, bytes, &s);
        if (status >= 0 && hash) *hash = XXH3_64bits_digest(s.hash);
    }
    free(s.buffer);
    XXH3_freeState(s.hash);
    return status;
}

tac_status tac_safetensors_write(tac_safetensors_writer *w, const char *path,
                                 uint64_t *hash)
{
    tac_json *j = tac_json_create();
    tac_status s;

    if (w->count) qsort(w->entries, w->count, sizeof *w->entries, compare);
    s = write_with_header(w, path, j, hash);
    tac_json_destroy(j);
    return s;
}
