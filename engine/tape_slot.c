/* Places for gradients that kernels write: straight into the gradient where
 * they can, else scratch, which is added or cast when the slot is closed.
 *
 * Cost: nothing for a kernel that can add and writes the gradient's own type,
 * as those that make the gradients of weights do, in 16-bit tables too. Else
 * one pass. */
#include "tape_impl.h"

static tac_status open_scratch(tac_tape *t, tac__slot *s, size_t bytes)
{
    TAC_TRY(tac__buffer_new(t, bytes, &s->scratch));
    s->ptr = s->scratch->ptr;
    s->accumulate = 0;
    return TAC_OK;
}

static size_t bytes_as(const tac_tensor *x, tac_dtype dtype)
{
    return tac_tensor_count(x) * tac_dtype_size(dtype);
}

tac_status tac__slot_open_as(tac_tape *t, tac_tensor *x, tac_dtype written,
                             int kernel_can_add, tac__slot *s)
{
    s->root = tac__root(x);
    s->scratch = NULL;
    s->written = written;
    TAC_TRY(tac__grad_prepare(t, s->root));
    s->add = s->accumulate = tac__must_add(t, s->root);
    s->ptr = s->root->grad;
    if (written != tac__grad_dtype(t, x) || (s->accumulate && !kernel_can_add))
        return open_scratch(t, s, bytes_as(x, written));
    return TAC_OK;
}

tac_status tac__slot_open(tac_tape *t, tac_tensor *x, int kernel_can_add,
                          tac__slot *s)
{
    return tac__slot_open_as(t, x, x->dtype, kernel_can_add, s);
}

/* Scratch that close throws away, for what a kernel can't leave out. */
static tac_status open_unwanted(tac_tape *t, tac_tensor *x, tac_dtype written,
                                tac__slot *s)
{
    s->root = NULL;
    s->written = written;
    return open_scratch(t, s, bytes_as(x, written));
}

static void mark_grad(tac_tape *t, tac_tensor *root)
{
    root->has_grad = 1;
    if (root->param >= 0) t->filled[root->param] = t->touched[root->param] = 1;
}

void tac__slot_claim(tac_tape *t, const tac__slot *s)
{
    if (s->root != NULL) mark_grad(t, s->root);
}

/* 16-bit sums are made in 16-bit tables: the cast does not add there. */
static tac_status add_cast(tac_tape *t, const tac__slot *s, tac_dtype to)
{
    const size_t n = tac_tensor_count(s->root);
    tac__buffer *b = NULL;

    TAC_TRY(tac__buffer_new(t, bytes_as(s->root, to), &b));
    TAC__RUN(t, to, cast(&t->kc, n, s->written, s->ptr, to, b->ptr, 0));
    TAC__RUN(t, to, axpy(&t->kc, n, 1.0, b->ptr, s->root->grad));
    tac__buffer_free(t, b);
    return TAC_OK;
}

/* Scratch becomes, or is added to, the gradient. */
static tac_status use_scratch(tac_tape *t, const tac__slot *s)
{
    const size_t n = tac_tensor_count(s->root);
    const tac_dtype to = tac__grad_dtype(t, s->root);

    if (s->written == to)
        TAC__RUN(t, to, axpy(&t->kc, n, 1.0, s->ptr, s->root->grad));
    else if (s->add && to != tac__wide(to))
        TAC_TRY(add_cast(t, s, to));
    else
        TAC__RUN(
            t, to,
            cast(&t->kc, n, s->written, s->ptr, to, s->root->grad, s->add));
    return TAC_OK;
}

tac_status tac__slot_close(tac_tape *t, tac__slot *s)
{
    if (s->scratch != NULL && s->root != NULL) TAC_TRY(use_scratch(t, s));
    if (s->scratch != NULL) tac__buffer_free(t, s->scratch);
    if (s->root != NULL) mark_grad(t, s->root);
    s->scratch = NULL;
    return TAC_OK;
}

/* A kernel that makes both gradients has one `accumulate` for the two: both are
 * added to where they lie, or neither. */
static int can_add_weights(const tac_tape *t, const tac_tensor *w,
                           const tac_tensor *b, tac_dtype written)
{
    if (!tac__wants(w) || tac__grad_dtype(t, w) != written) return 0;
    if (!tac__wants(b)) return 1;
    return tac__grad_dtype(t, b) == written &&
           tac__must_add(t, w) == tac__must_add(t, b);
}

tac_status tac__weights_open(tac_tape *t, tac_tensor *w, tac_tensor *b,
                             tac__weight_slots *s)
{
    const tac_dtype written = tac__wide(w->dtype);
    const int can_add = can_add_weights(t, w, b, written);

    s->b = (tac__slot){.root = NULL};
    if (tac__wants(w))
        TAC_TRY(tac__slot_open_as(t, w, written, can_add, &s->w));
    else
        TAC_TRY(open_unwanted(t, w, written, &s->w));
    if (tac__wants(b))
        TAC_TRY(tac__slot_open_as(t, b, written, can_add, &s->b));
    s->accumulate = s->w.accumulate;
    return TAC_OK;
}

tac_status tac__weights_close(tac_tape *t, tac__weight_slots *s)
{
    TAC_TRY(tac__slot_close(t, &s->w));
    return tac__slot_close(t, &s->b);
}
