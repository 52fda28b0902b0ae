/* Blocks that can be run again (gradient checkpointing).
 * Source: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory
 * Cost", 2016.
 *
 * Forward, recompute on: the function runs once with shapes alone, which tells
 * the outputs' sizes and which tensors they are; the outputs get memory; then
 * it runs with data, its outputs redirected into that memory, and everything
 * else it made is released. Backward: it runs a third time, recorded, with the
 * dropout counter of the first time and outputs redirected again, and the walk
 * goes through its nodes (tape_block_again.c).
 *
 * A block runs again in the region of autocast that it first ran in. It may use
 * casts of parameters that were made before it; those that it makes are gone
 * with its memory.
 *
 * Cost: one more forward of the block; memory: the block's activations exist
 * for one block at a time. */
#include <string.h>

#include "tacit/ops.h"
#include "tape_block.h"

tac__saved tac__block_save(const tac_tape *t)
{
    return (tac__saved){t->dry,
                        t->probing,
                        t->recording,
                        t->counting,
                        t->last,
                        t->region,
                        t->dropouts,
                        t->free_list,
                        t->redirects,
                        t->n_redirects,
                        t->cast,
                        t->casts,
                        tac_arena_get_mark(t->data),
                        tac_arena_get_mark(t->meta)};
}

void tac__block_restore(tac_tape *t, const tac__saved *s)
{
    t->dry = s->dry;
    t->probing = s->probing;
    t->recording = s->recording;
    t->counting = s->counting;
    t->last = s->last;
    t->region = s->region;
    t->free_list = s->free_list;
    t->redirects = s->redirects;
    t->n_redirects = s->n_redirects;
    t->cast = s->cast;
    tac__forget_casts(t, s->casts);
    tac_arena_release(t->data, s->data);
    tac_arena_release(t->meta, s->meta);
}

static tac_status check_out(const tac_tape *t, size_t n_out,
                            tac_tensor *const *out)
{
    for (size_t i = 0; i < n_out; ++i)
        if (out[i] == NULL)
            return tac_fail(t->ctx, TAC_ERR_ARG,
                            "block: its function left output %zu empty", i);
    return TAC_OK;
}

tac_status tac__block_call(tac_tape *t, const tac__block *b, tac_tensor **out)
{
    memset(out, 0, TAC_BLOCK_MAX * sizeof *out);
    TAC_TRY(b->fn(t, b->arg, b->in, out));
    return check_out(t, b->n_out, out);
}

/* Runs fn with shapes alone; copies of its outputs go to `shapes`. Their roots
 * are released again, unless they were made outside. */
static tac_status probe(tac_tape *t, const tac__block *b, tac_tensor *shapes)
{
    tac_tensor *out[TAC_BLOCK_MAX];
    const tac__saved before = tac__block_save(t);
    const size_t first = t->ordinal;

    t->dry = t->probing = 1;
    t->recording = t->counting = 0;
    const tac_status s = tac__block_call(t, b, out);
    for (size_t i = 0; i < b->n_out && s >= 0; ++i) {
        shapes[i] = *out[i];
        shapes[i].ordinal = tac__root(out[i])->ordinal;
        shapes[i].base = tac__root(out[i]);
        shapes[i].param = shapes[i].base->param;
    }
    tac__block_restore(t, &before);
    t->dropouts = before.dropouts;
    t->ordinal = first;
    return s;
}

/* Two outputs that share memory inside share it outside, too. */
static tac_tensor *same_before(const tac__block *b, size_t i)
{
    for (size_t k = 0; k < i; ++k)
        if (!b->out[k].through && b->out[k].relative == b->out[i].relative)
            return b->out[k].outer;
    return NULL;
}

static tac_status make_output(tac_tape *t, tac__block *b, size_t i,
                              const tac_tensor *shape, size_t first)
{
    tac__block_output *o = &b->out[i];

    o->through = shape->ordinal < first || shape->param >= 0;
    if (o->through) {
        TAC_TRY(tac__tensor_view(t, shape->base, shape->ndim, shape->shape,
                                 &o->outer));
        if (o->outer->dtype == shape->dtype) return TAC_OK;
        return tac_op_cast(t, o->outer, shape->dtype, &o->outer);
    }
    o->relative = shape->ordinal - first;
    tac_tensor *same = same_before(b, i);
    if (same != NULL)
        return tac__tensor_view(t, same, shape->ndim, shape->shape, &o->outer);
    TAC_TRY(
        tac__tensor_new(t, shape->dtype, shape->ndim, shape->shape, &o->outer));
    o->outer->is_loss = shape->is_loss;
    return TAC_OK;
}

size_t tac__block_redirects(const tac_tape *t, const tac__block *b,
                            tac__redirect *r)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_out; ++i) {
        const tac__block_output *o = &b->out[i];
        if (o->through || o->outer->base != NULL) continue;
        r[n].ordinal = t->ordinal + o->relative;
        r[n].data = o->outer->data;
        n += 1;
    }
    return n;
}

/* What is known of the outputs inside holds outside: consumers there are
 * consumers, too, so that pooling does not take itself for the only one. */
