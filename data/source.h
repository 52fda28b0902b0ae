/* source.h: a file as a stream of bytes, decompressed if it is gzip. */
#ifndef TAC_DATA_SOURCE_H
#define TAC_DATA_SOURCE_H

#include <stddef.h>

#include "tacit/context.h"

typedef struct tac__source tac__source;

/* Opens `path` (borrowed for the source's life). gzip is recognised by its
 * first two bytes. Errors: IO, NOMEM. */
tac_status tac__source_open(tac_context *ctx, const char *path,
                            tac__source **out);
void tac__source_close(tac__source *s); /* NULL is legal */

/* Reads up to `bytes` into p; *got < bytes only at the end of the data. A gzip
 * stream that is cut, fails its checksum or is followed by something that is
 * no gzip member is an error. Errors: IO, DATA. */
tac_status tac__source_read(tac__source *s, void *p, size_t bytes, size_t *got);

/* 1 if the file is gzip. */
int tac__source_is_gzip(const tac__source *s);

#endif
