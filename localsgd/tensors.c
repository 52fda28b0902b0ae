/* tensors.c: creating, the registry, destroying. */
#include <stdlib.h>
#include <string.h>

#include "impl.h"

tac_status tac__lsgd_no_memory(const tac_localsgd *l, size_t bytes)
{
    return tac_fail(l->ctx, TAC_ERR_NOMEM,
                    "localsgd: no memory for %zu bytes; more fragments need "
                    "less staging, plain averaging needs no anchor",
                    bytes);
}

tac_status tac__lsgd_poison(tac_localsgd *l, tac_status s)
{
    if (s < 0 && l->failed == TAC_OK) l->failed = s;
    return s;
}

tac_status tac_localsgd_create(tac_comm *comm,
                               const tac_localsgd_config *config,
                               tac_localsgd **out)
{
    if (!comm || !config || !out) return TAC_ERR_ARG;
    tac_context *ctx = tac_comm_context(comm);
    TAC_TRY(tac_localsgd_check(ctx, config, tac_comm_size(comm), 0));
    tac_localsgd *l = calloc(1, sizeof *l);
    if (!l) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for localsgd");
    l->ctx = ctx;
    l->comm = comm;
    l->rank = tac_comm_rank(comm);
    l->size = tac_comm_size(comm);
    l->config = *config;
    l->config.codec = NULL;
    l->n_levels = config->n_levels > 0 ? config->n_levels : 1;
    if (config->codec && strcmp(config->codec, "none") != 0) {
        l->config.codec = strdup(config->codec);
        if (!l->config.codec) {
            free(l);
            return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for localsgd");
        }
    }
    *out = l;
    return TAC_OK;
}

/* ---- the registry ---------------------------------------------------------
 */

static tac_merge merge_of(const tac_localsgd_tensor *t)
{
    if (t->merge != TAC_MERGE_DEFAULT) return t->merge;
    switch (t->role) {
    case TAC_ROLE_PARAM:
    case TAC_ROLE_STATISTIC: return TAC_MERGE_AVERAGE;
    case TAC_ROLE_COUNTER: return TAC_MERGE_MAX;
    case TAC_ROLE_MOMENT:
    case TAC_ROLE_BUFFER: return TAC_MERGE_KEEP;
    }
    return TAC_MERGE_KEEP;
}

static int64_t find(const tac_localsgd *l, const char *name)
{
    for (size_t i = 0; i < l->n_tensors; i++)
        if (strcmp(l->tensors[i].t.name, name) == 0) return (int64_t)i;
    return -1;
}

#define REFUSE(...) return tac_fail(l->ctx, TAC_ERR_ARG, __VA_ARGS__)

static tac_status check_merge(const tac_localsgd *l,
                              const tac_localsgd_tensor *t, tac_merge merge)
{
    const int counter = t->role == TAC_ROLE_COUNTER;
    if (t->role == TAC_ROLE_PARAM && merge != TAC_MERGE_AVERAGE &&
        merge != TAC_MERGE_FROZEN && merge != TAC_MERGE_KEEP)
        REFUSE("localsgd: parameter '%s' can be averaged, frozen or kept",
               t->name);
    if (counter && merge != TAC_MERGE_MAX && merge != TAC_MERGE_KEEP &&
        merge != TAC_MERGE_RESET && merge != TAC_MERGE_FROZEN)
        REFUSE("localsgd: counter '%s' can't be averaged; use MAX, KEEP, RESET "
               "or FROZEN",
               t->name);
    if (merge != TAC_MERGE_MOMENTS) return TAC_OK;
    const int64_t m = t->mean_of ? find(l, t->mean_of) : -1;
    if (m < 0 || l->tensors[m].t.count != t->count ||
        l->tensors[m].t.role == TAC_ROLE_PARAM ||
        l->tensors[m].t.merge != TAC_MERGE_AVERAGE)
        REFUSE("localsgd: variance '%s' needs mean_of, the name of an averaged "
               "tensor of %zu elements that was added before and is no "
               "parameter ('%s' is not)",
               t->name, t->count, t->mean_of ? t->mean_of : "");
    return TAC_OK;
}

