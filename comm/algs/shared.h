/* shared.h: what the algorithms on a shared-memory domain have in common.
 *
 * Every operation opens the same way. In its first phase each rank publishes
 * what it is about to do and where its buffers are; then all see whether all
 * agree and whether all buffers are symmetric. A rank with plain buffers has by
 * then also staged its first chunk, so plain operations pay nothing for the
 * question. Only if some buffers are symmetric and some are not, the ranks with
 * symmetric ones stage their first chunk late, in one more phase. */
#ifndef TACIT_COMM_SHARED_H
#define TACIT_COMM_SHARED_H

#include "algs/algs.h"

enum { TAC__ENTERED = 0, TAC__LATE, TAC__OPEN, TAC__STAGED, TAC__DIRECT };

typedef void tac__copy_in_fn(tac_req *req);

/* Which buffers have to be symmetric for the direct way, in bytes; 0: not. */
typedef struct tac__shared_need {
    size_t src_bytes, dst_bytes;
} tac__shared_need;

/* Publishes; stages the first chunk if plain. */
tac_status tac__shared_enter(tac_req *req, tac__shared_need need,
                             tac__copy_in_fn *copy_in);
/* OK once all have entered and agree: req->symmetric is then the same on all
 * ranks, and, where it is 0, every rank's first chunk is staged. */
tac_status tac__shared_open(tac_req *req, tac__copy_in_fn *copy_in);

/* An operation of one phase a chunk. */
typedef struct tac__shared_plan {
    tac__copy_in_fn *copy_in;      /* stages a chunk, sets req->chunk */
    void (*consume)(tac_req *req); /* the chunk is staged on all ranks */
    void (*direct)(tac_req *req);  /* everything, in symmetric memory */
} tac__shared_plan;
/* Its step. A last phase after `direct` tells the buffers' owners. */
tac_status tac__shared_run(tac_req *req, const tac__shared_plan *plan);

/* Stages the next chunk of the source as it is: the usual copy_in. */
void tac__shared_stage_src(tac_req *req);
void tac__shared_publish(tac_req *req, int stage);

/* Rank r's source or destination, as mapped here (symmetric only). */
const char *tac__shared_src(const tac_req *req, int r);
char *tac__shared_dst(const tac_req *req, int r);

/* Has every rank finished the phase? Counts the waiting. */
int tac__shared_arrived(tac_req *req);
/* Ends a chunk: the other slot is next. */
void tac__shared_next_slot(tac_req *req);

int tac__shared_applicable(const tac_comm *c, const tac_req *req);
void tac__shared_finish(tac_req *req);
int tac__shared_waits_for(const tac_req *req, int r);
/* Seconds of `phases` phases and `bytes` bytes through this rank. */
double tac__shared_cost(double phases, double bytes);

#endif
