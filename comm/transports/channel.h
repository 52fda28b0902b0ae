/* channel.h: messages between the ranks of a shared-memory domain.
 *
 * For each ordered pair of ranks and each channel there is a ring of bytes in
 * the receiver's region, written by the sender alone and read by the receiver
 * alone. A message is a header (its size and its number) and its bytes, padded
 * to 16; it may be longer than the ring, then it flows through it. A rank keeps
 * a queue of messages for each of its rings (a track) and moves bytes whenever
 * it tests one of them, in both directions.
 *
 * Memory: a rank's region holds (p - 1) rings a channel. All rings of
 * collectives of a rank take about 512 KiB together, but each at least 4 KiB
 * and at most 256 KiB; those of tac_send and tac_recv a quarter of that. (p =
 * 2: 256 and 64 KiB; p = 8: 64 and 16 KiB each, 560 KiB in all; p = 256: 4 KiB
 * each, 2 MiB in all.)
 *
 * Cost: a message is two copies (into the ring and out of it) and two
 * publications; a rank that sleeps is woken by a system call, but only if it
 * sleeps for this ring. */
#ifndef TACIT_COMM_CHANNEL_H
#define TACIT_COMM_CHANNEL_H

#include <stddef.h>

#include "tacit/comm.h"

struct tac__domain;
typedef struct tac__channels tac__channels;

/* Of each rank's region, for a domain of `size` ranks. */
size_t tac__channels_bytes(int size);
/* NULL: no memory. */
tac__channels *tac__channels_new(int rank, int size);
/* The rings lie `offset` bytes behind the start of every region. */
void tac__channels_attach(tac__channels *c, struct tac__domain *d,
                          size_t offset);
/* NULL is legal. Messages under way are forgotten. */
void tac__channels_free(tac__channels *c);

/* What transports with a domain as their state have in common (transport.h).
 * One thread at a time. If sizes differ, the receiver tells all ranks through
 * the domain, and the message stays incomplete. */
tac_status tac__channel_isend(void *domain, int peer, int channel,
                              const void *buf, size_t bytes, void **op);
tac_status tac__channel_irecv(void *domain, int peer, int channel, void *buf,
                              size_t bytes, void **op);
tac_status tac__channel_test(void *domain, void **op);
void tac__channel_cancel(void *domain, void **op);

#endif
