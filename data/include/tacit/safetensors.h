/* tacit/safetensors.h: reading and writing safetensors files.
 *
 * Layout: u64 little endian N; N bytes of JSON ({"name": {"dtype", "shape",
 * "data_offsets": [begin, end]}, "__metadata__": {text: text}}, padded with
 * spaces to a multiple of 8); the tensors' bytes, little endian, row-major,
 * without holes. Written in the order of the Python library: of types (I64,
 * F64, F32, I32, BF16, F16, U8), then of names. Other types are refused by
 * name.
 *
 * The reader trusts nothing: every size, offset and product is checked against
 * the file's length before anything is allocated, and nothing larger than the
 * file is. A file is mapped while it is open and must not be cut shorter.
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_SAFETENSORS_H
#define TACIT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"
#include "tacit/dtype.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

#define TAC_SAFETENSORS_MAX_HEADER 100000000 /* bytes of JSON */

/* ---- writing: collect, then write once ---------------------------------- */

typedef struct tac_safetensors_writer tac_safetensors_writer;

TAC_API tac_status tac_safetensors_writer_create(tac_context *ctx,
                                                 tac_safetensors_writer **out);
TAC_API void tac_safetensors_writer_destroy(tac_safetensors_writer *w);
/* A pair of the metadata; both copied. Errors: ARG for a repeated key. */
TAC_API tac_status tac_safetensors_set_metadata(tac_safetensors_writer *w,
                                                const char *key,
                                                const char *value);
/* Adds a tensor: name and shape are copied, and so is data of up to 64 bytes;
 * more is borrowed until the write.
 * Errors: ARG for a repeated, empty or reserved name. */
TAC_API tac_status tac_safetensors_add(tac_safetensors_writer *w,
                                       const char *name, tac_dtype dtype,
                                       int ndim, const size_t *shape,
                                       const void *data);
/* A visitor that adds all it is shown: v.visit with v.arg = the writer. */
TAC_API tac_state_visitor tac_safetensors_collect(tac_safetensors_writer *w);
/* Writes `path` whole and fsyncs it; on failure the file is removed. *hash (may
 * be NULL) is the XXH3-64 of the bytes written. Errors: IO with the path and
 * what to do (a full disk, say). */
TAC_API tac_status tac_safetensors_write(tac_safetensors_writer *w,
                                         const char *path, uint64_t *hash);

/* ---- reading ------------------------------------------------------------ */

typedef struct tac_safetensors tac_safetensors;

typedef struct tac_safetensors_item {
    const char *name; /* owned by the file object */
    tac_dtype dtype;
    int ndim;
    size_t shape[TAC_STATE_MAX_DIMS];
    size_t bytes;
    const void *data; /* in the mapped file, aligned to the element's size as
                         the file has it: perhaps not at all */
} tac_safetensors_item;

/* Opens and checks the whole header. Errors: IO; DATA with its own message for
 * each defect: shorter than 8 bytes, header longer than allowed or than the
 * file, JSON invalid, a key twice, unknown dtype, shape whose product
 * overflows, offsets that are reversed, overlap, leave a hole, or do not end
 * with the file. */
TAC_API tac_status tac_safetensors_open(tac_context *ctx, const char *path,
                                        tac_safetensors **out);
TAC_API void tac_safetensors_close(tac_safetensors *f); /* NULL is legal */
TAC_API size_t tac_safetensors_count(const tac_safetensors *f);
TAC_API const tac_safetensors_item *
tac_safetensors_get(const tac_safetensors *f,
                    size_t i); /* in the order of offsets */
TAC_API const tac_safetensors_item *
tac_safetensors_find(const tac_safetensors *f,
                     const char *name); /* NULL: none */
/* NULL: none. */
TAC_API const char *tac_safetensors_metadata(const tac_safetensors *f,
                                             const char *key);

/* How tac_safetensors_load treats differences. */
#define TAC_LOAD_CONVERT                                                       \
    1u                      /* f16, bf16, f32 and f64 tensors are converted to \
                               the item's own float type: for weights, never   \
                               for states */
#define TAC_LOAD_PARTIAL 2u /* items that the file lacks stay as they are */
/* Copies the file's tensors into what `walk` shows. Every item must be there
 * with the same shape and dtype (an optimizer state of another dtype is refused
 * by name, not cast), and nothing is written before all have been compared; a
 * tensor of the file that no item wants is an error, too, unless PARTIAL. */
TAC_API tac_status tac_safetensors_load(const tac_safetensors *f,
                                        tac_state_walk_fn *walk, void *object,
                                        unsigned flags);

TAC_END_DECLS

#endif
