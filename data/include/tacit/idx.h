/* tacit/idx.h: reading IDX files, plain or gzip-compressed.
 *
 * IDX is the format of MNIST and its relatives: two zero bytes, one byte for
 * the element type, one for the number of dimensions, the dimensions as
 * big-endian 32-bit numbers, then the elements in C order, big-endian.
 *
 * The reader is strict. A file that is shorter or longer than its header
 * says, an unknown type, a size that overflows, a gzip stream that ends early,
 * fails its checksum or is followed by something else: each is an error of its
 * own that names the path and the bytes expected and found. Memory grows with
 * the data that really arrives, so a header that lies costs nothing.
 *
 * Thread-safety: calls with different outputs may run at the same time. */
#ifndef TACIT_IDX_H
#define TACIT_IDX_H

#include <stddef.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

#define TAC_IDX_MAX_DIMS 8

typedef enum tac_idx_type {
    TAC_IDX_ANY = 0, /* only as a wish: accept every type */
    TAC_IDX_U8 = 0x08,
    TAC_IDX_I8 = 0x09,
    TAC_IDX_I16 = 0x0B,
    TAC_IDX_I32 = 0x0C,
    TAC_IDX_F32 = 0x0D,
    TAC_IDX_F64 = 0x0E
} tac_idx_type;

typedef struct tac_idx {
    tac_idx_type type;
    int ndim; /* 1 .. TAC_IDX_MAX_DIMS */
    size_t shape[TAC_IDX_MAX_DIMS];
    size_t count; /* elements: the product of shape */
    void *data;   /* count elements in this machine's byte order; may be NULL
                     if count is 0 */
} tac_idx;

/* Bytes of one element; 0 for a value that is no type. */
TAC_API size_t tac_idx_type_size(tac_idx_type t);

/* Reads `path` whole. `type` (or TAC_IDX_ANY) and `ndim` (or 0 for any) say
 * what the caller expects; another type or number of dimensions is an error.
 * Compression is recognised by content, not by name. *out is written only on
 * success; free it with tac_idx_free.
 * Errors: IO (can't be opened or read), DATA (every malformed content), NOMEM.
 */
TAC_API tac_status tac_idx_read(tac_context *ctx, const char *path,
                                tac_idx_type type, int ndim, tac_idx *out);
/* Frees the data and clears the structure. NULL is legal. */
TAC_API void tac_idx_free(tac_idx *idx);

TAC_END_DECLS

#endif
