/* softmax_cross_entropy.c: the loss of a classifier, row by row, and its sum.
 *
 * Kept for backward: the probabilities, in the wide type. The scale of
 * backward and the loss scale in device memory are factors of the kernel, so
 * that normalising the loss costs nothing and the gradients of 16-bit logits
 * are scaled before they are rounded.
 * Cost: two passes over the logits forward, one backward. */
#include "tacit/ops.h"
#include "tape_impl.h"

typedef struct xent_node {
    tac__node head; /* in: logits */
    tac_tensor *labels;
    void *probs;
} xent_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const xent_node *x = (const xent_node *)node;
    tac_tensor *logits = node->in[0];
    tac__slot d;

    TAC_TRY(tac__slot_open(t, logits, 0, &d));
    TAC__RUN(t, logits->dtype,
             softmax_xent_backward(&t->kc, logits->shape[0], logits->shape[1],
                                   x->probs, x->labels->data,
                                   node->out->loss_grad, t->loss_scale, d.ptr));
    return tac__slot_close(t, &d);
}

static const tac__op op = {"softmax_cross_entropy",
                           "softmax_cross_entropy backward", backward};

static tac_status check(const tac_tape *t, const tac_tensor *logits,
                        const tac_tensor *labels)
{
    char tx[160], tl[160];

    TAC_TRY(tac__check_input(t, op.name, "logits", logits, 2, 2));
    if (labels == NULL)
        return tac_fail(t->ctx, TAC_ERR_ARG, "%s: labels are missing", op.name);
    if (labels->dtype != TAC_I32 || labels->ndim != 1 ||
        labels->shape[0] != logits->shape[0] || logits->shape[1] == 0)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "%s: %s %s and %s %s %s do not fit: logits (n,c) with "
                        "c > 0, labels (n) i32",
                        op.name, tac__label(logits, "logits"),
                        tac_tensor_shape_text(logits, tx, sizeof tx),
                        tac__label(labels, "labels"),
                        tac_tensor_shape_text(labels, tl, sizeof tl),
                        tac_dtype_name(labels->dtype));
    return TAC_OK;
}

static tac_status make_results(tac_tape *t, const tac_tensor *logits,
                               tac_xent *y)
{
    TAC_TRY(tac__tensor_new(t, TAC_F64, 0, NULL, &y->loss));
    TAC_TRY(tac__tensor_new(t, tac__wide(logits->dtype), 1, logits->shape,
                            &y->rows));
    TAC_TRY(tac__tensor_new(t, TAC_U8, 1, logits->shape, &y->correct));
    y->loss->is_loss = 1;
    return TAC_OK;
}

tac_status tac_op_softmax_cross_entropy(tac_tape *t, tac_tensor *logits,
                                        tac_tensor *labels, tac_xent *out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {logits, NULL, NULL};
    tac_xent y = {NULL, NULL, NULL};
    void *node, *probs = NULL;

    TAC_TRY(tac__autocast(t, op.name, in));
    logits = in[0];
    TAC_TRY(check(t, logits, labels));
    const uint64_t begin = tac__span_begin(t);
    const size_t n = logits->shape[0], c = logits->shape[1];
    const tac_dtype wide = tac__wide(logits->dtype);
    TAC_TRY(make_results(t, logits, &y));
    if (tac__will_record(t, in))
        TAC_TRY(tac__alloc(t, n * c * tac_dtype_size(wide), &probs));
    TAC__RUN(t, logits->dtype,
             softmax_xent_forward(&t->kc, n, c, logits->data, labels->data,
                                  y.rows->data, probs, y.correct->data));
    TAC__RUN(t, wide, sum(&t->kc, n, y.rows->data, y.loss->data));
    TAC_TRY(tac__record(t, &op, sizeof(xent_node), y.loss, in, &node));
    if (node != NULL) {
        ((xent_node *)node)->labels = labels;
        ((xent_node *)node)->probs = probs;
    }
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
