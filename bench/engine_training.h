/* engine_training.h: a model in training, in one precision, step by step. */
#ifndef TAC_BENCH_ENGINE_TRAINING_H
#define TAC_BENCH_ENGINE_TRAINING_H

#include "engine_bench.h"
#include "tacit/master.h"
#include "tacit/model.h"
#include "tacit/optim.h"
#include "tacit/scaler.h"

/* Times of a step: forward, backward, update, all. The update has what the
 * precision adds to it: in fp16 the look for inf and NaN and the loss scale, in
 * both 16-bit types the new working weights. */
enum { TAC__PHASES = 4 };

typedef struct tac__training {
    tac__bench *b;
    const char *precision; /* as the user wrote it */
    tac_dtype low;         /* what products are computed in */
    size_t batch;
    tac_params *params; /* f32 */
    tac_model *model;
    tac_tape *tape;
    tac_optimizer *optimizer;
    tac_master *master; /* NULL in fp32 */
    tac_scaler *scaler; /* passes through unless fp16 */
    float *images;
    int32_t *labels;
    double *times[TAC__PHASES]; /* of counted steps */
    size_t steps, done;         /* wanted; counted */
    double loss;
} tac__training;

/* Sets t up for the bench's options; t is zero but for what is named by the
 * arguments. Call _destroy also after a failure. */
tac_status tac__training_create(tac__bench *b, const char *precision,
                                tac__training *t);
void tac__training_destroy(tac__training *t);
/* Steps until `upto` have been counted. */
tac_status tac__training_run(tac__training *t, size_t upto);
/* Steps that plan and allocate, not counted. */
tac_status tac__training_warm_up(tac__training *t);

#endif
