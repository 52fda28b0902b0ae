/* error.c: the first error of a communicator stays and poisons it.
 *
 * Every rank has a text, but one failure should not fill the screen p times:
 * whoever detects it logs it, those who are told stay silent, and of several
 * who detect it at the same time the first does (where ranks share memory; over
 * messages two may). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "comm_impl.h"

/* 1 if this error is the first. */
static int set_error(tac_comm *c, tac_status s, const char *text)
{
    pthread_mutex_lock(&c->error_lock);
    const int first = tac__comm_status(c) == TAC_OK;
    if (first) {
        snprintf(c->error, sizeof c->error, "%s", text);
        atomic_store(&c->status, (int)s);
    }
    pthread_mutex_unlock(&c->error_lock);
    return first;
}

static int shares_memory(const tac_comm *c)
{
    return (c->transport->flags & TAC_TRANSPORT_TELLS) != 0;
}

/* Has another rank told of another failure before this one? */
static int came_second(const tac_comm *c, const char *text)
{
    const char *first = NULL;
    if (!shares_memory(c)) return 0;
    return c->transport->poll(c->link, &first) < 0 && strcmp(first, text) != 0;
}

static void report(tac_comm *c, tac_status s, const char *text, int loud)
{
    if (loud)
        tac_fail(c->ctx, s, "%s", text);
    else
        tac_fail_quiet(c->ctx, s, "%s", text);
    tac__recorder_failed(c, loud);
    tac__bell_ring(c->bell);
}

/* Where words are messages, this rank's goes ahead of the news. */
static void tell_peers(tac_comm *c, tac_status s, const char *text)
{
    const tac_transport *t = c->transport;
    if (t->tell && !(t->flags & TAC_TRANSPORT_TELLS))
        t->tell(c->link, atomic_load(&c->doing));
    t->abort(c->link, s, text);
}

/* Ranks of a communicator that was split off mean little to a reader who knows
 * those of the whole. */
static void add_roots(const tac_comm *c, const char *text, char *buf,
                      size_t bytes)
{
    enum { SHOWN = 8 };
    char list[96] = "";
    size_t n = 0;
    for (int r = 0; c->roots && r < c->size && r < SHOWN; r++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", r ? ", " : "",
                              c->roots[r]);
    if (c->roots && !c->outer_rank)
        snprintf(buf, bytes, "among ranks %s%s (called 0 to %d): %s", list,
                 c->size > SHOWN ? ", ..." : "", c->size - 1, text);
    else
        snprintf(buf, bytes, "%s", text);
}

static tac_status fail(tac_comm *c, tac_status s, const char *text, int loud)
{
    if (!set_error(c, s, text)) return tac__comm_status(c);
    tell_peers(c, s, text);
    report(c, s, text, loud && !c->outer_rank && !came_second(c, text));
    return s;
}

tac_status tac__comm_poison(tac_comm *c, tac_status s, const char *fmt, ...)
{
    char text[TAC__ERROR], named[TAC__ERROR];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add_roots(c, text, named, sizeof named);
    return fail(c, s, named, 1);
}

tac_status tac__comm_poison_all(tac_comm *c, tac_status s, const char *fmt, ...)
{
    char text[TAC__ERROR], named[TAC__ERROR];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add_roots(c, text, named, sizeof named);
    return fail(c, s, named, shares_memory(c) || c->rank == 0);
}

/* A disagreement is logged by rank 0, which may be told of it before it finds
 * out. */
static int speaks_for_all(const tac_comm *c, tac_status s)
{
    return s == TAC_ERR_MISMATCH && c->rank == 0 && !c->outer_rank &&
           !shares_memory(c);
}

/* Over messages the teller does not know what this rank was doing, so this rank
 * adds it. */
void tac__comm_infect(tac_comm *c, tac_status s, const char *told)
{
    char text[TAC__ERROR], mine[160];
    tac__doing_mine(c, mine, sizeof mine);
    if (c->outer_rank || shares_memory(c))
        snprintf(text, sizeof text, "%s", told);
    else
        snprintf(text, sizeof text, "%.590s; %s", told, mine);
    if (set_error(c, s, text)) report(c, s, text, speaks_for_all(c, s));
}

void tac__comm_inherit(tac_comm *c, tac_status s, const char *text)
{
    fail(c, s, text, 0);
}

/* Children at once: this rank may destroy them next, and their other ranks
 * should hear why. */
void tac_comm_abort(tac_comm *c, const char *reason)
{
    if (!c) return;
    tac__comm_poison(c, TAC_ERR_ABORTED, "rank %d aborted: %.200s", c->rank,
                     reason ? reason : "no reason given");
    tac__engine_inherit(c->engine, NULL);
}

tac_status tac_comm_error(const tac_comm *comm, char *buf, size_t bytes)
{
    tac_comm *c = (tac_comm *)(uintptr_t)comm;
    pthread_mutex_lock(&c->error_lock);
    const tac_status s = tac__comm_status(c);
    if (buf && bytes > 0) snprintf(buf, bytes, "%s", s ? c->error : "");
    pthread_mutex_unlock(&c->error_lock);
    return s;
}
