/* A block of the tape, as its forward half (tape_block.c) hands it to its
 * backward half (tape_block_again.c). */
#ifndef TAC_ENGINE_TAPE_BLOCK_H
#define TAC_ENGINE_TAPE_BLOCK_H

#include "tape_impl.h"

/* One output of the block: what fn makes (by ordinal, relative to the first
 * tensor of the block) and what the caller gets. */
typedef struct tac__block_output {
    tac_tensor *outer;
    size_t relative;
    int through; /* made outside: a view of an input; nothing to redirect */
} tac__block_output;

typedef struct tac__block {
    tac__node head;
    tac_block_fn *fn;
    void *arg;
    size_t n_in, n_out;
    tac_tensor *in[TAC_BLOCK_MAX];
    tac__block_output out[TAC_BLOCK_MAX];
    uint32_t dropouts;
    tac__cast_region cast;
} tac__block;

/* What running fn under other rules changes, to be put back. */
typedef struct tac__saved {
    int dry, probing, recording, counting;
    tac__node *last;
    size_t region;
    uint32_t dropouts;
    tac__buffer *free_list;
    const tac__redirect *redirects;
    size_t n_redirects;
    tac__cast_region cast;
    tac__cast_entry *casts;
    tac_arena_mark data, meta;
} tac__saved;

tac__saved tac__block_save(const tac_tape *t);
void tac__block_restore(tac_tape *t, const tac__saved *s);
/* Runs fn under the present rules; all of `out` (TAC_BLOCK_MAX entries) that
 * it should make is there on success. */
tac_status tac__block_call(tac_tape *t, const tac__block *b, tac_tensor **out);
/* Where outputs go if fn runs now; returns how many entries r got. */
size_t tac__block_redirects(const tac_tape *t, const tac__block *b,
                            tac__redirect *r);
/* The same function must make the same tensors. */
tac_status tac__block_check_same(const tac_tape *t, const tac__block *b,
                                 tac_tensor *const *out, size_t first);
/* Its operation's backward function. */
tac_status tac__block_backward(tac_tape *t, tac__node *node);

#endif
