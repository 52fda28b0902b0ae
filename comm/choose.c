/* choose.c: which transport connects the ranks.
 *
 * "auto" takes the first that every rank finds usable and that opens: self,
 * thread, shm, then what was offered (mpi), then ucx, a plug-in that is loaded
 * only now. All decisions are agreed, so all ranks try the same ones in the
 * same order. */
#include <stdio.h>
#include <string.h>

#include "comm_impl.h"
#include "tacit/plugin.h"
#include "transports/builtin.h"

#define UCX_LIBRARY "libtacit_ucx.so"

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

static void explain_means(tac_comm *c)
{
    char means[64] = "";
    const size_t n = strlen(c->why);
    if (!c->transport->describe) return;
    c->transport->describe(c->link, means, sizeof means);
    if (*means) snprintf(c->why + n, sizeof c->why - n, ", through %s", means);
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
    explain_means(c);
    return TAC_OK;
}

static tac_status load_ucx(tac__boot *b, const tac_transport **out)
{
    char why[TAC__TEXT] = "";
    const tac_plugin *plugin = NULL;
    const tac_status s = tac_plugin_find(UCX_LIBRARY, &plugin, why, sizeof why);
    if (s == TAC_OK && plugin->transport) {
        *out = plugin->transport;
        return TAC_OK;
    }
    return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                          "transport ucx can't be used: %.112s; apt install "
                          "libucx-dev, build with -DTACIT_WITH_UCX=ON, or set "
                          "TACIT_PLUGIN_PATH",
                          why);
}

static tac_status try_ucx(tac__boot *b, tac_comm *c)
{
    tac_transport_offer t = {NULL, NULL};
    TAC_TRY(tac__boot_agree(b, load_ucx(b, &t.transport)));
    return try_one(b, c, t);
}

static int applies(const tac__boot *b, const tac_comm *c, tac_transport_offer t)
{
    char why[64];
    if (b->size == 1) return t.transport == &tac__transport_self;
    /* Built-in ones decide from what all ranks know. */
    return t.arg != NULL ||
           t.transport->usable(b, t.arg, &c->config, why, sizeof why);
}

/* Something better failed. */
static void say_fallback(const tac_comm *c, const char *failed)
{
    if (*failed && c->rank == 0)
        tac_log(c->ctx, TAC_LOG_WARN, "transport %s is used, because %s",
                c->transport->name, failed);
}

static tac_status choose_auto(tac__boot *b, tac_comm *c)
{
    tac_status s = TAC_ERR_UNSUPPORTED;
    char failed[TAC__TEXT] = "";
    for (size_t i = 0; nth(c, i).transport; i++) {
        const tac_transport_offer t = nth(c, i);
        if (!applies(b, c, t)) continue;
        s = try_one(b, c, t);
        if (s == TAC_OK) say_fallback(c, failed);
        if (s != TAC_ERR_UNSUPPORTED && s != TAC_ERR_NOMEM) return s;
        snprintf(failed, sizeof failed, "%s failed: %.200s", t.transport->name,
                 b->text);
    }
    if (b->processes == 1) return s;
    s = try_ucx(b, c);
    if (s == TAC_OK) say_fallback(c, failed);
    return s;
}

static tac_status choose_named(tac__boot *b, tac_comm *c)
{
    const char *name = c->config.transport;
    for (size_t i = 0; nth(c, i).transport; i++) {
        const tac_transport_offer t = nth(c, i);
        if (strcmp(t.transport->name, name) == 0) return try_one(b, c, t);
    }
    if (strcmp(name, "ucx") == 0) return try_ucx(b, c);
    return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                          "there is no transport '%s' here (self, thread and "
                          "shm always are; for mpi, in a build with MPI: start "
                          "the program with mpirun; in code: "
                          "tac_comm_create_mpi)",
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
