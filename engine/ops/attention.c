/* attention.c: y = softmax(scale q k' + mask) v, by head.
 * Source: Vaswani et al., "Attention Is All You Need", 2017.
 *
 * Kept for backward: the probabilities (b,tq,tk), in f32 at least: they are
 * the memory of long sequences, and a block that runs again keeps none. */
#include <math.h>
#include <string.h>

#include "tacit/ops.h"
#include "tape_impl.h"

typedef struct attention_node {
    tac__node head; /* in: q, k, v */
    tac_attention d;
    void *probs;
} attention_node;

/* The three may be one tensor: each place is claimed, so that a later one of
 * the same tensor is added. */
static tac_status backward(tac_tape *t, tac__node *node)
{
    const attention_node *a = (const attention_node *)node;
    tac_tensor *const *in = node->in;
    tac__slot s[3] = {{.root = NULL}, {.root = NULL}, {.root = NULL}};

    for (int i = 0; i < 3; ++i) {
        if (!tac__wants(in[i])) continue;
        TAC_TRY(tac__slot_open(t, in[i], 0, &s[i]));
        tac__slot_claim(t, &s[i]);
    }
    TAC__RUN(t, in[0]->dtype,
             attention_backward(&t->kc, &a->d, in[0]->data, in[1]->data,
                                in[2]->data, a->probs, node->out->grad,
                                s[0].ptr, s[1].ptr, s[2].ptr));
    for (int i = 0; i < 3; ++i) TAC_TRY(tac__slot_close(t, &s[i]));
    return TAC_OK;
}

static const tac__op op = {"attention", "attention backward", backward};

static tac_status mismatch(const tac_tape *t, const tac_tensor *q,
                           const tac_tensor *k, const tac_tensor *v)
{
    char tq[160], tk[160], tv[160];

    return tac_fail(t->ctx, TAC_ERR_ARG,
                    "attention: %s %s, %s %s and %s %s do not fit: q (b,tq,d), "
                    "k and v (b,tk,d)",
                    tac__label(q, "q"), tac_tensor_shape_text(q, tq, sizeof tq),
                    tac__label(k, "k"), tac_tensor_shape_text(k, tk, sizeof tk),
                    tac__label(v, "v"),
                    tac_tensor_shape_text(v, tv, sizeof tv));
}

static tac_status check(const tac_tape *t, const tac_tensor *q,
                        const tac_tensor *k, const tac_tensor *v, double scale)
{
    TAC_TRY(tac__check_input(t, op.name, "q", q, 3, 3));
    TAC_TRY(tac__check_input(t, op.name, "k", k, 3, 3));
    TAC_TRY(tac__check_input(t, op.name, "v", v, 3, 3));
    TAC_TRY(tac__check_agrees(t, op.name, q, "k", k));
    TAC_TRY(tac__check_agrees(t, op.name, q, "v", v));
    if (q->shape[0] != k->shape[0] || q->shape[2] != k->shape[2] ||
        memcmp(k->shape, v->shape, 3 * sizeof *k->shape) != 0)
        return mismatch(t, q, k, v);
    if (!isfinite(scale))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "attention: the scale %g is no finite number", scale);
    return TAC_OK;
}

static tac_status alloc_probs(tac_tape *t, tac_dtype kept, attention_node *a)
{
    const size_t shape[3] = {a->d.b, a->d.tq, a->d.tk};
    size_t n = 0;

    if (!tac_shape_count(3, shape, &n) || n > SIZE_MAX / 64)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "attention: the probabilities' size overflows: lower "
                        "the batch or the sequence length");
    return tac__alloc(t, n * tac_dtype_size(kept), &a->probs);
}

static tac_status run(tac_tape *t, tac_tensor *const *in, attention_node *a,
                      tac_tensor **out)
{
    tac_tensor *y = NULL;
    void *node;

    TAC_TRY(tac__tensor_new(t, in[0]->dtype, 3, in[0]->shape, &y));
    if (tac__will_record(t, in))
        TAC_TRY(alloc_probs(t, tac__wide(in[0]->dtype), a));
    TAC__RUN(t, in[0]->dtype,
             attention_forward(&t->kc, &a->d, in[0]->data, in[1]->data,
                               in[2]->data, y->data, a->probs));
    TAC_TRY(tac__record(t, &op, sizeof *a, y, in, &node));
    if (node != NULL) {
        a->head = *(tac__node *)node;
        *(attention_node *)node = *a;
    }
    *out = y;
    return TAC_OK;
}

tac_status tac_op_attention(tac_tape *t, tac_tensor *q, tac_tensor *k,
                            tac_tensor *v, double scale, int causal,
                            tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {q, k, v};
    attention_node a = {.probs = NULL};

    TAC_TRY(tac__autocast(t, op.name, in));
    q = in[0];
    k = in[1];
    v = in[2];
    TAC_TRY(check(t, q, k, v, scale));
    const uint64_t begin = tac__span_begin(t);
    a.d = (tac_attention){q->shape[0], q->shape[1], k->shape[1],
                          q->shape[2], scale,       causal};
    TAC_TRY(run(t, in, &a, out));
    tac__span_end(t, op.name, begin);
    return TAC_OK;
}
