/* dropout.c: zeroes elements at random, scales the others up.
 * Source: Srivastava et al., "Dropout", JMLR 15 (2014).
 *
 * The mask is not stored: it is a pure function of a key and of the global
 * index of (sample, element), and backward applies the same function to the
 * gradient. Cost: one pass, one random word an element. Samples that are not
 * neighbours in the global batch cost one kernel call each. */
#include "tacit/ops.h"
#include "tape_impl.h"

enum { LAYER_BITS = 16 }; /* 32 bits of step above them */

typedef struct dropout_node {
    tac__node head; /* in: x */
    float p;
    tac_rng_key key;
} dropout_node;

static size_t rows(const tac_tensor *x)
{
    return x->ndim == 0 ? 1 : x->shape[0];
}

/* Elements of one sample; sizes of 0 have no elements at all. */
static size_t features(const tac_tensor *x)
{
    const size_t n = rows(x);
    return n == 0 ? 0 : tac_tensor_count(x) / n;
}

static tac_status apply_rows(tac_tape *t, const dropout_node *d,
                             const tac_tensor *shape, const void *src,
                             void *dst)
{
    const size_t f = features(shape);
    const size_t bytes = f * tac_dtype_size(shape->dtype);

    for (size_t i = 0; i < rows(shape); ++i) {
        const uint64_t sample =
            t->step.first_sample + i * t->step.sample_stride;
        TAC__RUN(t, shape->dtype,
                 dropout(&t->kc, f, (const char *)src + i * bytes, d->p,
                         &d->key, sample * f, (char *)dst + i * bytes));
    }
    return TAC_OK;
}

/* src and dst may be the same. */
static tac_status apply(tac_tape *t, const dropout_node *d,
                        const tac_tensor *shape, const void *src, void *dst)
{
    if (t->dry) return TAC_OK;
    if (t->step.sample_stride != 1) return apply_rows(t, d, shape, src, dst);
    TAC__RUN(t, shape->dtype,
             dropout(&t->kc, tac_tensor_count(shape), src, d->p, &d->key,
                     t->step.first_sample * features(shape), dst));
    return TAC_OK;
}

static tac_status backward(tac_tape *t, tac__node *node)
{
    const dropout_node *d = (const dropout_node *)node;
    tac_tensor *x = node->in[0], *y = node->out;
    tac__slot dx;

    if (tac__can_move(t, y, x)) {
        TAC_TRY(apply(t, d, y, y->grad, y->grad));
        tac__move(y, x);
        return TAC_OK;
    }
    TAC_TRY(tac__slot_open(t, x, 0, &dx));
    TAC_TRY(apply(t, d, y, y->grad, dx.ptr));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"dropout", "dropout backward", backward};

/* The how-manieth dropout of the step tells layers apart; it is counted in
 * the same way when a block runs again. */
static tac_status next_key(tac_tape *t, tac_rng_key *key)
{
    if (t->dropouts >> LAYER_BITS != 0)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "dropout: more than %u in one step", 1U << LAYER_BITS);
    key->seed = t->seed;
    key->stream = TAC_STREAM_DROPOUT;
    key->step = (t->step.step << LAYER_BITS) + t->dropouts;
    t->dropouts += 1;
    return TAC_OK;
}

static tac_status run(tac_tape *t, tac_tensor *x, dropout_node *d,
                      tac_tensor **out)
{
    tac_tensor *const in[TAC__NODE_INPUTS] = {x, NULL, NULL};
    tac_tensor *y = NULL;
    void *node;

    TAC_TRY(next_key(t, &d->key));
    TAC_TRY(tac__tensor_new(t, x->dtype, x->ndim, x->shape, &y));
    TAC_TRY(apply(t, d, x, x->data, y->data));
    TAC_TRY(tac__record(t, &op, sizeof *d, y, in, &node));
    if (node != NULL) {
        ((dropout_node *)node)->p = d->p;
        ((dropout_node *)node)->key = d->key;
    }
    *out = y;
    return TAC_OK;
}

tac_status tac_op_dropout(tac_tape *t, tac_tensor *x, float p, tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, NULL, NULL};
    dropout_node d = {.p = p};

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    TAC_TRY(tac__check_input(t, "dropout", "x", x, 0, TAC_MAX_DIMS));
    if (!(p >= 0.0F && p < 1.0F))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "dropout: probability %g is not in [0, 1)", (double)p);
    if (p == 0.0F || (t->step.flags & TAC_TAPE_EVAL) != 0) {
        *out = x;
        return TAC_OK;
    }
    const uint64_t begin = tac__span_begin(t);
    TAC_TRY(run(t, x, &d, out));
    tac__span_end(t, op.name, begin);
    return TAC_OK;
}
