/* emulate.h: the emulated network: what is asked for, the links between virtual
 * hosts, and the transport that goes through them.
 *
 * Ranks are dealt to virtual hosts in contiguous blocks. Each host has one link
 * to a switch: an outgoing and an incoming queue of `rate` each, shared by the
 * ranks of that host whatever communicator they use. What crosses hosts is
 * carried by the transport underneath and withheld until such a link would have
 * delivered it; ranks of one host really share memory. All in real time,
 * without root; all ranks on one machine.
 *
 * The model (emulated_net.c): a message is charged in pieces of 44 Ethernet
 * frames (63,712 bytes). A frame of 1514 bytes carries 1448 of a TCP stream
 * (14 Ethernet, 20 IP, 20 TCP, 12 time stamps), so the goodput is 0.956 of the
 * rate; a message takes at least one frame. A piece leaves when its host's
 * outgoing queue is free, enters the receiver's incoming queue one frame later
 * (the switch stores and forwards frames), and arrives when both are done, plus
 * the delay. Times depend on when messages were handed over, not on when a
 * rank happened to look: the wire stays busy while ranks sleep. */
#ifndef TACIT_COMM_EMULATE_H
#define TACIT_COMM_EMULATE_H

#include "domain.h"
#include "tacit/transport.h"

/* "hosts=4,rate=1gbit,delay=10ms" */
typedef struct tac__emulate {
    int hosts;
    double rate; /* bytes a second on the wire; 0: unlimited */
    uint64_t delay_ns;
} tac__emulate;

/* 0: no such thing, and why says what is possible. */
int tac__emulate_parse(const char *text, tac__emulate *out, char *why,
                       size_t bytes);

/* ---- links (emulated_net.c) ------------------------------------------------
 */

typedef struct tac__net tac__net;

/* Collective, agreed: the links of b's ranks. NOMEM, UNSUPPORTED. */
tac_status tac__net_open(tac__boot *b, const tac__emulate *want,
                         tac__net **out);
/* A communicator and those that were split from it share the links. */
tac__net *tac__net_retain(tac__net *n);
void tac__net_release(tac__net *n); /* NULL is legal */
/* This rank's host, 0.. */
int tac__net_place(const tac__net *n);
const tac__emulate *tac__net_what(const tac__net *n);

/* Bytes that a piece of this many takes on the wire. */
size_t tac__net_wire_bytes(size_t bytes);
#define TAC__NET_PIECE ((size_t)44 * 1448)

/* Takes a piece that was ready at `ready` from one host to another: when it
 * arrives; *sent: when it has left. */
uint64_t tac__net_carry(tac__net *n, int from, int to, size_t bytes,
                        uint64_t ready, uint64_t *sent);

/* ---- the transport (emulated.c) --------------------------------------------
 */

/* Takes over `inner` and its state; `place` [b->size] is copied. Agreed. */
tac_status tac__emulated_open(tac__boot *b, const tac_transport *inner,
                              void *inner_state, tac__net *net,
                              const int *place, const tac_transport **transport,
                              void **state);

#endif
