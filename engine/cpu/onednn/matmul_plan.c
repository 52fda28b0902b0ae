/* matmul_plan.c: making, finding and freeing plans of matrix products. */
#include <stdint.h>
#include <stdlib.h>

#include "cpu/onednn/matmul.h"

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

/* Slices are multiples of these; products with fewer multiplications than WORTH
 * are done by one thread. */
enum {
    COLUMNS = 32, /* a tile of 16-bit numbers, two cache lines of f32 */
    ROWS = 16,    /* a tile's rows */
    BLOCK = 1024, /* most rows of an f32 slice */
    WORTH = 1 << 18,
    WORTH_BF16 = 1 << 20,
};

static dnnl_status_t make_memory(dnnl_engine_t engine,
                                 const_dnnl_primitive_desc_t pd,
                                 dnnl_query_t what, int index,
                                 dnnl_memory_t *out)
{
    return dnnl_memory_create(out,
                              dnnl_primitive_desc_query_md(pd, what, index),
                              engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t make_objects(dnnl_engine_t engine,
                                  const tac__matmul_spec *spec,
                                  const_dnnl_primitive_desc_t pd,
                                  tac__matmul_slice *s)
{
    if (spec->in != TAC_F32 && tac__api_is(pd, "ref"))
        return dnnl_unimplemented;
    TRY(dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags));
    TRY(dnnl_primitive_create(&s->product, pd));
    TRY(make_memory(engine, pd, dnnl_query_src_md, 0, &s->a));
    TRY(make_memory(engine, pd, dnnl_query_weights_md, 0, &s->b));
    TRY(make_memory(engine, pd, dnnl_query_dst_md, 0, &s->c));
    if (spec->bias)
        TRY(make_memory(engine, pd, dnnl_query_weights_md, 1, &s->bias));
    s->bytes = dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    if (s->bytes == 0) return dnnl_success;
    return make_memory(engine, pd, dnnl_query_scratchpad_md, 0, &s->scratch);
}

static dnnl_status_t make_slice(dnnl_engine_t engine,
                                const tac__matmul_spec *spec,
                                tac__matmul_slice *s)
{
    dnnl_primitive_desc_t pd = NULL;
    TRY(tac__api_matmul(engine, spec, &pd));
    const dnnl_status_t status = make_objects(engine, spec, pd, s);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* Where part i of `count` begins in 0..end, a multiple of `unit`. */
static size_t cut_at(size_t end, size_t unit, size_t i, size_t count)
{
    const size_t units = (end + unit - 1) / unit;
    const size_t at = units * i / count * unit;
    return at < end ? at : end;
}

/* The rows and columns of block `block` of a part. */
static void place(const tac__matmul_plan *plan, size_t part, size_t block,
                  tac__matmul_slice *s)
{
    const size_t m = plan->spec.m, n = plan->spec.n;
    const size_t parts = plan->parts;
    size_t first = 0, last = m;
    s->columns = n;
    if (plan->by_rows) {
        first = cut_at(m, ROWS, part, parts);
        last = cut_at(m, ROWS, part + 1, parts);
    } else {
        s->column = cut_at(n, COLUMNS, part, parts);
        s->columns = cut_at(n, COLUMNS, part + 1, parts) - s->column;
    }
    s->row = first + cut_at(last - first, ROWS, block, plan->blocks);
    s->rows =
        first + cut_at(last - first, ROWS, block + 1, plan->blocks) - s->row;
}

static dnnl_status_t make_slices(tac__onednn *o, tac__matmul_plan *plan)
{
    for (size_t i = 0; i < plan->parts * plan->blocks; ++i) {
        tac__matmul_slice *s = &plan->slices[i];
        tac__matmul_spec spec = plan->spec;
        place(plan, i / plan->blocks, i % plan->blocks, s);
        spec.m = s->rows;
        spec.n = s->columns;
        if (spec.m == 0) continue;
        TRY(make_slice(o->engine, &spec, s));
        if (s->bytes > plan->bytes) plan->bytes = s->bytes;
    }
    return dnnl_success;
}

static tac_status fill_plan(tac__onednn *o, tac__matmul_plan *plan)
{
    const int before = tac__omp_enter(&o->omp);
    const dnnl_status_t s = make_slices(o, plan);
    tac__omp_leave(&o->omp, before);
    plan->unsupported = s == dnnl_unimplemented || s == dnnl_invalid_arguments;
    if (s == dnnl_success || plan->unsupported) return TAC_OK;
    return tac__onednn_fail(o, s, "planning a matrix product");
}

/* How many slices, of what. */
static void cut(tac__matmul_plan *plan)
{
    const tac__matmul_spec *s = &plan->spec;
    const double work = (double)s->m * (double)s->n * (double)s->k;
    plan->by_rows = s->n < 2 * COLUMNS * plan->threads && s->n < s->m;
    const size_t unit = plan->by_rows ? ROWS : COLUMNS;
    const size_t units = ((plan->by_rows ? s->m : s->n) + unit - 1) / unit;
    plan->parts = plan->threads < units ? plan->threads : units;
    if (work < (s->in == TAC_F32 ? WORTH : WORTH_BF16)) plan->parts = 1;
    const size_t rows = plan->by_rows ? s->m / plan->parts : s->m;
    plan->blocks = s->in == TAC_F32 ? (rows + BLOCK - 1) / BLOCK : 1;
    if (plan->blocks == 0) plan->blocks = 1;
}

static void destroy_memory(dnnl_memory_t m)
{
    if (m) dnnl_memory_destroy(m);
}

static void destroy_slice(const tac__matmul_slice *s)
{
    destroy_memory(s->a);
    destroy_memory(s->b);
    destroy_memory(s->bias);
    destroy_memory(s->c);
    destroy_memory(s->scratch);
    if (s->product) dnnl_primitive_destroy(s->product);
    if (s->stream) dnnl_stream_destroy(s->stream);
}

void tac__matmul_plans_destroy(tac__matmul_plan *plan)
{
    while (plan) {
        tac__matmul_plan *next = plan->next;
        for (size_t i = 0; plan->slices && i < plan->parts * plan->blocks; ++i)
            destroy_slice(&plan->slices[i]);
        free(plan->slices);
        free(plan);
        plan = next;
    }
}

static tac_status make_plan(tac__onednn *o, const tac__matmul_spec *spec,
                            size_t threads, tac__matmul_plan **out)
{
    tac__matmul_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return tac_fail(o->ctx, TAC_ERR_NOMEM, "no memory for a plan");
    plan->spec = *spec;
    plan->threads = threads;
    cut(plan);
    plan->slices = calloc(plan->parts * plan->blocks, sizeof *plan->slices);
    const tac_status s =
        plan->slices ? fill_plan(o, plan)
                     : tac_fail(o->ctx, TAC_ERR_NOMEM, "no memory for a plan");
    if (s < 0)
        tac__matmul_plans_destroy(plan);
    else
        *out = plan;
    return s;
}

/* FNV-1a over the key's words. */
static size_t bucket_of(const tac__matmul_spec *s, size_t threads)
{
    const size_t words[] = {s->m,          s->n,           s->k,
                            (size_t)s->ta, (size_t)s->tb,  (size_t)s->in,
                            threads,       (size_t)s->relu};
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        h = (h ^ words[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h >> 32) % TAC__PLAN_BUCKETS;
}

static int same_spec(const tac__matmul_spec *a, const tac__matmul_spec *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda &&
           a->ldb == b->ldb && a->ldc == b->ldc && a->in == b->in &&
           a->out == b->out && a->ta == b->ta && a->tb == b->tb &&
           a->bias == b->bias && a->relu == b->relu &&
           a->accumulate == b->accumulate;
}

tac_status tac__matmul_plan_get(tac__onednn *o, const tac__matmul_spec *spec,
                                size_t threads, const tac__matmul_plan **out)
{
    tac__matmul_plan **bucket = &o->products[bucket_of(spec, threads)];
    tac__matmul_plan *plan = *bucket;
    while (plan && !(plan->threads == threads && same_spec(&plan->spec, spec)))
        plan = plan->next;
    if (!plan) {
        TAC_TRY(make_plan(o, spec, threads, &plan));
        plan->next = *bucket;
        *bucket = plan;
    }
    *out = plan;
    return TAC_OK;
}
