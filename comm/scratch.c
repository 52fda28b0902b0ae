/* scratch.c: memory that algorithms work in, allocated at creation. */
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"

tac_status tac__scratch_open(tac__scratch *s, int size, int p2p,
                             size_t staging_bytes)
{
    const size_t n = (size_t)size;
    memset(s, 0, sizeof *s);
    s->srcs = calloc(n, sizeof *s->srcs);
    if (!s->srcs) return TAC_ERR_NOMEM;
    if (!p2p) return TAC_OK;
    s->ops = calloc(2 * n, sizeof *s->ops);
    s->sigs = calloc(n + 1, sizeof *s->sigs);
    s->staging = malloc(staging_bytes);
    if (s->ops && s->sigs && s->staging) return TAC_OK;
    tac__scratch_close(s, 1);
    return TAC_ERR_NOMEM;
}

void tac__scratch_close(tac__scratch *s, int healthy)
{
    free(s->srcs);
    free(s->ops);
    if (healthy) {
        free(s->sigs);
        free(s->staging);
    }
    memset(s, 0, sizeof *s);
}
