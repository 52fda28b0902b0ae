/* comm.c: the life of a communicator.
 *
 * Creation: hello (everybody's version, configuration and place), transport
 * (choose.c), the rest of this rank's memory, and a last agreement. From hello
 * on, all ranks return the same verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "comm_impl.h"
#include "levels.h"
#include "emulation.h"

#define SPINS 2000
/* Where the transport ends a sleep in time, or a network is waited for, which
 * takes longer than a sleep. */
#define SPINS_FEW 50

static tac_status keep_offers(tac_comm *c, const tac_transport_offer *offers,
                              size_t n)
{
    if (n == 0) return TAC_OK;
    c->offers = malloc(n * sizeof *offers);
    if (!c->offers) return TAC_ERR_NOMEM;
    memcpy(c->offers, offers, n * sizeof *offers);
    c->n_offers = n;
    for (size_t i = 0; i < n; i++)
        if (offers[i].transport->retain)
            offers[i].transport->retain(offers[i].arg);
    return TAC_OK;
}

static void drop_offers(tac_comm *c)
{
    for (size_t i = 0; i < c->n_offers; i++)
        if (c->offers[i].transport->release)
            c->offers[i].transport->release(c->offers[i].arg);
    free(c->offers);
}

/* The caller's are borrowed for the call only. */
static tac_status keep_texts(tac_comm *c)
{
    tac_comm_config *k = &c->config;
    const char **text[] = {&k->emulate, &k->algorithms, &k->tune_file,
                           &k->dump};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        if (!*text[i]) continue;
        c->texts[i] = strdup(*text[i]);
        if (!c->texts[i]) return TAC_ERR_NOMEM;
        *text[i] = c->texts[i];
    }
    return TAC_OK;
}

static tac_comm *new_comm(tac_context *ctx, int rank, int size,
                          const tac_comm_config *config)
{
    tac_comm *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->ctx = ctx;
    c->rank = rank;
    c->size = size;
    c->config = *config;
    c->config.staging_bytes = tac__staging_bytes(config->staging_bytes, size);
    snprintf(c->transport_text, sizeof c->transport_text, "%s",
             config->transport);
    c->config.transport = c->transport_text;
    c->bell = &c->own_bell;
    c->kernels = tac__reduce_table_best();
    c->codec_kernels = tac__codec_kernels_best();
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->error_lock, NULL);
    pthread_mutex_init(&c->recorder.lock, NULL);
    return c;
}

