/* recorder.h: the flight recorder of a communicator, and what a rank is doing
 * in the eyes of its peers.
 *
 * A ring of records, allocated with the communicator and never later: what was
 * asked for, when it was submitted, started and complete, how it ended. It is
 * written as JSON when the program asks (tac_comm_dump) and, if config.dump is
 * set, at the first failure. Cost: one uncontended lock and a copy of 130 bytes
 * an operation at each of the three moments.
 *
 * Beside it each rank publishes one word: its latest collective and whether
 * that is finished. On shared memory peers read the word in place; over
 * messages it is told when an operation stalls. From these words come sentences
 * like "ranks 0-2 are in allreduce #7, rank 3 is in broadcast #7". */
#ifndef TACIT_COMM_RECORDER_H
#define TACIT_COMM_RECORDER_H

#include <pthread.h>
#include <stdint.h>

#include "tacit/comm.h"

typedef enum tac__state {
    TAC__SCHEDULED = 0, /* submitted, behind others */
    TAC__STARTED,
    TAC__COMPLETED,
    TAC__FAILED
} tac__state;

typedef struct tac__record {
    uint64_t id, seq, count, bytes, tag;
    tac_coll coll;
    tac_dtype dtype;
    tac_op op;
    int peer; /* root, or the other side of a send or receive */
    int timeout_ms;
    const char *algorithm, *wire; /* static strings; wire may be NULL */
    uint64_t created_ns, started_ns, completed_ns; /* tac_clock_ns; 0: not */
    tac__state state;
    tac_status status;
} tac__record;

typedef struct tac__recorder {
    pthread_mutex_t lock; /* a leaf: nothing else is taken under it */
    tac__record *ring;    /* NULL: off */
    uint64_t capacity, next;
    uint64_t created_ns;  /* of the communicator, tac_clock_ns */
    int64_t created_unix; /* the same moment, ns since 1970 */
    char *dump;           /* where to write at the first failure, or NULL */
} tac__recorder;

/* The recorder that the communicator's configuration asks for. */
tac_status tac__recorder_open(tac_comm *c);
void tac__recorder_close(tac_comm *c);

/* The three moments of a request. Caller holds the communicator's lock. */
void tac__note_submitted(tac_req *req);
void tac__note_started(const tac_req *req);
void tac__note_completed(const tac_req *req, tac_status s, uint64_t now);

/* The communicator has failed for the first time: writes config.dump's file,
 * once. `loud`: says where it is. */
void tac__recorder_failed(tac_comm *c, int loud);

/* The first so many ranks of a communicator are told about one by one. */
#define TAC__RANKS_SHOWN 256

/* ---- what ranks are doing (doing.c) ----------------------------------------
 */

/* The word: 0 until the rank's first collective; of a peer over messages, until
 * it has told. */
uint64_t tac__doing_word(tac_coll coll, uint64_t seq, int finished);
/* Rank r's word as it is known here. */
uint64_t tac__doing_of(const tac_comm *c, int r);
/* Has rank r entered, or finished, collective `seq`, as far as is known? */
int tac__doing_entered(const tac_comm *c, int r, uint64_t seq);
int tac__doing_finished(const tac_comm *c, int r, uint64_t seq);
/* "ranks 0-2 are in allreduce #7, rank 3 is in broadcast #7": all ranks, the
 * same ones together, cut to `bytes`. */
void tac__doing_all(const tac_comm *c, char *buf, size_t bytes);
/* "rank 3 is in broadcast #7": this rank. */
void tac__doing_mine(const tac_comm *c, char *buf, size_t bytes);
/* " 0-2, 5": the ranks for which in[r] is set, cut to `bytes`; "" if none. */
void tac__name_ranks(const unsigned char *in, int size, char *buf,
                     size_t bytes);

#endif
