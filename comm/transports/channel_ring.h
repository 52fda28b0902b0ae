/* channel_ring.h: one ring of bytes between two ranks, and the queue of
 * messages that one of them has for it. */
#ifndef TACIT_COMM_CHANNEL_RING_H
#define TACIT_COMM_CHANNEL_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct tac__domain;

/* Positions count bytes since the beginning, in steps of TAC__RING_STEP. */
#define TAC__RING_STEP 16u

typedef struct tac__ring {
    _Alignas(64) _Atomic uint64_t tail; /* the sender's */
    _Atomic uint32_t starved;           /* it waits for room */
    _Alignas(64) _Atomic uint64_t head; /* the receiver's */
    _Atomic uint32_t thirsty;           /* it waits for bytes */
} tac__ring;

typedef struct tac__message {
    struct tac__message *next; /* in the track, or in the store */
    struct tac__track *track;
    char *buf;
    size_t bytes, moved;
    int opened; /* the header has been written or read */
    int done;
} tac__message;

/* One direction of one pair of ranks in one channel, as this rank sees it. */
typedef struct tac__track {
    tac__message *first, *last; /* not complete, in order */
    int peer, sends, channel;
    int place;       /* in the list of tracks with messages */
    int asked;       /* starved or thirsty is set */
    int broken;      /* sizes differed, or a message was given up */
    uint64_t wrong;  /* the size that the first message has at its sender */
    tac__ring *ring; /* NULL: to myself */
    char *data;
    size_t bytes;     /* of the ring: a power of two */
    uint64_t pos;     /* mine: tail of a sender, head of a receiver */
    uint64_t seen;    /* the peer's, when last looked */
    uint64_t started; /* messages opened */
} tac__track;

/* Moves what can be moved; the messages that became complete are marked done
 * and leave the track. */
void tac__track_push(struct tac__domain *d, tac__track *l);
void tac__track_pull(struct tac__domain *d, tac__track *l);
/* To myself: copies from the messages of one track to those of the other. */
void tac__track_match(tac__track *from, tac__track *to);
/* The first message of a broken track has another size at its sender: tells all
 * ranks. */
void tac__track_refuse(struct tac__domain *d, const tac__track *l);

#endif
