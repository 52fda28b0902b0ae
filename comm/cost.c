/* cost.c: see cost.h. */
#include "cost.h"

#include <string.h>

#include "choice.h"

/* Measured on two-core servers: phases of shared memory between ranks that have
 * a core each; messages of MPI and UCX through shared memory; and a network of
 * 10 Gbit/s where nothing better is known. */
tac__cost_params tac__cost_builtin(const char *transport)
{
    tac__cost_params p = {
        .shared = {5e-7, 7e-11, 5e-11},
        .local = {1.5e-6, 1.5e-10, 5e-11},
        .network = {3e-5, 9e-10, 5e-11},
    };
    /* Through a ring: copied in and out. */
    if (strcmp(transport, "thread") == 0 || strcmp(transport, "shm") == 0)
        p.local = (tac__cost_level){1.5e-6, 3e-10, 5e-11};
    if (strcmp(transport, "ucx") == 0) p.network.alpha = 2e-5;
    return p;
}

const tac__cost_params *tac__cost_of(const tac_comm *c)
{
    return &c->choice->params;
}

size_t tac__cost_bytes(const tac_req *req)
{
    return req->wire ? req->wire->bytes(req->count) : req->count * req->esize;
}

int tac__cost_ranks_a_host(const tac_comm *c)
{
    return c->choice->ranks_a_host;
}

double tac__cost_shared(const tac_comm *c, double phases, double bytes)
{
    const tac__cost_level *l = &tac__cost_of(c)->shared;
    return l->alpha * phases + l->beta * bytes;
}

static double level(const tac__cost_level *l, double messages, double bytes)
{
    return l->alpha * messages + l->beta * bytes;
}

/* Of the p - 1 peers, `near` are on this host; the link is shared by all ranks
 * of a host. Messages to different peers overlap: the first costs a whole
 * alpha, the others a quarter. */
double tac__cost_spread(const tac_comm *c, double messages, double bytes)
{
    const tac__cost_params *p = tac__cost_of(c);
    const double k = tac__cost_ranks_a_host(c), peers = c->size - 1;
    const double near = (k - 1) / peers, far = 1 - near;
    const double rounds = messages / peers;
    const double overlapped = rounds + (messages - rounds) / 4;
    if (c->domain) return TAC__COST_NEVER;
    if (c->hosts <= 1) return level(&p->local, overlapped, bytes);
    return level(&p->local, 0, bytes * near) +
           level(&p->network, overlapped, bytes * far * k);
}

double tac__cost_ring(const tac_comm *c, double messages, double bytes)
{
    const tac__cost_params *p = tac__cost_of(c);
    if (c->domain) return TAC__COST_NEVER;
    return level(c->hosts > 1 ? &p->network : &p->local, messages, bytes);
}

/* Ranks of a host are neighbours, as launchers place them. */
double tac__cost_pair(const tac_comm *c, int distance, double bytes)
{
    const tac__cost_params *p = tac__cost_of(c);
    const int k = tac__cost_ranks_a_host(c);
    if (c->domain) return TAC__COST_NEVER;
    if (c->hosts <= 1 || distance < k) return level(&p->local, 1, bytes);
    return level(&p->network, 1, bytes * k);
}

double tac__cost_reduce(const tac_comm *c, double bytes)
{
    return tac__cost_of(c)->local.gamma * bytes;
}
