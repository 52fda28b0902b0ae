/* conv_run.c: running one chunk of a planned convolution, on one thread. */
#include "cpu/onednn/conv.h"
#include "tacit/pool.h"

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

/* oneDNN takes pointers without const; it does not write its sources. */
static dnnl_status_t point(dnnl_memory_t m, const void *p)
{
    return m ? dnnl_memory_set_data_handle(m, (void *)p) : dnnl_success;
}

static float *floats_at(char *space, const tac__piece *piece)
{
    return (float *)(void *)(space + piece->offset);
}

static size_t weight_count(const tac_conv2d *d)
{
    return d->oc * d->ic * d->kh * d->kw;
}

/* Setting a pointer may clear padding, so it is done only when the workspace
 * is another. */
static dnnl_status_t point_pieces(tac__conv_chunk *c, char *space)
{
    if (c->space == space) return dnnl_success;
    TRY(point(c->weights.memory, space + c->weights.offset));
    TRY(point(c->total.memory, space + c->total.offset));
    TRY(point(c->scratch.memory, space + c->scratch.offset));
    TRY(point(c->reorder_scratch.memory, space + c->reorder_scratch.offset));
    c->space = space;
    return dnnl_success;
}

static dnnl_status_t reorder(const tac__conv_chunk *c, dnnl_memory_t from,
                             dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, from},
        {DNNL_ARG_TO, to},
        {DNNL_ARG_SCRATCHPAD, c->reorder_scratch.memory},
    };
    const int count = c->reorder_scratch.memory ? 3 : 2;
    return dnnl_primitive_execute(c->reorder, c->stream, count, args);
}

static int add_arg(dnnl_exec_arg_t *args, int count, int name, dnnl_memory_t m)
{
    if (!m) return count;
    args[count] = (dnnl_exec_arg_t){name, m};
    return count + 1;
}

static dnnl_status_t convolve(const tac__conv_chunk *c, tac__conv_kind kind,
                              dnnl_memory_t weights)
{
    static const int names[3][4] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
         DNNL_ARG_DIFF_DST},
    };
    dnnl_exec_arg_t args[5];
    int n = add_arg(args, 0, names[kind][0], c->x);
    n = add_arg(args, n, names[kind][1], weights);
    n = add_arg(args, n, names[kind][2], c->bias);
    n = add_arg(args, n, names[kind][3], c->y);
    n = add_arg(args, n, DNNL_ARG_SCRATCHPAD, c->scratch.memory);
    TRY(dnnl_primitive_execute(c->conv, c->stream, n, args));
    return dnnl_stream_wait(c->stream);
}

/* Forward and backward data. The weights of the thread's first chunk serve the
 * others: their pieces are at the same place. */
static dnnl_status_t run_with_weights(const tac__conv_plan *plan,
                                      tac__conv_chunk *c,
                                      const tac__conv_args *a)
{
    const tac_conv2d *d = &plan->key.spec.d;
    const int accumulate = plan->key.spec.accumulate;
    float *copy = floats_at(a->space, &c->copy);
    TRY(point(c->x, accumulate ? copy : a->x));
    TRY(point(c->bias, a->bias));
    TRY(point(c->plain, a->w));
    if (c->reorder && a->first) TRY(reorder(c, c->plain, c->weights.memory));
    TRY(convolve(c, plan->key.spec.kind,
                 c->reorder ? c->weights.memory : c->plain));
    if (!accumulate) return dnnl_success;
    const size_t n = (c->end - c->begin) * d->h * d->w * d->ic;
    tac__onednn_add(plan->key.spec.in, a->x, copy, n);
    return dnnl_success;
}

static void add_to(float *to, const float *from, size_t n)
{
    tac__onednn_add(TAC_F32, to, from, n);
}

/* The first chunk writes the thread's total, the others are added to it. */
static dnnl_status_t run_backward_weights(const tac__conv_plan *plan,
                                          tac__conv_chunk *c,
                                          const tac__conv_args *a)
{
    const tac_conv2d *d = &plan->key.spec.d;
    float *db = floats_at(a->space, &c->sums) + weight_count(d);
    TRY(point(c->x, a->x));
    TRY(point(c->bias, a->first ? db : db + d->oc));
    TRY(convolve(c, plan->key.spec.kind,
                 a->first ? c->total.memory : c->weights.memory));
    if (a->first) return dnnl_success;
    add_to(floats_at(a->space, &c->total), floats_at(a->space, &c->weights),
           c->total.bytes / sizeof(float));
    if (c->bias) add_to(db, db + d->oc, d->oc);
    return dnnl_success;
}

dnnl_status_t tac__conv_chunk_run(const tac__conv_plan *plan, size_t i,
                                  const tac__conv_args *a)
{
    tac__conv_chunk *c = &plan->chunks[i];
    TRY(point_pieces(c, a->space));
    TRY(point(c->y, a->y));
    if (plan->key.spec.kind == TAC__CONV_BACKWARD_WEIGHTS)
        return run_backward_weights(plan, c, a);
    return run_with_weights(plan, c, a);
}

dnnl_status_t tac__conv_finish(const tac__conv_plan *plan, size_t last)
{
    tac__conv_chunk *c = &plan->chunks[last];
    float *sums = (float *)(void *)(size_t)(c->space + c->sums.offset);
    const float *total =
        (const float *)(const void *)(c->space + c->total.offset);
    if (!c->reorder) {
        const size_t n = weight_count(&plan->key.spec.d);
        for (size_t i = 0; i < n; ++i) sums[i] = total[i];
        return dnnl_success;
    }
    TRY(point(c->plain, sums));
    TRY(reorder(c, c->total.memory, c->plain));
    return dnnl_stream_wait(c->stream);
}

size_t tac__conv_sums(const tac__conv_plan *plan)
{
    return plan->chunks[0].sums.offset;
}

typedef struct adding {
    const tac__onednn *o;
    size_t parts, offset;
    float *dw;
    int accumulate;
} adding;

static void add_range(const adding *a, float *to, size_t from, size_t n)
{
    for (size_t part = 0; part < a->parts; ++part) {
        const void *at = a->o->spaces[part].p + a->offset;
        const float *sums = (const float *)at + from;
        if (part > 0 || a->accumulate)
            add_to(to, sums, n);
        else
            for (size_t i = 0; i < n; ++i) to[i] = sums[i];
    }
}

static void add_weights(void *arg, size_t begin, size_t end, int part)
{
    const adding *a = arg;
    (void)part;
    add_range(a, a->dw + begin, begin, end - begin);
}

void tac__conv_add_sums(const tac_kctx *kc, const tac_conv2d *d, int parts,
                        size_t offset, float *dw, float *db, int accumulate)
{
    const size_t count = weight_count(d);
    adding a = {tac__onednn_of(kc), (size_t)parts, offset, dw, accumulate};
    tac_pool_for(kc->pool, count, 32768, add_weights, &a);
    if (db) add_range(&a, db, count, d->oc);
}
