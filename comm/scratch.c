/* scratch.c: memory that algorithms work in, allocated at creation. */
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"

#define LINE ((size_t)64)
/* The shortest message of any wire format (a block of 1024), in lines. */
#define LEAST_MESSAGE ((size_t)2176)

/* Room for the messages that an algorithm may have under way at least: ring 16,
 * direct 6 a rank. */
static size_t least_staging(size_t size)
{
    return (16 + 6 * size) * LEAST_MESSAGE;
}

size_t tac__scratch_bytes(size_t staging_bytes, int size)
{
    const size_t least = least_staging((size_t)size);
    const size_t bytes = staging_bytes > least ? staging_bytes : least;
    return (bytes + LINE - 1) / LINE * LINE;
}

tac_status tac__scratch_open(tac__scratch *s, int size, int p2p,
                             size_t staging_bytes)
{
    const size_t n = (size_t)size;
    memset(s, 0, sizeof *s);
    s->srcs = calloc(n, sizeof *s->srcs);
    if (!s->srcs) return TAC_ERR_NOMEM;
    if (!p2p) return TAC_OK;
    s->lanes = calloc(2 * n, sizeof *s->lanes);
    s->sigs = calloc(n + 1, sizeof *s->sigs);
    s->staging_bytes = tac__scratch_bytes(staging_bytes, size);
    s->staging = aligned_alloc(LINE, s->staging_bytes);
    if (s->lanes && s->sigs && s->staging) return TAC_OK;
    tac__scratch_close(s, 1);
    return TAC_ERR_NOMEM;
}

void tac__scratch_close(tac__scratch *s, int healthy)
{
    free(s->srcs);
    free(s->lanes);
    if (healthy) {
        free(s->sigs);
        free(s->staging);
    }
    memset(s, 0, sizeof *s);
}
