/* The memory of a run, by kind: predicted before anything large is allocated,
 * counted after the first step. docs/memory.md has the kinds and the rules. */
#ifndef TAC_DDP_MEMORY_H
#define TAC_DDP_MEMORY_H

#include "tacit/data.h"
#include "tacit/json.h"
#include "tacit/replica.h"
#include "tacit/summary.h"

typedef enum tac__memory_kind {
    TAC__MEMORY_PARAMETERS,
    TAC__MEMORY_WEIGHTS, /* of 16 bits */
    TAC__MEMORY_GRADIENTS,
    TAC__MEMORY_OPTIMIZER,
    TAC__MEMORY_SCRATCH, /* the optimizer's */
    TAC__MEMORY_ACTIVATIONS,
    TAC__MEMORY_KERNELS,
    TAC__MEMORY_COMM,
    TAC__MEMORY_CODEC,
    TAC__MEMORY_LOCAL, /* of a leader, in local modes */
    TAC__MEMORY_MEAN,  /* the averaged model, to be evaluated */
    TAC__MEMORY_LOADER,
    TAC__MEMORY_DATA, /* once a process */
    TAC__MEMORY_KINDS
} tac__memory_kind;

struct tac__run;

/* memory.c: one replica. */
tac_status tac__memory_create(tac_replica *r);
void tac__memory_destroy(tac_replica *r); /* after all that it counts */
/* `inner`, counted as `kind`; valid while the replica is. */
tac_allocator tac__memory_count(tac_replica *r, tac__memory_kind kind,
                                const tac_allocator *inner);

/* An open replica (its dry step is done), its data, and how it is optimized:
 * what it will hold. NULL optimizer: as configured. */
typedef struct tac__memory_case {
    tac_replica *replica;
    const tac_data *data;
    const tac_optimizer_config *optimizer;
    uint64_t steps; /* of the run */
} tac__memory_case;
tac_status tac__memory_predict(const tac__memory_case *c,
                               uint64_t out[TAC__MEMORY_KINDS]);
/* What it holds now. */
void tac__memory_held(const tac_replica *r, const tac_data *data,
                      uint64_t out[TAC__MEMORY_KINDS]);
/* "optimizer_state". */
const char *tac__memory_name(tac__memory_kind kind);
/* All ranks of a host: `ranks` times everything, but what leaders have only
 * once for each worker of so many ranks, and data once a process. */
uint64_t tac__memory_host(const uint64_t bytes[TAC__MEMORY_KINDS], int ranks,
                          int worker_size, int processes);

/* memory_fit.c: fills in run->memory's predictions; does the run fit this host?
 * Errors: CONFIG, with what would fit. Not collective. */
tac_status tac__memory_check(struct tac__run *run);
/* After a step: the measured column, once. */
void tac__memory_measure(struct tac__run *run);

/* memory_report.c: rank 0's. */
void tac__memory_print(const struct tac__run *run);
void tac__memory_json(tac_json *j, const tac_memory_summary *m);
/* "1.61 MiB". */
const char *tac__bytes_text(double bytes, char text[32]);

#endif