/* In the reverse order of creation; anything may be missing. */
static void free_comm(tac_comm *c)
{
    if (!c) return;
    tac__levels_close(c);
    const int healthy = tac__comm_status(c) == TAC_OK;
    tac__liveness_close(&c->liveness);
    const int clean =
        c->transport && (c->transport->flags & TAC_TRANSPORT_CLEAN);
    if (c->transport) c->transport->close(c->link, healthy);
    tac__segments_free(c);
    tac__scratch_close(&c->scratch, healthy || c->domain || clean);
    tac__emulation_leave(c);
    tac__p2p_close(&c->p2p, healthy || c->domain || clean);
    tac__choice_close(c);
    free(c->roots);
    free(c->peers);
    drop_offers(c);
    for (size_t i = 0; i < 4; i++) free(c->texts[i]);
    tac__recorder_close(c);
    pthread_mutex_destroy(&c->error_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Ranks of this host that share its cores. */
static int local_ranks(const tac__boot *b)
{
    int n = 0;
    for (int r = 0; r < b->size; r++)
        n += b->peers[r].host == b->peers[b->rank].host;
    return n;
}

static tac_status complete(tac__boot *b, tac_comm *c)
{
    const int p2p = (c->transport->flags & TAC_TRANSPORT_P2P) != 0;
    c->hosts = b->hosts;
    c->peers = b->peers;
    b->peers = NULL;
    if (p2p && c->config.message_bytes > c->transport->max_message)
        c->config.message_bytes = c->transport->max_message;
    if (c->under) c->bell = &c->under->line[c->rank]->bell;
    TAC_TRY(
        tac__scratch_open(&c->scratch, c->size, p2p, c->config.staging_bytes));
    if (!tac__p2p_open(&c->p2p, c->size)) return TAC_ERR_NOMEM;
    TAC_TRY(tac__recorder_open(c));
    TAC_TRY(tac__liveness_open(&c->liveness, c->peers, c->rank, c->size));
    tac__emulation_show(c);
    c->engine = tac__engine_of(c->ctx);
    return c->engine ? TAC_OK : TAC_ERR_NOMEM;
}

/* Are there more ranks than cores? A part of a crowd is crowded too. */
static int is_crowded(const tac__boot *b, tac_comm *c, const tac_comm *parent)
{
    if (c->under && parent && parent->under && parent->under->crowded)
        c->under->crowded = 1;
    if (c->under) return c->under->crowded;
    return local_ranks(b) > tac_context_cpus(c->ctx) ||
           (parent && parent->size > 1 && parent->spins == 0);
}

static tac_status connect_ranks(tac__boot *b, tac_comm *c,
                                const tac_comm *parent)
{
    TAC_TRY(tac__emulation_join(b, c, parent));
    TAC_TRY(tac__transport_choose(b, c));
    c->under = c->domain;
    TAC_TRY(tac__emulation_wrap(b, c));
    c->spins = is_crowded(b, c, parent)              ? 0
               : c->transport->sleep || b->hosts > 1 ? SPINS_FEW
                                                     : SPINS;
    const tac_status s = complete(b, c);
    if (s < 0) tac__boot_note(b, s, "no memory for a communicator");
    return tac__boot_agree(b, s);
}

/* TIMEOUT was reported where it was seen, the others are shared. */
static tac_status report(const tac__boot *b, tac_status s)
{
    if (s == TAC_ERR_TIMEOUT || !*b->text) return s;
    if (b->rank == 0)
        return tac_fail(b->ctx, s, "no communicator of %d ranks: %s", b->size,
                        b->text);
    return tac_fail_quiet(b->ctx, s, "no communicator of %d ranks: %s", b->size,
                          b->text);
}

static tac_status create(tac__boot *b, const tac_transport_offer *offers,
                         size_t n, const tac_comm_config *config,
                         const tac_comm *parent, tac_comm **out)
{
    TAC_TRY(tac__boot_hello(b, tac__config_hash(config)));
    tac_comm *c = new_comm(b->ctx, b->rank, b->size, config);
    tac_status s = c ? keep_offers(c, offers, n) : TAC_ERR_NOMEM;
    if (s == TAC_OK) s = keep_texts(c);
    if (s < 0) tac__boot_note(b, s, "no memory for a communicator");
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = connect_ranks(b, c, parent);
    if (s == TAC_OK) s = tac__choice_open(b, c);
    if (s == TAC_OK) s = tac__boot_agree(b, tac__engine_add(c->engine, c));
    if (s == TAC_OK)
        *out = c;
    else
        tac_comm_destroy(c);
    return s;
}

static tac_status check_arguments(tac_context *ctx, int rank, int size,
                                  const tac_oob *oob, tac_comm **out)
{
    if (!ctx || !out || size < 1 || rank < 0 || rank >= size)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_comm_create: rank %d of %d, context %p, out %p",
                        rank, size, (void *)ctx, (void *)out);
    if (size > 1 && (!oob || !oob->start || !oob->test || !oob->cancel))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_comm_create: %d ranks need an out-of-band "
                        "all-gather (start, test, cancel)",
                        size);
    return TAC_OK;
}

tac_status tac__comm_create(tac_context *ctx, int rank, int size,
                            const tac_oob *oob,
                            const tac_transport_offer *offers, size_t n,
                            const tac_comm_config *config,
                            const tac_comm *parent, tac_comm **out)
{
    tac__boot b;
    tac_comm_config filled;
    TAC_TRY(check_arguments(ctx, rank, size, oob, out));
    TAC_TRY(tac__config_fill(ctx, config, &filled));
    TAC_TRY(tac__boot_init(&b, ctx, rank, size, oob, filled.timeout_ms));
    tac_comm *c = NULL;
    tac_status s = create(&b, offers, n, &filled, parent, &c);
    if (s < 0) s = report(&b, s);
    tac__boot_free(&b);
    if (s == TAC_OK) s = tac__levels_open(c);
    if (s == TAC_OK)
        *out = c;
    else
        tac_comm_destroy(c);
    return s;
}

tac_status tac_comm_create_with(tac_context *ctx, int rank, int size,
                                const tac_oob *oob,
                                const tac_transport_offer *offers, size_t n,
                                const tac_comm_config *config, tac_comm **out)
{
    return tac__comm_create(ctx, rank, size, oob, offers, n, config, NULL, out);
}

tac_status tac_comm_create_oob(tac_context *ctx, int rank, int size,
                               const tac_oob *oob,
                               const tac_comm_config *config, tac_comm **out)
{
    return tac_comm_create_with(ctx, rank, size, oob, NULL, 0, config, out);
}

tac_status tac_comm_create_self(tac_context *ctx, const tac_comm_config *config,
                                tac_comm **out)
{
    return tac_comm_create_with(ctx, 0, 1, NULL, NULL, 0, config, out);
}

void tac_comm_destroy(tac_comm *c)
{
    if (!c) return;
    if (c->listed) {
        tac__engine_inherit(c->engine, c);
        pthread_mutex_lock(&c->lock);
        if (c->busy && tac__comm_status(c) == TAC_OK)
            tac__comm_poison(c, TAC_ERR_ABORTED,
                             "rank %d destroyed the communicator with "
                             "requests unfinished",
                             c->rank);
        pthread_mutex_unlock(&c->lock);
        tac__bell_bump(c->bell);
        tac__engine_remove(c->engine, c);
    }
    tac__req_orphan_all(c);
    free_comm(c);
}
