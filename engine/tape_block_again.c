/* The backward half of blocks: running one again, recorded, and going back
 * through what it recorded.
 *
 * Outputs inside start with the gradients that they have outside, in the same
 * memory. Gradients of inputs are allocated before, since everything after is
 * released again. What backward has passed is memory for what is still to come:
 * gradients, those of the outputs included, and after a block the data of its
 * outputs. So blocks may grow towards the input: what they make inside goes
 * where outputs of the blocks after them were. */
#include "tape_block.h"

/* Inside, an output starts with the gradient that it has outside. */
static void lend_grads(const tac__block *b, tac_tensor *const *out)
{
    for (size_t i = 0; i < b->n_out; ++i) {
        tac_tensor *outer = b->out[i].outer, *inner = tac__root(out[i]);
        if (b->out[i].through || outer->base != NULL) continue;
        inner->uses += outer->uses + 1;
        inner->relu_done = outer->relu_done;
        inner->has_grad = outer->has_grad;
        inner->loss_grad = outer->loss_grad;
        inner->grad = outer->grad;
        inner->buffer = outer->buffer;
        if (outer->buffer != NULL) outer->buffer->shared = 1;
    }
}

static void take_back_grads(tac_tape *t, const tac__block *b)
{
    for (size_t i = 0; i < b->n_out; ++i) {
        tac_tensor *outer = b->out[i].outer;
        if (b->out[i].through || outer->buffer == NULL) continue;
        outer->buffer->shared = 0;
        tac__buffer_free(t, outer->buffer);
        outer->buffer = NULL;
        outer->grad = NULL;
        outer->has_grad = 0;
    }
}

/* The outputs' data has no readers left inside the tape. Losses and what has no
 * gradient are results, which the caller may still read. */
static tac_status reuse_outputs(tac_tape *t, const tac__block *b)
{
    for (size_t i = 0; i < b->n_out; ++i) {
        const tac_tensor *y = b->out[i].outer;
        if (b->out[i].through || y->base != NULL) continue;
        if (y->is_loss || !y->requires_grad || tac__is_redirected(t, y))
            continue;
        TAC_TRY(tac__reuse(t, y->data, tac_tensor_bytes(y)));
    }
    return TAC_OK;
}

static int any_grad(const tac__block *b)
{
    for (size_t i = 0; i < b->n_out; ++i)
        if (!b->out[i].through && tac__root(b->out[i].outer)->has_grad)
            return 1;
    return 0;
}

static tac_status prepare_inputs(tac_tape *t, const tac__block *b)
{
    for (size_t i = 0; i < b->n_in; ++i)
        if (tac__wants(b->in[i]))
            TAC_TRY(tac__grad_prepare(t, tac__root(b->in[i])));
    return TAC_OK;
}

/* Runs fn recorded, then goes back through what it recorded. */
static tac_status run_again(tac_tape *t, const tac__block *b)
{
    tac_tensor *out[TAC_BLOCK_MAX];
    tac__redirect redirects[TAC_BLOCK_MAX];
    const size_t first = t->ordinal;

    t->recording = 1;
    t->last = NULL;
    t->region = first;
    TAC_TRY(tac__borrow_free(t));
    t->dropouts = b->dropouts;
    t->cast = b->cast;
    t->n_redirects = tac__block_redirects(t, b, redirects);
    t->redirects = redirects;
    TAC_TRY(tac__block_call(t, b, out));
    TAC_TRY(tac__block_check_same(t, b, out, first));
    lend_grads(b, out);
    return tac__walk(t, t->last);
}

tac_status tac__block_backward(tac_tape *t, tac__node *node)
{
    tac__block *b = (tac__block *)node;

    if (!any_grad(b)) return TAC_OK;
    TAC_TRY(prepare_inputs(t, b));
    const tac__saved before = tac__block_save(t);
    const tac_status s = run_again(t, b);
    tac__block_restore(t, &before);
    take_back_grads(t, b);
    return s < 0 ? s : reuse_outputs(t, b);
}
