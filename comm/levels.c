/* levels.c: see levels.h. */
#include "levels.h"

#include <stdlib.h>

#include "agree.h"

/* Ranks before r on r's host. */
static int place_of(const tac_comm *c, int r)
{
    int n = 0;
    for (int q = 0; q < r; q++) n += c->peers[q].host == c->peers[r].host;
    return n;
}

static int first_of_host(const tac_comm *c, int r)
{
    int q = 0;
    while (c->peers[q].host != c->peers[r].host) q++;
    return q;
}

static void count_ranks(const tac_comm *c, int *least, int *most)
{
    *least = c->size;
    *most = 0;
    for (int r = 0; r < c->size; r++) {
        int n = 0;
        for (int q = 0; q < c->size; q++)
            n += c->peers[q].host == c->peers[r].host;
        if (n < *least) *least = n;
        if (n > *most) *most = n;
    }
}

/* The parent's rank of each member: on this host, or with this place. */
static int *list_members(const tac_comm *c, int same_host)
{
    const int place = place_of(c, c->rank);
    int *list = calloc((size_t)c->size, sizeof *list), n = 0;
    for (int r = 0; r < c->size && list; r++) {
        const int in = same_host ? c->peers[r].host == c->peers[c->rank].host
                                 : place_of(c, r) == place;
        if (in) list[n++] = r;
    }
    return list;
}

/* The children only do what the parent tells them. */
static tac_comm_config child_config(const tac_comm *c)
{
    tac_comm_config k = c->config;
    k.stall_warn_ms = -1;
    k.deterministic = k.check = 0;
    k.algorithms = NULL;
    k.recorder = -1;
    k.dump = NULL;
    return k;
}

static tac_status make_children(tac_comm *c, tac__levels *l)
{
    tac_comm_config k = child_config(c);
    const int place = place_of(c, c->rank);
    TAC_TRY(tac__comm_split(c, place < l->carriers ? place : -1, c->rank, &k,
                            &l->cross));
    k.transport = "auto"; /* within a host there may be something better */
    TAC_TRY(
        tac__comm_split(c, first_of_host(c, c->rank), c->rank, &k, &l->local));
    if (l->cross) l->cross->outer_rank = l->cross_ranks;
    l->local->outer_rank = l->local_ranks;
    return TAC_OK;
}

static void free_levels(tac__levels *l)
{
    if (!l) return;
    tac_comm_destroy(l->cross);
    tac_comm_destroy(l->local);
    free(l->local_ranks);
    free(l->cross_ranks);
    free(l);
}

static tac__levels *new_levels(const tac_comm *c)
{
    tac__levels *l = calloc(1, sizeof *l);
    int most;
    if (!l) return NULL;
    count_ranks(c, &l->carriers, &most);
    l->even = l->carriers == most;
    l->local_ranks = list_members(c, 1);
    l->cross_ranks = list_members(c, 0);
    if (l->local_ranks && l->cross_ranks) return l;
    free_levels(l);
    return NULL;
}

static int is_wanted(const tac_comm *c)
{
    int least, most;
    count_ranks(c, &least, &most);
    return c->hosts > 1 && most > 1 &&
           (c->transport->flags & TAC_TRANSPORT_P2P) != 0;
}

tac_status tac__levels_open(tac_comm *c)
{
    if (!is_wanted(c)) return TAC_OK;
    tac__levels *l = new_levels(c);
    tac_status s = tac__comm_agree(c, l ? TAC_OK : TAC_ERR_NOMEM,
                                   "no memory for a hierarchy");
    if (s == TAC_OK) s = make_children(c, l);
    if (s == TAC_OK) {
        c->levels = l;
        return TAC_OK;
    }
    free_levels(l);
    if (tac__comm_status(c) < 0) return tac__comm_status(c);
    if (c->rank == 0)
        tac_log(c->ctx, TAC_LOG_WARN,
                "no hierarchical algorithms: communicators of the ranks of a "
                "host, or between hosts, can't be made: %s",
                tac_status_name(s));
    return TAC_OK;
}

void tac__levels_close(tac_comm *c)
{
    free_levels(c->levels);
    c->levels = NULL;
}

/* Peers hear of it from the parent. */
static void fail_child(tac_comm *child, const tac_comm *parent)
{
    char text[TAC__ERROR];
    if (!child || !child->busy) return;
    const tac_status s = tac_comm_error(parent, text, sizeof text);
    tac__comm_infect(child, s, text);
    pthread_mutex_lock(&child->lock);
    tac__req_fail_all(child);
    pthread_mutex_unlock(&child->lock);
}

void tac__levels_fail(tac_comm *c)
{
    fail_child(c->levels->local, c);
    fail_child(c->levels->cross, c);
}
