/* choose.c: which transport connects the ranks.
 *
 * "auto" takes the first that every rank finds usable and that opens: self,
 * thread, shm, then what was offered (mpi). All decisions are agreed, so all
 * ranks try the same ones in the same order. */
#include <stdio.h>
#include <string.h>

#include "comm_impl.h"
#include "transports/builtin.h"

/* One more than the last built-in: the offers. */
static tac_transport_offer nth(const tac_comm *c, size_t i)
{
    size_t n = 0;
    for (; tac__transports[n]; n++)
        if (n == i) return (tac_transport_offer){tac__transports[n], NULL};
    return i - n < c->n_offers ? c->offers[i - n]
                               : (tac_transport_offer){NULL, NULL};
}

static tac_status check_usable(tac__boot *b, const tac_comm *c,
                               tac_transport_offer t)
{
    char why[TAC__TEXT - 64] = "";
    tac_status s = TAC_OK;
    if (!t.transport->usable(b, t.arg, &c->config, why, sizeof why))
        s = tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                           "transport %s can't be used: %s", t.transport->name,
                           why);
    return tac__boot_agree(b, s);
}

static void explain(const tac__boot *b, tac_comm *c)
{
    const char *kind = b->processes == 1 ? "threads of one process"
                       : b->hosts == 1   ? "processes of one host"
                                         : "processes";
    if (b->size == 1)
        snprintf(c->why, sizeof c->why, "one rank");
    else if (b->hosts == 1)
        snprintf(c->why, sizeof c->why, "%d %s", b->size, kind);
    else
        snprintf(c->why, sizeof c->why, "%d %s on %d hosts", b->size, kind,
                 b->hosts);
}

static tac_status try_one(tac__boot *b, tac_comm *c, tac_transport_offer t)
{
    void *link = NULL;
    TAC_TRY(check_usable(b, c, t));
    TAC_TRY(t.transport->open(b, t.arg, &c->config, &link));
    c->transport = t.transport;
    c->link = link;
    c->domain = t.transport->domain ? t.transport->domain(link) : NULL;
    explain(b, c);
    return TAC_OK;
}

static int applies(const tac__boot *b, const tac_comm *c, tac_transport_offer t)
{
    char why[64];
    if (b->size == 1) return t.transport == &tac__transport_self;
    /* Built-in ones decide from what all ranks know. */
    return t.arg != NULL ||
           t.transport->usable(b, t.arg, &c->config, why, sizeof why);
}

static tac_status choose_auto(tac__boot *b, tac_comm *c)
{
    tac_status s = TAC_ERR_UNSUPPORTED;
    char failed[TAC__TEXT] = "";
    tac__boot_note(b, s,
                   "the ranks are %d processes on %d hosts and no "
                   "transport between hosts is present (mpi?)",
                   b->processes, b->hosts);
    for (size_t i = 0; nth(c, i).transport; i++) {
        const tac_transport_offer t = nth(c, i);
        if (!applies(b, c, t)) continue;
        s = try_one(b, c, t);
        if (s == TAC_OK && *failed && b->rank == 0)
            tac_log(c->ctx, TAC_LOG_WARN, "transport %s is used, because %s",
                    t.transport->name, failed);
        if (s != TAC_ERR_UNSUPPORTED && s != TAC_ERR_NOMEM) return s;
        snprintf(failed, sizeof failed, "%s failed: %.200s", t.transport->name,
                 b->text);
    }
    return s;
}

static tac_status choose_named(tac__boot *b, tac_comm *c)
{
    const char *name = c->config.transport;
    for (size_t i = 0; nth(c, i).transport; i++) {
        const tac_transport_offer t = nth(c, i);
        if (strcmp(t.transport->name, name) == 0) return try_one(b, c, t);
    }
    return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                          "there is no transport '%s' here (self, thread and "
                          "shm always are; mpi needs tac_comm_create_mpi)",
                          name);
}

static int is_known_name(const char *name)
{
    static const char *const names[] = {"auto", "self", "thread", "shm",
                                        "mpi",  "ucx",  "nccl",   NULL};
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return 1;
    return 0;
}

tac_status tac__transport_choose(tac__boot *b, tac_comm *c)
{
    const char *name = c->config.transport;
    /* One rank needs no transport, whatever it is called. */
    if (strcmp(name, "auto") == 0 || (b->size == 1 && is_known_name(name)))
        return choose_auto(b, c);
    return choose_named(b, c);
}
