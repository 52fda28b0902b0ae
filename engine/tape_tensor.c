/* Making tensors and records in the step's arenas. */
#include <string.h>

#include "tape_impl.h"

tac_status tac__alloc(tac_tape *t, size_t bytes, void **out)
{
    if (t->probing) {
        *out = NULL;
        return TAC_OK;
    }
    tac__buffer *b =
        t->phase == TAC__BACKWARD ? tac__take_free(t, bytes) : NULL;
    if (b != NULL) {
        *out = b->ptr;
        return TAC_OK;
    }
    return tac_arena_alloc(t->data, bytes, out);
}

tac_status tac__meta_alloc(tac_tape *t, size_t bytes, void **out)
{
    void *p = NULL;

    TAC_TRY(tac_arena_alloc(t->meta, bytes, &p));
    memset(p, 0, bytes);
    *out = p;
    return TAC_OK;
}

/* The memory of tensor number t->ordinal: a redirected one has its own. */
static tac_status tensor_data(tac_tape *t, size_t bytes, void **out)
{
    for (size_t i = 0; i < t->n_redirects; ++i) {
        if (t->redirects[i].ordinal != t->ordinal) continue;
        *out = t->redirects[i].data;
        return TAC_OK;
    }
    return tac__alloc(t, bytes, out);
}

int tac__is_redirected(const tac_tape *t, const tac_tensor *x)
{
    for (size_t i = 0; i < t->n_redirects; ++i)
        if (t->redirects[i].ordinal == x->ordinal) return 1;
    return 0;
}

static tac_status bytes_of(const tac_tape *t, tac_dtype dtype, int ndim,
                           const size_t *shape, size_t *out)
{
    size_t count = 0;

    if (!tac_shape_count(ndim, shape, &count) || count > SIZE_MAX / 64)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "a result's size overflows: lower the batch");
    *out = count * tac_dtype_size(dtype);
    return TAC_OK;
}

tac_status tac__tensor_new(tac_tape *t, tac_dtype dtype, int ndim,
                           const size_t *shape, tac_tensor **out)
{
    tac_tensor *y = NULL;
    size_t bytes = 0;

    TAC_TRY(bytes_of(t, dtype, ndim, shape, &bytes));
    TAC_TRY(tac__meta_alloc(t, sizeof *y, (void **)&y));
    TAC_TRY(tensor_data(t, bytes, &y->data));
    y->dtype = dtype;
    y->ndim = ndim;
    for (int i = 0; i < ndim; ++i) y->shape[i] = shape[i];
    y->param = -1;
    y->ordinal = t->ordinal++;
    *out = y;
    return TAC_OK;
}

tac_status tac__tensor_view(tac_tape *t, tac_tensor *x, int ndim,
                            const size_t *shape, tac_tensor **out)
{
    tac_tensor *y = NULL;

    TAC_TRY(tac__meta_alloc(t, sizeof *y, (void **)&y));
    y->dtype = x->dtype;
    y->ndim = ndim;
    for (int i = 0; i < ndim; ++i) y->shape[i] = shape[i];
    y->data = x->data;
    y->name = x->name;
    y->requires_grad = x->requires_grad;
    y->param = -1;
    y->base = tac__root(x);
    y->ordinal = y->base->ordinal;
    *out = y;
    return TAC_OK;
}

static int any_wants(tac_tensor *const *in)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i)
        if (in[i] != NULL && in[i]->requires_grad) return 1;
    return 0;
}

int tac__will_record(const tac_tape *t, tac_tensor *const *in)
{
    return t->recording && any_wants(in);
}

/* Also where nothing is recorded: an output of a block must know whether it
 * has consumers in the block. */
static void count_uses(tac_tensor *const *in)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i)
        if (in[i] != NULL) tac__root(in[i])->uses += 1;
}

static void count_params(tac_tape *t, tac_tensor *const *in)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i) {
        if (in[i] == NULL) continue;
        const tac_tensor *root = tac__root(in[i]);
        if (root->param >= 0) t->pending[root->param] += 1;
    }
}

static void note_widest(tac_tape *t, const tac_tensor *y, tac_tensor *const *in)
{
    size_t sum = tac_tensor_count(y), largest = 0;

    if (y->dtype != TAC_F16 && y->dtype != TAC_BF16) return;
    if (in[1] == NULL || tac__root(in[1])->param < 0) return;
    for (int i = 0; i < TAC__NODE_INPUTS; ++i) {
        const size_t n = in[i] != NULL ? tac_tensor_count(in[i]) : 0;
        sum += n;
        if (n > largest) largest = n;
    }
    if (sum - largest > t->widest) t->widest = sum - largest;
}

tac_status tac__record(tac_tape *t, const tac__op *op, size_t bytes,
                       tac_tensor *y, tac_tensor *const *in, void **node)
{
    tac__node *n = NULL;

    *node = NULL;
    note_widest(t, y, in);
    y->requires_grad = any_wants(in);
    if (!y->requires_grad) return TAC_OK;
    count_uses(in);
    if (t->counting) count_params(t, in);
    if (!t->recording) return TAC_OK;
    TAC_TRY(tac__meta_alloc(t, bytes, (void **)&n));
    n->op = op;
    n->previous = t->last;
    n->out = y;
    for (int i = 0; i < TAC__NODE_INPUTS; ++i) n->in[i] = in[i];
    y->node = n;
    t->last = n;
    *node = n;
    return TAC_OK;
}
