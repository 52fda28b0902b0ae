/* Building what local modes need: workers, leaders, the registry. */
#include "local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local_options.h"
#include "memory.h"

static int worker_size(const tac_replica *r)
{
    return (int)r->config->worker_size;
}

static int is_leader(const tac_replica *r)
{
    return tac_comm_rank(r->comm) % worker_size(r) == 0;
}

tac_status tac__local_split(tac_replica *r)
{
    const int rank = tac_comm_rank(r->comm);

    if (!tac_train_config_is_local(r->config)) return TAC_OK;
    if (worker_size(r) == 1) return TAC_OK;
    TAC_TRY(
        tac_comm_split(r->comm, rank / worker_size(r), rank, &r->own_worker));
    r->worker = r->own_worker;
    return TAC_OK;
}

/* ---- the registry ---------------------------------------------------------
 */

static tac_status no_memory(const tac_replica *r)
{
    return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for local modes");
}

/* In the order of the arena, so that neighbours make one stretch. */
static tac_status add_params(tac_replica *r, const int64_t *layer)
{
    const size_t *order = tac_params_order(r->params);

    for (size_t k = 0; k < tac_params_count(r->params); k++) {
        const tac_param *p = tac_params_get(r->params, order[k]);

        TAC_TRY(tac_localsgd_add(
            r->local->lsgd,
            &(tac_localsgd_tensor){
                .name = p->name,
                .role = TAC_ROLE_PARAM,
                .merge = p->flags & TAC_PARAM_FROZEN ? TAC_MERGE_FROZEN
                                                     : TAC_MERGE_AVERAGE,
                .dtype = TAC_F32,
                .count = p->count,
                .data = tac_params_value(r->params, order[k]),
                .layer = layer[order[k]]}));
    }
    return TAC_OK;
}

/* One part of the optimizer's state: its arrays of floats are moments. */
static tac_status see_moment(void *replica, const tac_state_item *item)
{
    tac_replica *r = replica;
    tac__local *l = r->local;
    const size_t count = tac_state_item_count(item);
    const int reset = !strcmp(r->config->moments, "reset");

    if (item->dtype != TAC_F32 || item->ndim == 0) return TAC_OK;
    if (l->n_moments == l->room) {
        const size_t room = 2 * l->room + 16;
        struct tac__moment *p = realloc(l->moments, room * sizeof *p);
        if (!p) return no_memory(r);
        l->moments = p;
        l->room = room;
    }
    l->moments[l->n_moments++] = (struct tac__moment){item->data, count};
    if (!l->lsgd) return TAC_OK;
    return tac_localsgd_add(
        l->lsgd, &(tac_localsgd_tensor){.name = item->name,
                                        .role = TAC_ROLE_MOMENT,
                                        .merge = reset ? TAC_MERGE_RESET
                                                       : TAC_MERGE_AVERAGE,
                                        .dtype = TAC_F32,
                                        .count = count,
                                        .data = item->data,
                                        .layer = -1});
}

static tac_status add_moments(tac_replica *r)
{
    const tac_state_visitor v = {see_moment, r, NULL};

    if (!strcmp(r->config->moments, "keep")) return TAC_OK;
    return tac_optimizer_walk(r->optimizer, &v);
}

int64_t tac__local_interval(const tac_localsgd_config *c)
{
    return c->n_levels > 0 ? c->levels[c->n_levels - 1].every
                           : c->schedule.every;
}

/* ---- life -----------------------------------------------------------------
 */

tac_status tac__local_configure(const tac_replica *r, uint64_t total_steps,
                                int64_t *layer, tac_localsgd_config *out)
{
    const int workers = tac_comm_size(r->comm) / worker_size(r);

    return tac_train_config_localsgd(r->ctx, r->config, workers,
                                     tac__local_layers(r->params, layer),
                                     (int64_t)total_steps, out);
}

const char *tac__local_describe(const tac_replica *r, uint64_t total_steps,
                                char *buf, size_t bytes)
{
    const int workers = tac_comm_size(r->comm) / worker_size(r);
    char size[32] = "", text[400];
    tac_localsgd_config c;

    buf[0] = '\0';
    if (!tac_train_config_is_local(r->config)) return buf;
    if (tac__local_configure(r, total_steps, NULL, &c) < 0) return buf;
    if (worker_size(r) > 1)
        snprintf(size, sizeof size, " of %d ranks", worker_size(r));
    snprintf(buf, bytes, "%d worker%s%s: %s", workers, workers == 1 ? "" : "s",
             size, tac_localsgd_describe(&c, text, sizeof text));
    return buf;
}

static tac_status make_leader(tac_replica *r, const int64_t *layer)
{
    tac__local *l = r->local;
    const int leads = is_leader(r);

    if (worker_size(r) > 1)
        TAC_TRY(tac_comm_split(r->comm, leads ? 0 : -1, tac_comm_rank(r->comm),
                               &l->leaders));
    if (!leads) return TAC_OK;
    TAC_TRY(tac_localsgd_create(l->leaders ? l->leaders : r->comm, &l->config,
                                &l->lsgd));
    return add_params(r, layer);
}

tac_status tac__local_create(tac_replica *r, uint64_t total_steps)
{
    const size_t n = tac_params_count(r->params);
    int64_t *layer;
    tac__local *l;
    tac_status s;

    if (!tac_train_config_is_local(r->config)) return TAC_OK;
    layer = calloc(n + 1, sizeof *layer);
    l = r->local = calloc(1, sizeof *l);
    if (!layer || !l) {
        free(layer);
        return no_memory(r);
    }
    l->workers = tac_comm_size(r->comm) / worker_size(r);
    l->clean = 1;
    s = tac__local_configure(r, total_steps, layer, &l->config);
    if (s >= 0) s = make_leader(r, layer);
    free(layer);
    TAC_TRY(s);
    TAC_TRY(add_moments(r));
    if (l->workers == 1) return TAC_OK;
    l->mean = calloc(tac_params_elements(r->params) + 1, sizeof *l->mean);
    return l->mean ? TAC_OK : no_memory(r);
}

void tac__local_destroy(tac_replica *r)
{
    tac__local *l = r->local;

    if (!l) return;
    tac_localsgd_destroy(l->lsgd);
    tac_comm_destroy(l->leaders);
    free(l->moments);
    free(l->mean);
    free(l);
    r->local = NULL;
}

tac_status tac__local_start(tac_replica *r, int loaded)
{
    tac__local *l = r->local;

    if (!l) return TAC_OK;
    l->skipped = r->scaling.skipped;
    if (!l->lsgd) return TAC_OK;
    return tac_localsgd_start(l->lsgd,
                              loaded ? TAC_START_LOADED : TAC_START_VERIFY);
}

double tac__local_wait_s(const tac_replica *r)
{
    tac_comm_op_stats s;

    if (!r->local->lsgd) return 0;
    tac_localsgd_comm_stats(r->local->lsgd, &s);
    return s.wait_s;
}
