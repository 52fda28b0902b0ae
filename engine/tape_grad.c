/* Gradients in backward: where they live, how contributions meet.
 *
 * A parameter's gradient is its place in the flat arena. An activation's is a
 * buffer from a free list on top of the step arena, freed as soon as the node
 * that made the activation has been passed. The first contribution overwrites,
 * later ones add, always in the order in which backward passes the consumers,
 * so that bits do not depend on whether a block ran again. */
#include "tape_impl.h"

/* Best fit from the free list, which is sorted by size; what would waste more
 * than half of a buffer is taken from the arena instead. */
static tac__buffer *take_free(tac_tape *t, size_t bytes)
{
    tac__buffer **at = &t->free_list;

    while (*at != NULL && (*at)->bytes < bytes) at = &(*at)->next;
    tac__buffer *b = *at;
    if (b == NULL || b->bytes / 2 > bytes) return NULL;
    *at = b->next;
    b->next = NULL;
    return b;
}

static tac_status buffer_new(tac_tape *t, size_t bytes, tac__buffer **out)
{
    tac__buffer *b = take_free(t, bytes);

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
    TAC_TRY(buffer_new(t, tac_tensor_bytes(root), &root->buffer));
    root->grad = root->buffer->ptr;
    return TAC_OK;
}

static tac_status open_scratch(tac_tape *t, tac__slot *s, size_t bytes)
{
    TAC_TRY(buffer_new(t, bytes, &s->scratch));
    s->ptr = s->scratch->ptr;
    s->accumulate = 0;
    return TAC_OK;
}

tac_status tac__slot_open(tac_tape *t, tac_tensor *x, int kernel_can_add,
                          tac__slot *s)
{
    s->root = tac__root(x);
    s->scratch = NULL;
    TAC_TRY(tac__grad_prepare(t, s->root));
    s->accumulate = tac__must_add(t, s->root);
    s->ptr = s->root->grad;
    if (s->accumulate && !kernel_can_add)
        return open_scratch(t, s, tac_tensor_bytes(s->root));
    return TAC_OK;
}

/* Scratch that close throws away, for what a kernel can't leave out. */
static tac_status open_unwanted(tac_tape *t, tac_tensor *x, tac__slot *s)
{
    s->root = NULL;
    return open_scratch(t, s, tac_tensor_bytes(x));
}

static void mark_grad(tac_tape *t, tac_tensor *root)
{
    root->has_grad = 1;
    if (root->param >= 0) t->filled[root->param] = t->touched[root->param] = 1;
}

tac_status tac__slot_close(tac_tape *t, tac__slot *s)
{
    if (s->scratch != NULL && s->root != NULL)
        TAC__RUN(t, axpy(&t->kc, tac_tensor_count(s->root), 1.0, s->ptr,
                         s->root->grad));
    if (s->scratch != NULL) tac__buffer_free(t, s->scratch);
    if (s->root != NULL) mark_grad(t, s->root);
    s->scratch = NULL;
    return TAC_OK;
}

int tac__can_move(const tac_tape *t, const tac_tensor *y, const tac_tensor *x)
{
    const tac_tensor *to = x->base != NULL ? x->base : x;

    if (y->buffer == NULL || y->buffer->shared) return 0;
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

/* A kernel that makes both gradients has one `accumulate` for the two. */
tac_status tac__weights_open(tac_tape *t, tac_tensor *w, tac_tensor *b,
                             tac__weight_slots *s)
{
    const int both = tac__wants(w) && tac__wants(b);
    const int can_add =
        tac__wants(w) && !(both && tac__must_add(t, w) != tac__must_add(t, b));

    s->b = (tac__slot){NULL, NULL, 0, NULL};
    if (tac__wants(w))
        TAC_TRY(tac__slot_open(t, w, can_add, &s->w));
    else
        TAC_TRY(open_unwanted(t, w, &s->w));
    if (tac__wants(b)) TAC_TRY(tac__slot_open(t, b, can_add, &s->b));
    s->accumulate = s->w.accumulate;
    return TAC_OK;
}

tac_status tac__weights_close(tac_tape *t, tac__weight_slots *s)
{
    TAC_TRY(tac__slot_close(t, &s->w));
    return tac__slot_close(t, &s->b);
}

static tac_status copy(tac_tape *t, const tac_tensor *y, void *dst)
{
    const tac_device_ops *ops = tac_device_ops_of(t->dev);

    if (t->dry) return TAC_OK;
    return ops->copy(tac_device_impl(t->dev), dst, y->grad, tac_tensor_bytes(y),
                     TAC_COPY_DEVICE_TO_DEVICE, t->kc.queue);
}

static tac_status scale(tac_tape *t, size_t n, double factor, void *p)
{
    if (factor != 1.0) TAC__RUN(t, scale(&t->kc, n, factor, p));
    return TAC_OK;
}

tac_status tac__pass_grad(tac_tape *t, tac_tensor *y, tac_tensor *x,
                          double factor, int may_move)
{
    const size_t n = tac_tensor_count(y);
    tac__slot s;

    if (may_move && tac__can_move(t, y, x)) {
        TAC_TRY(scale(t, n, factor, y->grad));
        tac__move(y, x);
        return TAC_OK;
    }
    TAC_TRY(tac__slot_open(t, x, 1, &s));
    if (s.accumulate) {
        TAC__RUN(t, axpy(&t->kc, n, factor, y->grad, s.ptr));
    } else {
        TAC_TRY(copy(t, y, s.ptr));
        TAC_TRY(scale(t, n, factor, s.ptr));
    }
    return tac__slot_close(t, &s);
}

tac_status tac__relu_mask(tac_tape *t, tac_tensor *y)
{
    if (!y->is_relu || y->relu_done) return TAC_OK;
    y->relu_done = 1;
    TAC__RUN(t, relu_backward(&t->kc, tac_tensor_count(y), y->data, y->grad,
                              y->grad));
    return TAC_OK;
}
