/* override.h: the configuration's choice of algorithms, by size.
 *
 *     algorithms = item { ";" item }
 *     item       = collective "=" rule { "," rule }
 *     rule       = algorithm [ ":" from "-" [ to ] ]
 *
 * Sizes are bytes of the call (the whole buffer of an allreduce or broadcast,
 * one block otherwise), with K, M or G for powers of 1024; a rule holds for
 * from
 * <= bytes <= to, without a range for all sizes. The first rule that holds and
 * whose algorithm can do the call is taken; if there is none, the cost model
 * chooses. */
#ifndef TACIT_COMM_OVERRIDE_H
#define TACIT_COMM_OVERRIDE_H

#include "comm_impl.h"

enum { TAC__OVERRIDES = 32 };

typedef struct tac__override {
    tac_coll coll;
    const char *algorithm; /* the table's */
    size_t from, to;       /* bytes, both included */
} tac__override;

typedef struct tac__overrides {
    int n;
    tac__override rule[TAC__OVERRIDES];
} tac__overrides;

/* ARG with the wrong token and what is possible in `why`. */
tac_status tac__overrides_parse(const char *text, tac__overrides *out,
                                char *why, size_t bytes);

#endif
