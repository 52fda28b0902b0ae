/* cost.h: what an operation is expected to take, for the choice of algorithm.
 *
 * A message of n bytes takes alpha + n beta, adding n bytes takes n gamma.
 * There are three levels: shared memory (alpha: a phase, beta: a byte through a
 * rank), messages between ranks of one host, and messages between hosts, whose
 * link all ranks of a host share. Constants are built in for each transport and
 * may be measured (comm_bench --tune, tune.h). They look only at what is equal
 * on all ranks, so all choose the same. */
#ifndef TACIT_COMM_COST_H
#define TACIT_COMM_COST_H

#include "comm_impl.h"

typedef struct tac__cost_level {
    double alpha, beta, gamma; /* seconds; seconds a byte */
} tac__cost_level;

typedef struct tac__cost_params {
    tac__cost_level shared, local, network;
} tac__cost_params;

/* Built-in constants of a transport ("thread", "shm", "mpi", "ucx"). */
tac__cost_params tac__cost_builtin(const char *transport);
/* The communicator's. */
const tac__cost_params *tac__cost_of(const tac_comm *c);

/* The bytes that a request's elements are as messages, wire format applied. */
size_t tac__cost_bytes(const tac_req *req);

/* Shared memory: phases, and bytes through this rank. */
double tac__cost_shared(const tac_comm *c, double phases, double bytes);
/* Messages; never the choice where the ranks share memory: only by name.
 * A rank sends `messages` messages, `bytes` bytes in all, evenly to all. */
double tac__cost_spread(const tac_comm *c, double messages, double bytes);
/* A rank sends to its successor, in rank order. */
double tac__cost_ring(const tac_comm *c, double messages, double bytes);
/* A rank sends to the rank at this distance (r xor distance). */
double tac__cost_pair(const tac_comm *c, int distance, double bytes);
/* Adding p arrays of so many bytes (its own share of an allreduce). */
double tac__cost_reduce(const tac_comm *c, double bytes);
/* Ranks on the fullest host. */
int tac__cost_ranks_a_host(const tac_comm *c);

/* An algorithm that is only taken by name. */
#define TAC__COST_NEVER 1e30

#endif
