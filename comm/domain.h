/* domain.h: the shared-memory domain of a communicator.
 *
 * One implementation serves ranks that are threads and ranks that are processes
 * of one host; only where the memory comes from differs (transports/region.h).
 * Each rank's region holds its control lines, four staging slots and the rings
 * of messages to it (transports/channel.h). A rank populates its own region, so
 * that on a host with several memory nodes its pages are near it.
 *
 * The protocol. Work is cut into phases, the same on all ranks. A rank counts
 * the phases that it has finished in a word of its own (publish), and goes on
 * when every rank's word has reached the same count (arrived). Nobody publishes
 * phase k + 1 before all have published k, so words differ by one at most, and
 * two copies of everything that is read at once suffice: headers, times. There
 * is no other barrier.
 *
 * Slots. They are taken in turn, at most one a phase: a chunk that was staged
 * before its rank published phase k lies there until that rank writes the slot
 * again, after all have published k + 3. So whoever reads it must have done so
 * before it publishes k + 3. Algorithms work on three chunks at a time in this
 * way: while one is staged, the one before is reduced, and of the one before
 * that the results are copied out, with one phase a chunk.
 *
 * Borrowing. Ranks that are threads also read and write each other's buffers in
 * place. A rank says so in its line while it does (borrow, give_back), and
 * closing the domain waits until nobody does: a pass over memory at most.
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
#define TAC__HERE   INT64_MAX /* at an address of this process */

/* Published with the first phase of an operation. */
typedef struct tac__entry {
    tac__sig sig;
    int64_t src_segment, dst_segment; /* symmetric memory, or TAC__HERE (the
                                         offset is the address); TAC__PLAIN, or
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
    _Atomic uint64_t at[2];   /* when phase k was published: [k & 1] */
    _Atomic uint32_t left;    /* the rank has destroyed its communicator */
    _Atomic uint32_t borrows; /* it is in other ranks' buffers */
    _Alignas(64) tac__bell bell;
    _Alignas(64) tac__entry entry[2];      /* of the k-th to enter: [k & 1] */
    _Alignas(64) _Atomic uint32_t aborted; /* rank + 1 of the first to abort */
    int32_t abort_status;
    char abort_text[TAC__ERROR];
    _Alignas(64) _Atomic uint64_t doing; /* recorder.h; read in reports only */
} tac__line;

enum { TAC__SLOTS = 4 };

typedef struct tac__domain {
    int rank, size;
    tac__regions regions;
    tac__line **line; /* [size] */
    void **dsts;      /* [size] scratch of algorithms */
    size_t slot_bytes;
    int crowded;        /* fewer cores than ranks: each phase is a round of
                           context switches */
    uint64_t phase;     /* published by this rank */
    uint64_t step;      /* chunks done: which slot */
    int next;           /* ranks before this one have arrived */
    uint64_t latest_ns; /* when the last of those did */
    _Atomic int aborting;
    struct tac__channels *channels; /* transports/channel.h */
} tac__domain;

/* Of shared memory, for each rank. */
size_t tac__domain_bytes(size_t staging_bytes, int size);
tac_status tac__domain_open(tac__boot *b, int threads, size_t staging_bytes,
                            tac__domain **out);
/* Local; tells the peers that this rank is gone. */
void tac__domain_close(tac__domain *d);

/* Finishes a phase. */
void tac__domain_publish(tac__domain *d);
/* Has every rank? Adds to *wait_ns how long the last came after this rank. */
int tac__domain_arrived(tac__domain *d, uint64_t *wait_ns);
/* Rank r's slot of chunk number `step`. */
char *tac__domain_slot(const tac__domain *d, int r, uint64_t step);
/* Has rank r published this rank's latest phase? */
int tac__domain_has(const tac__domain *d, int r);

/* 0: a rank has left, and its buffers with it. */
int tac__domain_borrow(tac__domain *d);
void tac__domain_give_back(tac__domain *d);

/* Tells all ranks; any thread. The first of the domain stays. */
void tac__domain_abort(tac__domain *d, tac_status s, const char *text);
tac_status tac__domain_poll(const tac__domain *d, const char **text);

void tac__bell_ring(tac__bell *bell); /* if anybody sleeps */
void tac__bell_bump(tac__bell *bell); /* also who is about to: word changes */
void tac__bell_sleep(tac__bell *bell, uint32_t word, uint64_t ns);
/* The same on several, at most TAC__BELLS; where the kernel can't (before 5.16,
 * or forbidden), 100 us on the first. */
#define TAC__BELLS 8
void tac__bells_sleep(tac__bell *const *bell, const uint32_t *word, int n,
                      uint64_t ns);

#endif
