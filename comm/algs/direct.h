/* direct.h: what the algorithms on messages between ranks have in common.
 *
 * Messages under way are kept in scratch.lanes: one lane of at most TAC__LANE
 * for each peer and direction. Messages of a pair of ranks arrive in the order
 * sent, and requests of a communicator run one after the other, so nothing
 * needs a tag: an algorithm counts. The k-th message of a lane is complete once
 * tac__direct_sent or tac__direct_got exceeds k. */
#ifndef TACIT_COMM_DIRECT_H
#define TACIT_COMM_DIRECT_H

#include "algs/algs.h"

/* Start a message. There must be room in the lane. */
tac_status tac__direct_send(tac_req *req, int peer, const void *buf,
                            size_t bytes);
tac_status tac__direct_recv(tac_req *req, int peer, void *buf, size_t bytes);
/* Messages complete since tac__direct_begin. */
unsigned tac__direct_sent(const tac_req *req, int peer);
unsigned tac__direct_got(const tac_req *req, int peer);
/* How many more may be started. */
unsigned tac__direct_send_room(const tac_req *req, int peer);
unsigned tac__direct_recv_room(const tac_req *req, int peer);

/* What a request's start calls: counters and program become 0. */
tac_status tac__direct_start(tac_req *req);
/* Counters become 0; nothing is under way. */
void tac__direct_reset(tac_req *req);
/* The algorithm's state, at most as large as scratch.program. */
void *tac__direct_program(const tac_req *req);

/* Looks what has arrived; req->moved says whether anything has. Counts the
 * waiting: time in which nothing arrived, looked at in gaps of at most 2 ms. */
tac_status tac__direct_poll(tac_req *req);
/* The same: OK when all that were started are complete. */
tac_status tac__direct_wait(tac_req *req);
int tac__direct_any_open(const tac_req *req);

/* The same message exchange with every peer: send(r) to r, recv(r) from r. */
typedef struct tac__piece {
    const void *send;
    void *recv;
    size_t send_bytes, recv_bytes; /* 0: no such message */
} tac__piece;
typedef tac__piece tac__piece_fn(tac_req *req, int peer);
tac_status tac__direct_exchange(tac_req *req, tac__piece_fn *piece);

/* With config.check: exchanges signatures before anything else. Steps of an
 * algorithm call it first; OK: all ranks agree, counters begin at 0. */
tac_status tac__direct_check(tac_req *req);

/* The step of an algorithm that starts what can be started and works on what
 * has arrived: `advance` is called until it does nothing more; *done: all that
 * was to be done is, except messages under way. */
typedef tac_status tac__advance_fn(tac_req *req, int *done);
tac_status tac__direct_run(tac_req *req, tac__advance_fn *advance);

/* Messages of elements as they are; ... or in a wire format. */
int tac__direct_applicable(const tac_comm *c, const tac_req *req);
int tac__direct_wire_applicable(const tac_comm *c, const tac_req *req);
/* Error feedback or stochastic rounding: only direct has them. */
int tac__has_feedback(const tac_req *req);
void tac__direct_finish(tac_req *req);
int tac__direct_waits_for(const tac_req *req, int r);

/* Part i of n elements in `parts` equal ones, cut at multiples of unit. */
tac__range tac__part(size_t n, size_t unit, int parts, int i);
/* Where elements may be cut: at cache lines, or at a wire's blocks. */
size_t tac__direct_unit(const tac_req *req);
/* Rounded down, resp. up, to cache lines. */
static inline size_t tac__lines_down(size_t bytes)
{
    return bytes / 64 * 64;
}
static inline size_t tac__lines_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}
/* The most elements whose message (or `esize` bytes each) fits `bytes`, in
 * whole units; at least one unit. */
size_t tac__direct_fit(const tac_req *req, size_t esize, size_t bytes);

/* How many of `total` elements should be one message of a pipeline, of at most
 * `room` bytes; whole units, at least one. */
size_t tac__direct_piece(const tac_req *req, size_t esize, size_t total,
                         size_t room);

/* Stages of every algorithm start behind the check's. */
enum { TAC__CHECK = 0, TAC__CHECKING, TAC__DIRECT_BEGIN };

#endif
