/* layer_norm.c: each row to mean 0 and variance 1, then scaled and shifted.
 * Source: Ba, Kiros, Hinton, "Layer Normalization", 2016.
 *
 * Kept for backward: mean and 1/deviation of each row, in f32 at least. Cost:
 * three passes over the input forward, three backward. */
#include <math.h>

#include "tacit/ops.h"
#include "tape_impl.h"

typedef struct norm_node {
    tac__node head; /* in: x, w, b */
    tac_layer_norm d;
    void *mean, *rstd;
} norm_node;

static tac_status backward_weights(tac_tape *t, const norm_node *l)
{
    tac_tensor *const *in = l->head.in;
    tac__weight_slots s;

    if (!tac__wants(in[1]) && !tac__wants(in[2])) return TAC_OK;
    TAC_TRY(tac__weights_open(t, in[1], in[2], &s));
    TAC__RUN(t, in[0]->dtype,
             layer_norm_backward(&t->kc, &l->d, in[0]->data, in[1]->data,
                                 l->mean, l->rstd, l->head.out->grad, NULL, 0,
                                 s.w.ptr, s.b.ptr, s.accumulate));
    return tac__weights_close(t, &s);
}

static tac_status backward(tac_tape *t, tac__node *node)
{
    const norm_node *l = (const norm_node *)node;
    tac_tensor *x = node->in[0];
    tac__slot dx;

    TAC_TRY(backward_weights(t, l));
    if (!tac__wants(x)) return TAC_OK;
    TAC_TRY(tac__slot_open(t, x, 1, &dx));
    TAC__RUN(t, x->dtype,
             layer_norm_backward(&t->kc, &l->d, x->data, node->in[1]->data,
                                 l->mean, l->rstd, node->out->grad, dx.ptr,
                                 dx.accumulate, NULL, NULL, 0));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"layer_norm", "layer_norm backward", backward};

static tac_status mismatch(const tac_tape *t, const tac_tensor *x,
                           const tac_tensor *w, const tac_tensor *b)
{
    char tx[160], tw[160], tb[160] = "none";

    if (b != NULL) tac_tensor_shape_text(b, tb, sizeof tb);
    return tac_fail(t->ctx, TAC_ERR_ARG,
                    "layer_norm: %s %s, %s %s and %s %s do not fit: x (...,c), "
                    "w (c), b (c)",
                    tac__label(x, "x"), tac_tensor_shape_text(x, tx, sizeof tx),
                    tac__label(w, "w"), tac_tensor_shape_text(w, tw, sizeof tw),
                    b != NULL ? tac__label(b, "b") : "bias", tb);
}

static tac_status check(const tac_tape *t, const tac_tensor *x, tac_tensor *w,
                        tac_tensor *b, double eps)
{
    TAC_TRY(tac__check_input(t, op.name, "x", x, 1, TAC_MAX_DIMS));
    TAC_TRY(tac__check_input(t, op.name, "w", w, 1, 1));
    if (b != NULL) TAC_TRY(tac__check_input(t, op.name, "b", b, 1, 1));
    TAC_TRY(tac__check_agrees(t, op.name, x, "w", w));
    TAC_TRY(tac__check_agrees(t, op.name, x, "b", b));
    if (x->shape[x->ndim - 1] != w->shape[0] ||
        (b != NULL && b->shape[0] != w->shape[0]))
        return mismatch(t, x, w, b);
    if (b != NULL && tac__root(w) == tac__root(b))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "layer_norm: %s can't be w and b in one",
                        tac__label(w, "w"));
    if (!(eps >= 0 && eps < HUGE_VAL))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "layer_norm: eps %g must be a number of at least 0",
                        eps);
    return TAC_OK;
}

static tac_status make_statistics(tac_tape *t, tac_dtype dtype, norm_node *l)
{
    const size_t one = tac_dtype_size(tac__wide(dtype));

    TAC_TRY(tac__alloc(t, l->d.n * one, &l->mean));
    return tac__alloc(t, l->d.n * one, &l->rstd);
}

static tac_status run(tac_tape *t, tac_tensor *const *in, norm_node *l,
                      tac_tensor **out)
{
    const tac_tensor *x = in[0], *b = in[2];
    tac_tensor *y = NULL;
    void *node;

    TAC_TRY(tac__tensor_new(t, x->dtype, x->ndim, x->shape, &y));
    if (tac__will_record(t, in)) TAC_TRY(make_statistics(t, x->dtype, l));
    TAC__RUN(t, x->dtype,
             layer_norm_forward(&t->kc, &l->d, x->data, in[1]->data,
                                b != NULL ? b->data : NULL, y->data, l->mean,
                                l->rstd));
    TAC_TRY(tac__record(t, &op, sizeof *l, y, in, &node));
    if (node != NULL) {
        l->head = *(tac__node *)node;
        *(norm_node *)node = *l;
    }
    *out = y;
    return TAC_OK;
}

tac_status tac_op_layer_norm(tac_tape *t, tac_tensor *x, tac_tensor *w,
                             tac_tensor *b, double eps, tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, w, b};
    norm_node l = {.mean = NULL};

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    w = in[1];
    b = in[2];
    TAC_TRY(check(t, x, w, b, eps));
    const uint64_t begin = tac__span_begin(t);
    l.d = (tac_layer_norm){.c = w->shape[0], .eps = eps};
    (void)tac_shape_count(x->ndim - 1, x->shape, &l.d.n);
    TAC_TRY(run(t, in, &l, out));
    tac__span_end(t, op.name, begin);
    return TAC_OK;
}
