/* direct.h: what the algorithms on messages between ranks have in common.
 *
 * Sends and receives under way are kept in scratch.ops, one of each a peer.
 * Messages of a pair of ranks arrive in the order sent, and requests of a
 * communicator run one after the other, so nothing needs a tag. */
#ifndef TACIT_COMM_DIRECT_H
#define TACIT_COMM_DIRECT_H

#include "algs/algs.h"

/* Start a message; at most one of each kind a peer at a time. */
tac_status tac__direct_send(tac_req *req, int peer, const void *buf,
                            size_t bytes);
tac_status tac__direct_recv(tac_req *req, int peer, void *buf, size_t bytes);
/* OK when all that were started are complete. Counts the waiting: time in which
 * nothing arrived, looked at in gaps of at most 2 ms. */
tac_status tac__direct_wait(tac_req *req);

/* The same message exchange with every peer: send(r) to r, recv(r) from r. */
typedef struct tac__piece {
    const void *send;
    void *recv;
    size_t send_bytes, recv_bytes; /* 0: no such message */
} tac__piece;
typedef tac__piece tac__piece_fn(tac_req *req, int peer);
tac_status tac__direct_exchange(tac_req *req, tac__piece_fn *piece);

/* With config.check: exchanges signatures before anything else. Steps of an
 * algorithm call it first; OK: all ranks agree. */
tac_status tac__direct_check(tac_req *req);

/* The elements of a chunk whose pieces from all peers fit the staging. */
size_t tac__direct_slice(const tac_comm *c, size_t esize);
/* Where peer r's piece is staged. */
char *tac__direct_staging(const tac_req *req, int r, size_t slice_bytes);

int tac__direct_applicable(const tac_comm *c, const tac_req *req);
void tac__direct_finish(tac_req *req);
int tac__direct_waits_for(const tac_req *req, int r);
double tac__direct_cost(double messages, double bytes);

/* Stages of every algorithm start behind the check's. */
enum { TAC__CHECK = 0, TAC__CHECKING, TAC__DIRECT_BEGIN };

#endif
