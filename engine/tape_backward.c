/* Walking the records backwards and saying which gradients are final.
 *
 * A parameter's gradient is final when the last of its recorded uses has been
 * passed; the counts are known because forward has ended. */
#include "tape_impl.h"

static tac_status call_hook(tac_tape *t, size_t param, int unused)
{
    const tac_grad_hooks *h = &t->hooks;

    if (t->dry) return TAC_OK;
    if (unused && h->unused != NULL)
        return h->unused(h->arg, param, t->kc.queue);
    return h->ready != NULL ? h->ready(h->arg, param, t->kc.queue) : TAC_OK;
}

static tac_status report(tac_tape *t, size_t param, int unused)
{
    t->final[param] = 1;
    t->final_order[t->n_final++] = param;
    return call_hook(t, param, unused);
}

static tac_status pass_uses(tac_tape *t, const tac__node *node)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i) {
        if (node->in[i] == NULL) continue;
        const tac_tensor *root = tac__root(node->in[i]);
        if (root->param < 0) continue;
        const size_t p = (size_t)root->param;
        t->pending[p] -= 1;
        if (t->pending[p] == 0 && t->touched[p]) TAC_TRY(report(t, p, 0));
    }
    return TAC_OK;
}

static tac_status run_node(tac_tape *t, tac__node *node)
{
    if (node->out != NULL && !node->out->has_grad) return TAC_OK;
    const uint64_t begin = tac__span_begin(t);
    TAC_TRY(node->op->backward(t, node));
    tac__span_end(t, node->op->backward_name, begin);
    return TAC_OK;
}

/* Nobody will read the gradient of this activation again. One that is lent to
 * a block is free for the rest of the block. */
static tac_status free_out(tac_tape *t, tac_tensor *y)
{
    tac__buffer *b = y != NULL ? y->buffer : NULL;

    if (b == NULL) return TAC_OK;
    y->buffer = NULL;
    y->grad = NULL;
    y->has_grad = 0;
    if (b->shared) return tac__reuse(t, b->ptr, b->bytes);
    tac__buffer_free(t, b);
    return TAC_OK;
}

tac_status tac__walk(tac_tape *t, tac__node *last)
{
    for (tac__node *n = last; n != NULL; n = n->previous) {
        TAC_TRY(run_node(t, n));
        TAC_TRY(free_out(t, n->out));
        TAC_TRY(pass_uses(t, n));
    }
    return TAC_OK;
}

/* A gradient to which nothing in this group of steps has contributed. */
static tac_status clear_grad(tac_tape *t, size_t param)
{
    const tac_device_ops *ops = tac_device_ops_of(t->dev);
    tac_tensor *x = &t->param_tensors[param];

    x->has_grad = 1;
    if (t->filled[param]) return TAC_OK;
    t->filled[param] = 1;
    if (t->dry) return TAC_OK;
    return ops->fill(tac_device_impl(t->dev), x->grad, 0,
                     tac_tensor_count(x) * tac_dtype_size(t->grad_dtype),
                     t->kc.queue);
}

/* Parameters whose last use lies in a branch that the loss does not see are
 * final as well; those without any contribution are unused. */
static tac_status report_rest(tac_tape *t)
{
    for (size_t p = 0; p < t->n_params; ++p)
        if (!t->final[p] && t->touched[p]) TAC_TRY(report(t, p, 0));
    for (size_t p = 0; p < t->n_params; ++p) {
        if (t->final[p]) continue;
        TAC_TRY(clear_grad(t, p));
        t->n_unused += 1;
        TAC_TRY(report(t, p, 1));
    }
    return TAC_OK;
}

static tac_status check_backward(const tac_tape *t, const tac_tensor *loss)
{
    if (t->phase != TAC__FORWARD)
        return tac_fail(t->ctx, TAC_ERR_STATE,
                        "backward: call it once after tac_tape_begin and the "
                        "operations");
    if ((t->step.flags & TAC_TAPE_EVAL) != 0)
        return tac_fail(t->ctx, TAC_ERR_STATE,
                        "backward: the step was begun with TAC_TAPE_EVAL, "
                        "which records nothing");
    if (loss == NULL || !loss->is_loss)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "backward: it starts from a scalar loss, such as "
                        "tac_op_softmax_cross_entropy's");
    return TAC_OK;
}

tac_status tac_tape_backward(tac_tape *t, tac_tensor *loss, double scale)
{
    return tac_tape_backward_scaled(t, loss, scale, NULL);
}

tac_status tac_tape_backward_scaled(tac_tape *t, tac_tensor *loss, double scale,
                                    const float *loss_scale)
{
    TAC_TRY(check_backward(t, loss));
    t->phase = TAC__BACKWARD;
    t->loss_scale = loss_scale;
    t->counting = 0;
    if (loss->requires_grad) {
        loss->loss_grad = scale;
        loss->has_grad = 1;
    }
    TAC_TRY(tac__walk(t, t->last));
    TAC_TRY(report_rest(t));
    t->phase = TAC__DONE;
    return TAC_OK;
}

tac_status tac_tape_final_order(const tac_tape *t, size_t *out)
{
    if (t->phase != TAC__DONE)
        return tac_fail(t->ctx, TAC_ERR_STATE,
                        "final order: it is known after tac_tape_backward");
    for (size_t i = 0; i < t->n_params; ++i) out[i] = t->final_order[i];
    return TAC_OK;
}

size_t tac_tape_unused(const tac_tape *t, size_t *out)
{
    const size_t first = t->n_final - t->n_unused;

    if (t->phase != TAC__DONE) return 0;
    for (size_t i = 0; i < t->n_unused && out != NULL; ++i)
        out[i] = t->final_order[first + i];
    return t->n_unused;
}
