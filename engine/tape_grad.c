/* Gradients in backward: where they live, how they pass from result to input.
 *
 * A parameter's gradient is its place in the flat arena, which is never of 16
 * bits. An activation's has the activation's own type, in a buffer from a free
 * list on top of the step arena, freed as soon as the node that made the
 * activation has been passed. The first contribution overwrites, later ones
 * add, always in the order in which backward passes the consumers, so that bits
 * do not depend on whether a block ran again. */
#include "tape_impl.h"

/* Best fit from the free list, which is sorted by size; what would waste more
 * than half of a buffer is taken from the arena instead. */
tac__buffer *tac__take_free(tac_tape *t, size_t bytes)
{
    tac__buffer **at = &t->free_list;

    while (*at != NULL && (*at)->bytes < bytes) at = &(*at)->next;
    tac__buffer *b = *at;
    if (b == NULL || b->bytes / 2 > bytes) return NULL;
    *at = b->next;
    b->next = NULL;
    return b;
}

tac_status tac__buffer_new(tac_tape *t, size_t bytes, tac__buffer **out)
{
    tac__buffer *b = tac__take_free(t, bytes);

    if (b == NULL) {
        TAC_TRY(tac__meta_alloc(t, sizeof *b, (void **)&b));
        TAC_TRY(tac__alloc(t, bytes, &b->ptr));
        b->bytes = bytes;
    }
    *out = b;
    return TAC_OK;
}

void tac__buffer_free(tac_tape *t, tac__buffer *b)
{
    tac__buffer **at = &t->free_list;

    while (*at != NULL && (*at)->bytes < b->bytes) at = &(*at)->next;
    b->next = *at;
    *at = b;
}

tac_status tac__reuse(tac_tape *t, void *ptr, size_t bytes)
{
    tac__buffer *b = NULL;

    TAC_TRY(tac__meta_alloc(t, sizeof *b, (void **)&b));
    b->ptr = ptr;
    b->bytes = bytes;
    tac__buffer_free(t, b);
    return TAC_OK;
}

tac_status tac__borrow_free(tac_tape *t)
{
    const tac__buffer *from = t->free_list;
    tac__buffer **to = &t->free_list;

    for (; from != NULL; from = from->next) {
        TAC_TRY(tac__meta_alloc(t, sizeof **to, (void **)to));
        (*to)->ptr = from->ptr;
        (*to)->bytes = from->bytes;
        to = &(*to)->next;
    }
    return TAC_OK;
}

int tac__must_add(const tac_tape *t, const tac_tensor *x)
{
    const tac_tensor *root = x->base != NULL ? x->base : x;
    return root->param >= 0 ? t->filled[root->param] : root->has_grad;
}

/* While a block runs again, memory is given back at its end: a gradient that
 * must live longer has to be among the block's inputs. */
static tac_status check_region(const tac_tape *t, const tac_tensor *root)
{
    if (root->ordinal >= t->region) return TAC_OK;
    return tac_fail(t->ctx, TAC_ERR_STATE,
                    "block: it goes back to %s, which was made outside and is "
                    "not among its inputs: pass it in `in`",
                    tac__label(root, "a tensor"));
}

tac_status tac__grad_prepare(tac_tape *t, tac_tensor *root)
{
    if (root->param >= 0 || root->buffer != NULL || root->is_loss)
        return TAC_OK;
    TAC_TRY(check_region(t, root));
    TAC_TRY(tac__buffer_new(t, tac_tensor_bytes(root), &root->buffer));
    root->grad = root->buffer->ptr;
    return TAC_OK;
}

int tac__can_move(const tac_tape *t, const tac_tensor *y, const tac_tensor *x)
{
    const tac_tensor *to = x->base != NULL ? x->base : x;

    if (y->buffer == NULL) return 0;
    if (to->param >= 0 || to->buffer != NULL || to->has_grad) return 0;
    return to->ordinal >= t->region;
}

void tac__move(tac_tensor *y, tac_tensor *x)
{
    tac_tensor *to = tac__root(x);

    to->buffer = y->buffer;
    to->grad = y->grad;
    to->has_grad = 1;
    y->buffer = NULL;
    y->grad = NULL;
}

static tac_status copy(tac_tape *t, const tac_tensor *y, void *dst)
{
    const tac_device_ops *ops = tac_device_ops_of(t->dev);

    if (t->dry) return TAC_OK;
    return ops->copy(tac_device_impl(t->dev), dst, y->grad, tac_tensor_bytes(y),
                     TAC_COPY_DEVICE_TO_DEVICE, t->kc.queue);
}

static tac_status scale(tac_tape *t, tac_dtype dtype, size_t n, double factor,
                        void *p)
{
    if (factor != 1.0) TAC__RUN(t, dtype, scale(&t->kc, n, factor, p));
    return TAC_OK;
}

/* To a parameter's gradient, of another type: the factor comes after the cast,
 * so that it can't make a 16-bit number vanish. */
static tac_status pass_cast(tac_tape *t, const tac_tensor *y, tac_tensor *x,
                            double factor)
{
    const size_t n = tac_tensor_count(y);
    const tac_dtype to = tac__grad_dtype(t, x);
    tac__slot s;

    TAC_TRY(tac__slot_open_as(t, x, to, factor == 1.0, &s));
    TAC__RUN(t, to,
             cast(&t->kc, n, y->dtype, y->grad, to, s.ptr, s.accumulate));
    TAC_TRY(scale(t, to, n, factor, s.ptr));
    return tac__slot_close(t, &s);
}

tac_status tac__pass_grad(tac_tape *t, tac_tensor *y, tac_tensor *x,
                          double factor, int may_move)
{
    const size_t n = tac_tensor_count(y);
    tac__slot s;

    if (may_move && tac__can_move(t, y, x)) {
        TAC_TRY(scale(t, y->dtype, n, factor, y->grad));
        tac__move(y, x);
        return TAC_OK;
    }
    if (y->dtype != tac__grad_dtype(t, x)) return pass_cast(t, y, x, factor);
    TAC_TRY(tac__slot_open(t, x, 1, &s));
    if (s.accumulate) {
        TAC__RUN(t, y->dtype, axpy(&t->kc, n, factor, y->grad, s.ptr));
    } else {
        TAC_TRY(copy(t, y, s.ptr));
        TAC_TRY(scale(t, y->dtype, n, factor, s.ptr));
    }
    return tac__slot_close(t, &s);
}

tac_status tac__relu_mask(tac_tape *t, tac_tensor *y)
{
    if (!y->is_relu || y->relu_done) return TAC_OK;
    y->relu_done = 1;
    TAC__RUN(
        t, y->dtype,
        relu_backward(&t->kc, tac_tensor_count(y), y->data, y->grad, y->grad));
    return TAC_OK;
}