static tac_status check_tensor(const tac_localsgd *l,
                               const tac_localsgd_tensor *t)
{
    if (!t->name || !*t->name) REFUSE("localsgd: a tensor has no name");
    if (find(l, t->name) >= 0)
        REFUSE("localsgd: two tensors are called '%s'", t->name);
    if ((int)t->role < 0 || (int)t->role >= TAC_TENSOR_ROLES ||
        (int)t->merge < 0 || t->merge > TAC_MERGE_FROZEN)
        REFUSE("localsgd: tensor '%s' has no such role or merge rule", t->name);
    const tac_dtype want = t->role == TAC_ROLE_COUNTER ? TAC_I64 : TAC_F32;
    if (t->dtype != want)
        REFUSE("localsgd: tensor '%s' is %s and must be %s; register f32 "
               "masters",
               t->name, tac_dtype_name(t->dtype), tac_dtype_name(want));
    if (t->count > 0 && !t->data)
        REFUSE("localsgd: tensor '%s' has no memory", t->name);
    if (t->role == TAC_ROLE_PARAM && t->layer < -1)
        REFUSE("localsgd: parameter '%s': layer %lld can't be", t->name,
               (long long)t->layer);
    return check_merge(l, t, merge_of(t));
}

static tac_status grow(tac_localsgd *l)
{
    if (l->n_tensors < l->room) return TAC_OK;
    const size_t room = 2 * l->room + 16;
    tac__tensor *p = realloc(l->tensors, room * sizeof *p);
    if (!p) return tac__lsgd_no_memory(l, room * sizeof *p);
    l->tensors = p;
    l->room = room;
    return TAC_OK;
}

tac_status tac_localsgd_add(tac_localsgd *l, const tac_localsgd_tensor *t)
{
    if (!l || !t) return TAC_ERR_ARG;
    if (l->opened)
        return tac_fail(l->ctx, TAC_ERR_STATE,
                        "localsgd: tensors are added before state is loaded "
                        "and before start");
    TAC_TRY(check_tensor(l, t));
    TAC_TRY(grow(l));
    tac__tensor *n = &l->tensors[l->n_tensors];
    *n = (tac__tensor){.t = *t, .mean = -1};
    n->t.merge = merge_of(t);
    n->t.name = strdup(t->name);
    if (!n->t.name) return tac__lsgd_no_memory(l, strlen(t->name));
    if (n->t.merge == TAC_MERGE_MOMENTS) n->mean = find(l, t->mean_of);
    n->t.mean_of = NULL;
    l->n_tensors++;
    return TAC_OK;
}

/* ---- the end --------------------------------------------------------------
 */

/* Communicators go first: a failed one may still use buffers. */
static void close_level(tac__level *v)
{
    tac_comm_destroy(v->data);
    tac_comm_destroy(v->control);
    tac_codec_destroy(v->codec);
}

void tac_localsgd_destroy(tac_localsgd *l)
{
    if (!l) return;
    for (int i = 0; i < l->n_levels; i++) close_level(&l->levels[i]);
    for (int64_t i = 0; i < l->n_flights; i++) {
        (void)tac_wait(l->flights[i].req, 0); /* gives back what is orphaned */
        free(l->flights[i].buf);
    }
    for (size_t i = 0; i < l->n_tensors; i++)
        free((char *)l->tensors[i].t.name);
    for (int i = 0; i < TAC__OUTER_ARRAYS; i++) free(l->outer[i]);
    free((char *)l->config.codec);
    free(l->tensors);
    free(l->layer_elements);
    free(l->fragments);
    free(l->stretches);
    free(l->anchor);
    free(l->own);
    free(l->staging);
    free(l->merged);
    free(l->counters);
    free(l->flights);
    free(l->cards);
    free(l);
}

size_t tac_localsgd_elements(const tac_localsgd *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_tensors; i++)
        if (l->tensors[i].t.role == TAC_ROLE_PARAM) n += l->tensors[i].t.count;
    return n;
}
