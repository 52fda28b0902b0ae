/* shared.h: what the algorithms on a shared-memory domain have in common.
 *
 * Every operation opens the same way. In its first phase each rank publishes
 * what it is about to do and where its buffers are; then all see whether all
 * agree and whether all buffers are within reach: in symmetric memory, or,
 * where ranks are threads, anywhere. Short messages are staged even so, because
 * reading in place costs a second phase, which tells the owners. A rank with
 * plain buffers has by then also staged its first chunk, so plain operations
 * pay nothing for the question. Only if some buffers are symmetric and some are
 * not, the ranks with symmetric ones stage their first chunk late, in one more
 * phase.
 *
 * Chunks. An operation is cut into chunks of req->chunk elements (of each block
 * where there are blocks). They are staged one ahead: while the others are
 * still busy with one, the next is written to another slot. A chunk is about as
 * large as what a core's cache holds of it comfortably, and larger where ranks
 * share cores, because there a phase costs a round of context switches. */
#ifndef TACIT_COMM_SHARED_H
#define TACIT_COMM_SHARED_H

#include "algs/algs.h"

enum { TAC__ENTERED = 0, TAC__LATE, TAC__OPEN, TAC__STAGED, TAC__DIRECT };

/* Which buffers have to be within reach for the direct way, in bytes; 0: not.
 */
typedef struct tac__shared_need {
    size_t src_bytes, dst_bytes;
} tac__shared_need;

/* What an algorithm does with elements [at, at + n), a chunk. What these take
 * is counted by who calls them, except with a wire format, which counts its own
 * (tac__shared_work). */
typedef void tac__chunk_fn(tac_req *req, size_t at, size_t n);

typedef struct tac__shared_plan {
    tac__chunk_fn *stage;         /* into this rank's slot */
    tac__chunk_fn *consume;       /* it is staged on all ranks */
    void (*direct)(tac_req *req); /* everything, in the ranks' own memory */
} tac__shared_plan;

/* Publishes; stages the first chunk if plain. `most`: elements a chunk. */
tac_status tac__shared_enter(tac_req *req, tac__shared_need need, size_t most,
                             const tac__shared_plan *plan);
/* OK once all have entered and agree: req->symmetric is then the same on all
 * ranks, and, where it is 0, every rank's first chunk is staged. */
tac_status tac__shared_open(tac_req *req, const tac__shared_plan *plan);
/* The direct way, and a last phase that tells the buffers' owners. */
tac_status tac__shared_direct(tac_req *req, const tac__shared_plan *plan);
/* The step of an operation with one phase a chunk: wait until chunk k is
 * staged, stage k + 1, publish, consume k. */
tac_status tac__shared_run(tac_req *req, const tac__shared_plan *plan);

/* The check alone, for algorithms on messages: publishes what this rank is
 * about to do; OK once all ranks have and agree. One phase. */
void tac__shared_announce(tac_req *req);
tac_status tac__shared_agreed(tac_req *req);

void tac__shared_publish(tac_req *req, int stage);
/* Has every rank finished the phase? Counts the waiting. */
int tac__shared_arrived(tac_req *req);
/* The chunk at req->pos is done with. */
void tac__shared_advance(tac_req *req);

/* Rank r's slot for the chunk that begins at element `at`, as a whole... */
char *tac__shared_slot(const tac_req *req, int r, size_t at);
/* ... or in parts of `stride` bytes: the one that `from` writes for `to`. */
char *tac__shared_part(const tac_req *req, int from, int to, size_t at,
                       size_t stride);
/* Elements of the chunk at `at`: 0 if there is none. */
size_t tac__shared_length(const tac_req *req, size_t at);
/* The most elements a chunk may have if `parts` parts of it, cut at multiples
 * of the unit, have to fit a slot as messages. */
size_t tac__shared_fit(const tac_req *req, size_t parts);
/* Elements: a cache line, or a wire format's block. */
size_t tac__shared_unit(const tac_req *req);
/* Bytes from one part of n elements to the next in a slot. */
size_t tac__shared_stride(const tac_req *req, size_t n);

/* Around all the moving and reducing of a chunk of n elements. */
tac__work tac__shared_work(const tac_req *req, size_t n);
void tac__shared_worked(tac_req *req, tac__work w);

/* Copies into a slot, or out of one into a destination. */
void tac__shared_copy_in(const tac_req *req, void *slot, const void *src,
                         size_t bytes);
void tac__shared_copy_out(const tac_req *req, void *dst, const void *slot,
                          size_t bytes);
/* Should a destination of so many bytes be stored past the caches? */
int tac__shared_streams(const tac_req *req, size_t bytes);
/* For tac__reduce_into: how to store to the destination. */
unsigned tac__shared_stream_dst(const tac_req *req);
/* Stages a chunk of the source as it is. */
void tac__shared_stage_src(tac_req *req, size_t at, size_t n);

/* Rank r's source or destination, as mapped here (symmetric only). */
const char *tac__shared_src(const tac_req *req, int r);
char *tac__shared_dst(const tac_req *req, int r);

int tac__shared_applicable(const tac_comm *c, const tac_req *req);
/* Those that can carry a wire format. */
int tac__shared_wire_applicable(const tac_comm *c, const tac_req *req);
void tac__shared_finish(tac_req *req);
int tac__shared_waits_for(const tac_req *req, int r);
/* Seconds of `phases` phases and `bytes` bytes through this rank. */
double tac__shared_cost(const tac_comm *c, double phases, double bytes);

#endif
