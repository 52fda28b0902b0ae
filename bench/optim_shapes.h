/* optim_shapes.h: the parameters of two models, without the models. */
#ifndef TAC_BENCH_OPTIM_SHAPES_H
#define TAC_BENCH_OPTIM_SHAPES_H

#include "tacit/params.h"

typedef struct tac__bench_shape {
    const char *name, *doc;
    tac_status (*add)(tac_params *p); /* registers the parameters */
    double least_bytes; /* of memory that a measurement takes at most */
} tac__bench_shape;

/* NULL-name-terminated, the smallest first. */
const tac__bench_shape *tac__bench_shapes(void);

#endif
