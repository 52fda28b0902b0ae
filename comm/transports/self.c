/* self.c: the transport of a world of one: nothing to connect. */
#include <stdio.h>

#include "boot.h"
#include "transports/builtin.h"

static int usable(const tac__boot *b, void *arg, const tac_comm_config *config,
                  char *why, size_t bytes)
{
    (void)arg, (void)config;
    if (b->size == 1) return 1;
    snprintf(why, bytes, "it connects one rank only, and there are %d",
             b->size);
    return 0;
}

static tac_status open_self(tac__boot *b, void *arg,
                            const tac_comm_config *config, void **state)
{
    (void)b, (void)arg, (void)config;
    *state = NULL;
    return TAC_OK;
}

static void close_self(void *state, int healthy)
{
    (void)state, (void)healthy;
}

static void abort_self(void *state, tac_status s, const char *text)
{
    (void)state, (void)s, (void)text;
}

static tac_status poll_self(void *state, const char **text)
{
    (void)state, (void)text;
    return TAC_OK;
}

const tac_transport tac__transport_self = {
    .abi = TAC_ABI,
    .name = "self",
    .doc = "a world of one rank",
    .usable = usable,
    .open = open_self,
    .close = close_self,
    .abort = abort_self,
    .poll = poll_self,
};
