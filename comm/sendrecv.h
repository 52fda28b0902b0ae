/* sendrecv.h: requests between two ranks (sendrecv.c). They are not in the
 * queue of collectives but in a list of their own, all under way at once. */
#ifndef TACIT_COMM_SENDRECV_H
#define TACIT_COMM_SENDRECV_H

#include <stdint.h>

struct tac_comm;
struct tac_req;

/* What travels before the elements: 32 bytes. */
typedef struct tac__envelope {
    unsigned long long count, number;
    int dtype, zero[3];
} tac__envelope;

/* The messages of one request. */
typedef struct tac__flight {
    struct tac__flight *next; /* in the store */
    void **op;                /* [n]: the envelope, then the pieces */
    unsigned long n, room, at;
    tac__envelope envelope;
} tac__flight;

typedef struct tac__p2p {
    struct tac_req *first, *last; /* under way, in the order of submission */
    unsigned long long *number;   /* [2 * size] submitted: sends, receives */
    unsigned char *waits;         /* [2 * size] the earliest is not complete */
    tac__flight *store;
} tac__p2p;

int tac__p2p_open(tac__p2p *p, int size); /* 0: no memory */
/* `healthy` 0: messages may still arrive, so they are left. */
void tac__p2p_close(tac__p2p *p, int healthy);

int tac__req_is_p2p(const struct tac_req *req);
/* Steps all; 1 if anything moved. Caller holds the lock. */
int tac__p2p_step(struct tac_comm *c);
/* Does it wait in vain for rank r, which is gone? Told every now and then. */
int tac__p2p_misses(struct tac_req *req, int r, uint64_t now);
/* Takes it out of the list. */
void tac__p2p_detach(struct tac_comm *c, struct tac_req *req);

#endif
