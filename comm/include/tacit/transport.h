/* tacit/transport.h: what a transport provides (for plug-ins; may change until
 * version 1.0, guarded by TAC_ABI).
 *
 * A transport connects the ranks of one communicator. It offers shared memory
 * (TAC_TRANSPORT_SHARED: a domain of control lines and staging slots, see
 * comm/domain.h), or messages between two ranks (TAC_TRANSPORT_P2P). The
 * algorithms in comm/algs are written on one or the other; a transport has no
 * algorithms itself. No function blocks, except open, which is collective and
 * bounded by the creation's timeout. */
#ifndef TACIT_TRANSPORT_H
#define TACIT_TRANSPORT_H

#include "tacit/comm.h"

TAC_BEGIN_DECLS

struct tac__boot;   /* the bootstrap: rank, size, exchange, agree */
struct tac__domain; /* shared memory seen by all ranks */

#define TAC_TRANSPORT_SHARED 1u
#define TAC_TRANSPORT_P2P    2u
#define TAC_TRANSPORT_TELLS  4u /* tell is a store: done for every operation */
#define TAC_TRANSPORT_CLEAN  8u /* no buffer is touched after close, ever */

/* Two independent streams of messages between each pair of ranks. */
enum {
    TAC_CHANNEL_COLL = 0, /* of collectives: one request at a time */
    TAC_CHANNEL_USER,     /* of tac_send and tac_recv: many at a time */
    TAC_CHANNELS
};

typedef struct tac_transport {
    unsigned abi;     /* TAC_ABI */
    const char *name; /* "mpi" */
    const char *doc;  /* one line */
    unsigned flags;

    /* Can this rank use it with these peers? Local; writes why not. */
    int (*usable)(const struct tac__boot *boot, void *arg,
                  const tac_comm_config *config, char *why, size_t bytes);
    /* Collective over the bootstrap; verdict agreed before any rank returns. */
    tac_status (*open)(struct tac__boot *boot, void *arg,
                       const tac_comm_config *config, void **state);
    /* Local, never waits for peers. `healthy`: 0 after a failure. */
    void (*close)(void *state, int healthy);

    /* Tells all peers; any thread; does not block. */
    void (*abort)(void *state, tac_status s, const char *text);
    /* Has a peer told us? OK, or the status, with *text owned by state. Cheap.
     */
    tac_status (*poll)(void *state, const char **text);

    /* SHARED: the domain. */
    struct tac__domain *(*domain)(void *state);

    /* P2P. Messages of one pair of ranks and channel arrive in the order sent;
     * bytes is at most max_message and equal on both sides (else MISMATCH or
     * PEER on a side that can tell). Any number may be under way. */
    size_t max_message;
    size_t far_piece; /* the best length of one of many messages between hosts;
                         0: long ones are as good */
    tac_status (*isend)(void *state, int peer, int channel, const void *buf,
                        size_t bytes, void **op);
    tac_status (*irecv)(void *state, int peer, int channel, void *buf,
                        size_t bytes, void **op);
    /* OK: *op is complete, released and NULL (a NULL *op is complete). */
    tac_status (*test)(void *state, void **op);
    /* The same of n operations at once, where that is cheaper: those that are
     * complete become NULL; a failure is left for test to say whose it is.
     * NULL: test is cheap. */
    tac_status (*test_many)(void *state, void **const *ops, int n);
    /* Gives *op up after a failure, without waiting. */
    void (*cancel)(void *state, void **op);
    /* P2P: sleeps until something may have arrived, at most ns; NULL: the
     * caller sleeps a little and tests again. */
    void (*sleep)(void *state, uint64_t ns);
    /* P2P, may be NULL: when (tac_clock_ns) something is known to arrive, or
     * wants to be taken on by a test; 0: nothing is known. */
    uint64_t (*due)(void *state);

    /* Both may be NULL: what ranks are doing, for each other's reports. tell:
     * publishes this rank's word (comm's own coding); without the TELLS flag it
     * is called only when an operation stalls and before abort. heard: what
     * rank r has told last; 0: nothing. Any thread; neither blocks. */
    void (*tell)(void *state, uint64_t word);
    uint64_t (*heard)(void *state, int r);

    /* What it moves bytes with, for banners: "tcp/eth0, sysv/memory". May be
     * NULL. */
    void (*describe)(void *state, char *buf, size_t bytes);

    /* The offer's `arg` is shared by a communicator and its children: each
     * holds one reference. NULL where arg needs none. */
    void (*retain)(void *arg);
    void (*release)(void *arg);
} tac_transport;

/* A transport that the core doesn't know, offered at creation. */
typedef struct tac_transport_offer {
    const tac_transport *transport;
    void *arg;
} tac_transport_offer;

/* tac_comm_create_oob with more transports: `offers` has `n` entries, borrowed
 * for the call (args are retained). "auto" prefers self, thread, shm, then
 * these in order, then ucx. */
TAC_API tac_status tac_comm_create_with(tac_context *ctx, int rank, int size,
                                        const tac_oob *oob,
                                        const tac_transport_offer *offers,
                                        size_t n, const tac_comm_config *config,
                                        tac_comm **out);

TAC_END_DECLS

#endif
