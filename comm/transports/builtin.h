/* builtin.h: the transports that the core knows (transport_table.c). */
#ifndef TACIT_COMM_BUILTIN_H
#define TACIT_COMM_BUILTIN_H

#include "tacit/transport.h"

extern const tac_transport tac__transport_self;
extern const tac_transport tac__transport_thread;
extern const tac_transport tac__transport_shm;

/* NULL-terminated, in the order of preference. */
extern const tac_transport *const tac__transports[];

/* What thread and shm have in common: the domain is their state. */
void tac__shared_close(void *state, int healthy);
void tac__shared_abort(void *state, tac_status s, const char *text);
tac_status tac__shared_poll(void *state, const char **text);
struct tac__domain *tac__shared_domain(void *state);
void tac__shared_tell(void *state, uint64_t word);
uint64_t tac__shared_heard(void *state, int r);

#endif
