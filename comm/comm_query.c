/* comm_query.c: what one may ask a communicator at any time. */
#include "comm_impl.h"

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
