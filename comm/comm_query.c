/* comm_query.c: what one may ask a communicator at any time. */
#include "comm_impl.h"
#include "domain.h"
#include "levels.h"

int tac_comm_rank(const tac_comm *c)
{
    return c->rank;
}

int tac_comm_size(const tac_comm *c)
{
    return c->size;
}

int tac_comm_hosts(const tac_comm *c)
{
    return c->hosts;
}

tac_context *tac_comm_context(const tac_comm *c)
{
    return c->ctx;
}

const char *tac_comm_transport_name(const tac_comm *c)
{
    return c->transport->name;
}

const char *tac_comm_transport_why(const tac_comm *c)
{
    return c->why;
}

const tac_comm_config *tac_comm_config_of(const tac_comm *c)
{
    return &c->config;
}

static size_t domain_bytes(const tac__domain *d)
{
    return d ? d->regions.bytes : 0;
}

/* A communicator of one needs nothing but itself. */
size_t tac_comm_child_bytes(const tac_comm *c, int size, size_t staging_bytes)
{
    const size_t given =
        staging_bytes ? staging_bytes : c->config.staging_bytes;
    const size_t staging = tac__staging_bytes(given, size);
    const tac__levels *l = c->levels;
    size_t bytes = 0;
    if (size == 1) return 0;
    if (c->scratch.staging_bytes > 0)
        bytes += tac__scratch_bytes(staging, size);
    if (c->under) bytes += tac__domain_bytes(staging, size);
    if (l && l->local) bytes += tac_comm_bytes(l->local);
    if (l && l->cross) bytes += tac_comm_bytes(l->cross);
    return bytes;
}

size_t tac_comm_bytes(const tac_comm *c)
{
    const tac__levels *l = c->levels;
    size_t bytes = c->scratch.staging_bytes + domain_bytes(c->domain);
    if (c->under != c->domain) bytes += domain_bytes(c->under);
    for (const tac__segment *g = c->segments; g; g = g->next) bytes += g->bytes;
    if (l && l->local) bytes += tac_comm_bytes(l->local);
    if (l && l->cross) bytes += tac_comm_bytes(l->cross);
    return bytes;
}
