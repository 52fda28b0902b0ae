/* safetensors_writer.h: what is collected before it is written. */
#ifndef TAC_DATA_SAFETENSORS_WRITER_H
#define TAC_DATA_SAFETENSORS_WRITER_H

#include "tacit/safetensors.h"

/* Small parts of a state (counters, a scale) may live only as long as the visit
 * that shows them, so up to this many bytes are copied; more is borrowed. */
enum { TAC__SMALL = 64 };

typedef struct tac__entry {
    char *name;
    tac_dtype dtype;
    int ndim;
    size_t shape[TAC_STATE_MAX_DIMS];
    size_t bytes;
    const void *data; /* NULL: it is in `small` */
    unsigned char small[TAC__SMALL];
} tac__entry;

typedef struct tac__pair {
    char *key, *value;
} tac__pair;

struct tac_safetensors_writer {
    tac_context *ctx;
    tac__entry *entries;
    size_t count, room;
    tac__pair *pairs;
    size_t n_pairs;
};

#endif
