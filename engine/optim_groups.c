/* Settings by parameter: the decay rule, then the first group whose pattern
 * fits the name. A group that changes nothing is an error: it is a name
 * misspelt. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim_impl.h"

static double decay_of(const tac_optimizer_config *c, const tac_param *q)
{
    if ((q->flags & TAC_PARAM_NO_DECAY) != 0) return 0;
    return c->decay == TAC_DECAY_ALL || q->ndim >= 2 ? c->weight_decay : 0;
}

static int fits(const tac_param_group *g, const tac_param *q)
{
    return fnmatch(g->match, q->name, 0) == 0;
}

static void apply(const tac_param_group *g, tac__slot *slot)
{
    slot->group = g->match;
    slot->lr_scale = g->lr_scale;
    if (!isnan(g->weight_decay)) slot->weight_decay = g->weight_decay;
    slot->wide = g->optim_bits == 32;
}

static tac_status apply_group(const tac_params *params,
                              const tac_param_group *g, tac__slot *slots)
{
    tac_context *ctx = tac_device_context(tac_params_device(params));
    size_t fit = 0, taken = 0;

    for (size_t i = 0; i < tac_params_count(params); ++i) {
        if (!fits(g, tac_params_get(params, i))) continue;
        fit += 1;
        if (slots[i].group != NULL) continue;
        apply(g, &slots[i]);
        taken += 1;
    }
    if (fit == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: group \"%s\" fits none of %zu parameters",
                        g->match, tac_params_count(params));
    if (taken == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: group \"%s\" fits only parameters of "
                        "earlier groups; put it before them",
                        g->match);
    return TAC_OK;
}

tac_status tac__optimizer_groups(const tac_params *params,
                                 const tac_optimizer_config *c,
                                 tac__slot *slots)
{
    for (size_t i = 0; i < tac_params_count(params); ++i) {
        slots[i].lr_scale = 1;
        slots[i].weight_decay = decay_of(c, tac_params_get(params, i));
    }
    for (size_t i = 0; i < c->n_groups; ++i)
        TAC_TRY(apply_group(params, &c->groups[i], slots));
    return TAC_OK;
}

tac_status tac__optimizer_copy_groups(tac_optimizer *o)
{
    const tac_param_group *from = o->config.groups;
    const size_t n = o->config.n_groups;

    o->config.groups = NULL;
    if (n == 0) return TAC_OK;
    o->groups = calloc(n, sizeof *o->groups);
    if (o->groups == NULL) goto no_memory;
    o->config.groups = o->groups;
    for (size_t i = 0; i < n; ++i) {
        o->groups[i] = from[i];
        o->groups[i].match = strdup(from[i].match);
        if (o->groups[i].match == NULL) goto no_memory;
    }
    return TAC_OK;

no_memory:
    return tac_fail(o->ctx, TAC_ERR_NOMEM,
                    "optimizer: no memory for %zu groups", n);
}

void tac__optimizer_free_groups(tac_optimizer *o)
{
    if (o->groups == NULL) return;
    for (size_t i = 0; i < o->config.n_groups; ++i)
        free((void *)(uintptr_t)o->groups[i].match);
    free(o->groups);
}
