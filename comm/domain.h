/* domain.h: the shared-memory domain of a communicator.
 *
 * One implementation serves ranks that are threads and ranks that are processes
 * of one host; only where the memory comes from differs (transports/region.h).
 * Each rank's region holds its control lines and two staging slots.
 *
 * The protocol. Work is cut into phases, the same on all ranks. A rank counts
 * the phases that it has finished in a word of its own (publish), and goes on
 * when every rank's word has reached the same count (arrived). Nobody publishes
 * phase k + 1 before all have published k, so words differ by one at most, and
 * two copies of everything that is published with a phase suffice: headers,
 * times, staging slots. There is no other barrier.
 *
 * Sleeping. Each rank has a bell (a futex). Whoever publishes and sees all
 * ranks arrived rings those that sleep; sequential consistency of the words and
 * of the sleeper counts makes sure that the last to arrive sees either all
 * words or a sleeper that will. */
#ifndef TACIT_COMM_DOMAIN_H
#define TACIT_COMM_DOMAIN_H

#include <stdatomic.h>
#include <stdint.h>

#include "tacit/comm.h"
#include "transports/region.h"

/* What a rank is about to do: equal on all ranks, or it is a mistake. */
typedef struct tac__sig {
    uint64_t seq, count, tag, scales; /* scales: hash of pre- and postscale */
    int32_t coll, dtype, op, root;
} tac__sig;

#define TAC__PLAIN  (-1)
#define TAC__UNUSED (-2)

/* Published with the first phase of an operation. */
typedef struct tac__entry {
    tac__sig sig;
    int64_t src_segment, dst_segment; /* symmetric memory; TAC__PLAIN, or
                                         TAC__UNUSED: it does not matter */
    uint64_t src_offset, dst_offset;
} tac__entry;

/* Where a sleeper of a rank waits. Written by many. */
typedef struct tac__bell {
    _Atomic uint32_t word, sleepers;
} tac__bell;

/* A rank's control lines: written by it alone, except the bell and, in rank
 * 0's, `aborted`. */
typedef struct tac__line {
    _Alignas(64) _Atomic uint64_t phase;
    _Atomic uint64_t at[2]; /* when phase k was published: [k & 1] */
    _Atomic uint32_t left;  /* the rank has destroyed its communicator */
    _Alignas(64) tac__bell bell;
    _Alignas(64) tac__entry entry[2];      /* of the k-th started: [k & 1] */
    _Alignas(64) _Atomic uint32_t aborted; /* rank + 1 of the first to abort */
    int32_t abort_status;
    char abort_text[TAC__TEXT];
} tac__line;

typedef struct tac__domain {
    int rank, size;
    tac__regions regions;
    tac__line **line; /* [size] */
    size_t slot_bytes;
    uint64_t phase;     /* published by this rank */
    uint64_t step;      /* chunks done: which slot */
    int next;           /* ranks before this one have arrived */
    uint64_t latest_ns; /* when the last of those did */
    _Atomic int aborting;
} tac__domain;

tac_status tac__domain_open(tac__boot *b, int threads, size_t staging_bytes,
                            tac__domain **out);
/* Local; tells the peers that this rank is gone. */
void tac__domain_close(tac__domain *d);

/* Finishes a phase. */
void tac__domain_publish(tac__domain *d);
/* Has every rank? Adds to *wait_ns how long the last came after this rank. */
int tac__domain_arrived(tac__domain *d, uint64_t *wait_ns);
/* Rank r's slot for the present chunk. */
char *tac__domain_slot(const tac__domain *d, int r);
/* Has rank r published this rank's latest phase? */
int tac__domain_has(const tac__domain *d, int r);

/* Tells all ranks; any thread. The first of the domain stays. */
void tac__domain_abort(tac__domain *d, tac_status s, const char *text);
tac_status tac__domain_poll(const tac__domain *d, const char **text);

void tac__bell_ring(tac__bell *bell); /* if anybody sleeps */
void tac__bell_bump(tac__bell *bell); /* also who is about to: word changes */
void tac__bell_sleep(tac__bell *bell, uint32_t word, uint64_t ns);

#endif
