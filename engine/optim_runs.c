/* Cutting the flat arenas into kernel calls.
 *
 * Neighbours with dense moments and equal settings are one call, which takes
 * their padding along, where everything is 0 and stays 0; but 0 / (sqrt(0) +
 * eps) is no number if eps is 0, so then each tensor is a run of its own,
 * without padding. So are tensors that are rounded stochastically, whose random
 * numbers count from the tensor's start. */
#include <stdlib.h>

#include "optim_impl.h"

static int is_16_bit(const tac_optimizer *o)
{
    const tac_dtype t = tac_params_dtype(o->params);
    return t == TAC_F16 || t == TAC_BF16;
}

static int eps_is_zero(const tac_optimizer *o)
{
    return o->config.kind != TAC_OPTIMIZER_SGD && (float)o->config.eps == 0.0F;
}

static int is_alone(const tac_optimizer *o, const tac__slot *slot)
{
    if (slot->form != TAC__FORM_DENSE || eps_is_zero(o)) return 1;
    return o->config.stochastic_rounding && is_16_bit(o);
}

/* Whether a tensor at `offset` continues the run, in all arenas. */
static int continues(const tac_optimizer *o, const tac__run *r,
                     const tac__slot *slot, size_t offset)
{
    const size_t bytes =
        r->count * tac_dtype_size(tac_params_grad_dtype(o->params));

    if (is_alone(o, r->slot) || offset != r->offset + r->count) return 0;
    if (r->slot->lr_scale != slot->lr_scale ||
        r->slot->weight_decay != slot->weight_decay)
        return 0;
    for (int m = 0; m < slot->n_parts; ++m)
        if (slot->parts[m].offset != r->slot->parts[m].offset + bytes) return 0;
    return 1;
}

static void add(tac_optimizer *o, size_t index)
{
    const tac_param *q = tac_params_get(o->params, index);
    const tac__slot *slot = &o->slots[index];
    const int alone = is_alone(o, slot);
    const size_t count =
        alone ? q->count : tac__optimizer_padded(o->params, index);
    tac__run *last = o->n_runs > 0 ? &o->runs[o->n_runs - 1] : NULL;

    if (!alone && last != NULL && continues(o, last, slot, q->offset)) {
        last->count += count;
        return;
    }
    tac__run *r = &o->runs[o->n_runs++];
    *r = (tac__run){.offset = q->offset, .count = count, .slot = slot};
    r->rounding = (tac_round){.seed = o->config.seed,
                              .step = &o->part->scalars.applied,
                              .tensor = (uint32_t)index};
    if (o->config.stochastic_rounding && is_16_bit(o)) r->round = &r->rounding;
}

tac_status tac__optimizer_make_runs(tac_optimizer *o)
{
    const size_t n = tac_params_count(o->params);
    const size_t most = 65536; /* what a tac_round can tell apart */

    if (o->config.stochastic_rounding && is_16_bit(o) && n > most)
        return tac_fail(o->ctx, TAC_ERR_UNSUPPORTED,
                        "optimizer: stochastic rounding of %zu tensors; %zu "
                        "are possible",
                        n, most);
    o->runs = calloc(n + 1, sizeof *o->runs);
    if (o->runs == NULL)
        return tac_fail(o->ctx, TAC_ERR_NOMEM,
                        "optimizer: no memory for %zu runs", n);
    for (size_t k = 0; k < n; ++k) {
        const size_t index = tac_params_order(o->params)[k];
        if (o->slots[index].form != TAC__FORM_NONE) add(o, index);
    }
    return TAC_OK;
}

size_t tac_optimizer_runs(const tac_optimizer *o)
{
    return o->n_runs;
}
