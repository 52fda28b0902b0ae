/* segments.h: which layers of a chain form one tape block. */
#ifndef TAC_MODELS_SEGMENTS_H
#define TAC_MODELS_SEGMENTS_H

#include <stddef.h>

/* The layers of a chain: elements a sample of layer i's output, which is kept
 * if a block ends there, and of everything that its forward pass makes, the
 * output included. */
typedef struct tac__chain {
    size_t n;
    const size_t *kept, *made;
} tac__chain;

/* Splits the chain: last[k] (room for n) is the last layer of segment k.
 * Returns how many segments there are, each of at least one layer, in order.
 * The largest number of elements that recompute has to hold at a time is as
 * small as it can be: see segments.c. */
size_t tac__segments(const tac__chain *chain, size_t *last);

#endif