static void copy_traits(const tac__block *b, tac_tensor *const *out)
{
    for (size_t i = 0; i < b->n_out; ++i) {
        if (b->out[i].through) continue;
        tac_tensor *outer = b->out[i].outer;
        const tac_tensor *inner = tac__root(out[i]);
        outer->requires_grad = inner->requires_grad;
        if (outer->base != NULL) continue;
        outer->is_relu = inner->is_relu;
        outer->uses = inner->uses;
    }
}

tac_status tac__block_check_same(const tac_tape *t, const tac__block *b,
                                 tac_tensor *const *out, size_t first)
{
    for (size_t i = 0; i < b->n_out; ++i) {
        const size_t ordinal = tac__root(out[i])->ordinal;
        if (b->out[i].through) continue;
        if (ordinal != first + b->out[i].relative ||
            out[i]->dtype != b->out[i].outer->dtype ||
            tac_tensor_bytes(out[i]) != tac_tensor_bytes(b->out[i].outer))
            return tac_fail(t->ctx, TAC_ERR_STATE,
                            "block: output %zu differs when the function runs "
                            "again; it must always do the same",
                            i);
    }
    return TAC_OK;
}

/* Runs fn with data, keeps the outputs alone. */
static tac_status run_unrecorded(tac_tape *t, tac__block *b)
{
    tac_tensor *out[TAC_BLOCK_MAX];
    tac__redirect redirects[TAC_BLOCK_MAX];
    const tac__saved before = tac__block_save(t);
    const size_t first = t->ordinal;

    t->recording = 0;
    tac_status s = tac__borrow_free(t);
    t->n_redirects = tac__block_redirects(t, b, redirects);
    t->redirects = redirects;
    if (s >= 0) s = tac__block_call(t, b, out);
    if (s >= 0) s = tac__block_check_same(t, b, out, first);
    if (s >= 0) copy_traits(b, out);
    const tac__cast_region after = t->cast;
    tac__block_restore(t, &before);
    t->cast = after; /* as if the block were none */
    return s;
}

static const tac__op block_op = {"block", "block backward",
                                 tac__block_backward};

/* Outputs are no roots of the node's own kind: it has several, and decides by
 * itself whether there is something to do. */
static tac_status record_block(tac_tape *t, const tac__block *b)
{
    tac__block *n = NULL;
    int wanted = 0;

    for (size_t i = 0; i < b->n_out; ++i)
        if (!b->out[i].through) wanted |= b->out[i].outer->requires_grad;
    if (!wanted || !t->recording) return TAC_OK;
    TAC_TRY(tac__meta_alloc(t, sizeof *n, (void **)&n));
    *n = *b;
    n->head.op = &block_op;
    n->head.previous = t->last;
    t->last = &n->head;
    for (size_t i = 0; i < b->n_out; ++i)
        if (!b->out[i].through) b->out[i].outer->node = &n->head;
    return TAC_OK;
}

static tac_status keep_outputs(tac_tape *t, tac__block *b, tac_tensor **out)
{
    tac_tensor shapes[TAC_BLOCK_MAX];
    const size_t first = t->ordinal;

    b->dropouts = t->dropouts;
    b->cast = t->cast;
    TAC_TRY(probe(t, b, shapes));
    for (size_t i = 0; i < b->n_out; ++i)
        TAC_TRY(make_output(t, b, i, &shapes[i], first));
    TAC_TRY(run_unrecorded(t, b));
    TAC_TRY(record_block(t, b));
    for (size_t i = 0; i < b->n_out; ++i) out[i] = b->out[i].outer;
    return TAC_OK;
}

static tac_status check_block(const tac_tape *t, size_t n_in,
                              tac_tensor *const *in, size_t n_out)
{
    TAC_TRY(tac__check_phase(t, "block"));
    if (n_in > TAC_BLOCK_MAX || n_out > TAC_BLOCK_MAX || n_out == 0)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "block: %zu inputs and %zu outputs; up to %d inputs "
                        "and 1 to %d outputs are possible",
                        n_in, n_out, TAC_BLOCK_MAX, TAC_BLOCK_MAX);
    for (size_t i = 0; i < n_in; ++i)
        if (in[i] == NULL)
            return tac_fail(t->ctx, TAC_ERR_ARG, "block: input %zu is missing",
                            i);
    return TAC_OK;
}

tac_status tac_tape_block(tac_tape *t, tac_block_fn *fn, void *arg, size_t n_in,
                          tac_tensor *const *in, size_t n_out, tac_tensor **out)
{
    tac__block b = {.fn = fn, .arg = arg, .n_in = n_in, .n_out = n_out};
    tac_tensor *made[TAC_BLOCK_MAX];

    TAC_TRY(check_block(t, n_in, in, n_out));
    for (size_t i = 0; i < n_in; ++i) b.in[i] = in[i];
    if (t->recompute) {
        TAC_TRY(keep_outputs(t, &b, made));
    } else {
        TAC_TRY(tac__block_call(t, &b, made));
    }
    for (size_t i = 0; i < n_out; ++i) out[i] = made[i];
    return TAC_OK;
}
