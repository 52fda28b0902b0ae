/* emulation.c: who is where in an emulated network (transports/emulate.h).
 *
 * The ranks of a communicator that the program creates are dealt to hosts in
 * contiguous blocks, as even as possible. A communicator that was split from
 * another has its ranks where they are, and uses the same links. If all of them
 * are on one host, there is nothing to emulate: they really share memory. */
#include "emulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transports/emulate.h"

static tac_status make_net(tac__boot *b, tac_comm *c)
{
    tac__emulate want;
    char why[8];
    tac_status s = TAC_OK;
    if (!tac__emulate_parse(c->config.emulate, &want, why, sizeof why))
        return TAC_ERR_INTERNAL; /* tac__config_fill has read it */
    if (want.hosts > c->size)
        s = tac__boot_note(b, TAC_ERR_ARG,
                           "emulate '%.60s': %d hosts need at least as many "
                           "ranks, and there are %d",
                           c->config.emulate, want.hosts, c->size);
    TAC_TRY(s); /* the same on all ranks */
    return tac__net_open(b, &want, &c->net);
}

/* Of all ranks; 1: on several hosts. */
static tac_status find_places(tac__boot *b, tac_comm *c, int *several)
{
    const int mine = tac__net_place(c->net);
    TAC_TRY(tac__boot_exchange(b, &mine, c->place, sizeof mine));
    *several = 0;
    for (int r = 1; r < c->size; r++) *several |= c->place[r] != c->place[0];
    return TAC_OK;
}

tac_status tac__emulation_join(tac__boot *b, tac_comm *c,
                               const tac_comm *parent)
{
    int several = 0;
    tac_status s = TAC_OK;
    if (!c->config.emulate) return TAC_OK;
    if (parent)
        c->net = tac__net_retain(parent->net);
    else
        TAC_TRY(make_net(b, c));
    c->place = calloc((size_t)c->size, sizeof *c->place);
    if (!c->place) s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory");
    TAC_TRY(tac__boot_agree(b, s));
    TAC_TRY(find_places(b, c, &several));
    if (several) return TAC_OK;
    free(c->place);
    c->place = NULL;
    return TAC_OK;
}

static int count_hosts(const tac_comm *c)
{
    int n = 0;
    for (int r = 0; r < c->size; r++) {
        int first = 1;
        for (int q = 0; q < r; q++) first &= c->place[q] != c->place[r];
        n += first;
    }
    return n;
}

tac_status tac__emulation_wrap(tac__boot *b, tac_comm *c)
{
    const tac_transport *inner = c->transport, *outer = NULL;
    void *state = NULL;
    const size_t n = strlen(c->why);
    if (!c->place) return TAC_OK;
    TAC_TRY(tac__emulated_open(b, inner, c->link, c->net, c->place, &outer,
                               &state));
    c->transport = outer;
    c->link = state;
    c->domain = NULL;
    snprintf(c->why + n, sizeof c->why - n,
             " on %d emulated hosts (%s) over %s", count_hosts(c),
             c->config.emulate, inner->name);
    return TAC_OK;
}

void tac__emulation_show(tac_comm *c)
{
    if (!c->place) return;
    for (int r = 0; r < c->size; r++)
        c->peers[r].host = (uint64_t)c->place[r] + 1;
    c->hosts = count_hosts(c);
}

void tac__emulation_leave(tac_comm *c)
{
    free(c->place);
    tac__net_release(c->net);
}
