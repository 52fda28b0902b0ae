/* ring.h: the pipelined ring, whole or in halves.
 *
 * The buffer is taken in chunks of p slices, a slice in SEGMENTS segments. In
 * round t rank r sends slice v - t to its successor and receives slice v - t -
 * 1 from its predecessor (v = r for an allreduce, r - 1 for the halves, modulo
 * p). In the first p-1 rounds it adds its own elements to what it received, in
 * the last p-1 rounds what travels are results. Message m of a chunk is segment
 * m % SEGMENTS of round m / SEGMENTS; message m is sent once message m -
 * SEGMENTS has been received and worked on, so several are under way in each
 * direction, also from one chunk to the next. */
#ifndef TACIT_COMM_RING_H
#define TACIT_COMM_RING_H

#include "algs/direct.h"

/* Which rounds an operation has. */
typedef enum tac__ring_kind {
    TAC__RING_ALL,    /* reduce and gather */
    TAC__RING_REDUCE, /* slices are blocks of the source */
    TAC__RING_GATHER  /* slices are blocks of the destination */
} tac__ring_kind;

tac_status tac__ring_start(tac_req *req, tac__ring_kind kind);
tac_status tac__ring_step(tac_req *req);

/* ---- between ring.c and ring_message.c -------------------------------------
 */

/* Slots of each kind: one round being received, one being sent. */
enum { TAC__RING_SEGMENTS = 4, TAC__RING_SLOTS = 2 * TAC__RING_SEGMENTS };

typedef struct tac__ring {
    int kind, v;
    int first, rounds; /* of the 2(p-1) rounds of an allreduce */
    size_t segment;    /* elements of a full one */
    size_t slot_bytes;
    size_t messages;    /* in all, each way */
    size_t posted, got; /* receives started; worked on */
    size_t sent;        /* sends started */
} tac__ring;

typedef struct tac__ring_message {
    int round;    /* of an allreduce's */
    size_t at, n; /* elements: of the buffer, or of all blocks */
} tac__ring_message;

tac__ring *tac__ring_of(const tac_req *req);
/* Messages a chunk. */
size_t tac__ring_a_chunk(const tac__ring *g);
/* behind: 0 what is sent as message m, 1 what is received. */
tac__ring_message tac__ring_message_at(const tac_req *req, size_t m,
                                       int behind);
/* Of the first round of its chunk. */
int tac__ring_is_first(const tac__ring *g, size_t m);
/* Is what round t carries complete? */
int tac__ring_is_result(const tac_req *req, int t);
size_t tac__ring_bytes(const tac_req *req, const tac__ring_message *m);
/* Is it received where it belongs? */
int tac__ring_lands(const tac_req *req, const tac__ring_message *m);
/* Elements `at` in the destination and the source. */
char *tac__ring_dst(const tac_req *req, size_t at);
const char *tac__ring_src(const tac_req *req, size_t at);
char *tac__ring_in_slot(const tac_req *req, size_t m);
char *tac__ring_out_slot(const tac_req *req, size_t m);

#endif
