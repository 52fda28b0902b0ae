/* safetensors_impl.h: what the files of the safetensors reader share. */
#ifndef TAC_DATA_SAFETENSORS_IMPL_H
#define TAC_DATA_SAFETENSORS_IMPL_H

#include "tacit/safetensors.h"

struct tac_safetensors {
    tac_context *ctx;
    char *path;
    void *map; /* the whole file, read-only; NULL: nothing mapped */
    size_t bytes;
    const unsigned char *data; /* the tensors, behind the header */
    size_t data_bytes;
    char *text; /* names and metadata, decoded: no longer than the header */
    size_t text_used;
    tac_safetensors_item *items; /* in the order of offsets */
    size_t count, room;
    size_t *by_name; /* numbers of items in the order of names */
    size_t *pairs;   /* of the metadata: places of keys in text; each value
                        follows its key */
    size_t n_pairs, pairs_room;
    int has_metadata;
};

/* Reports DATA: "PATH: TEXT; the file is damaged or of another format". */
tac_status tac__safetensors_bad(const tac_safetensors *f, const char *fmt, ...)
    TAC_PRINTF(2, 3);

/* "F32"; NULL: not a type that such a file has. And back; 0 if unknown. */
const char *tac__safetensors_dtype_name(tac_dtype t);
int tac__safetensors_dtype_parse(const char *name, tac_dtype *out);

/* safetensors_scan.c: cuts an object into its pairs without building a tree, so
 * that a header costs no more memory than its text. */
typedef struct tac__span {
    const char *p;
    size_t n;
} tac__span;

typedef struct tac__pairs {
    const char *at, *end;
    const char *problem; /* what is wrong, after a -1 */
    int begun;
} tac__pairs;

tac__pairs tac__pairs_of(tac__span object);
/* 1: the next key (with its quotes) and value; 0: the end; -1: not JSON. What
 * is inside of key and value is not looked at. */
int tac__pairs_next(tac__pairs *it, tac__span *key, tac__span *value);

/* safetensors_header.c: fills items and metadata from the header's text, with
 * every check that needs no other item. */
tac_status tac__safetensors_parse(tac_safetensors *f, tac__span header);
/* safetensors_tensor.c: fills all of an item but its name. */
tac_status tac__safetensors_describe(const tac_safetensors *f, tac__span text,
                                     tac_safetensors_item *item);
/* safetensors_layout.c: sorts items; names are unique, offsets without overlap,
 * hole or rest. */
tac_status tac__safetensors_check_layout(tac_safetensors *f);

#endif
