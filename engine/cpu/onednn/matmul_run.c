/* matmul_run.c: running planned matrix products, a slice a thread. */
#include <stdatomic.h>

#include "cpu/onednn/matmul.h"
#include "tacit/pool.h"

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

typedef struct matmul_call {
    tac__onednn *o;
    const tac__matmul_plan *plan;
    const tac__matmul_args *args;
    _Atomic int failed; /* a dnnl_status_t */
} matmul_call;

/* oneDNN takes pointers without const; it does not write its sources. */
static dnnl_status_t point(dnnl_memory_t m, const void *p, size_t elements,
                           tac_dtype type)
{
    const char *bytes = p;
    if (!m) return dnnl_success;
    return dnnl_memory_set_data_handle(
        m, (void *)(size_t)(bytes + elements * tac_dtype_size(type)));
}

/* The slice's operands: parts of the whole ones. */
static dnnl_status_t point_operands(const tac__matmul_plan *plan,
                                    const tac__matmul_slice *s,
                                    const tac__matmul_args *args)
{
    const tac__matmul_spec *g = &plan->spec;
    const size_t row = s->row, column = s->column;
    TRY(point(s->a, args->a, g->ta ? row : row * g->lda, g->in));
    TRY(point(s->b, args->b, g->tb ? column * g->ldb : column, g->in));
    TRY(point(s->bias, args->bias, column, g->in));
    return point(s->c, args->c, row * g->ldc + column, g->out);
}

static int add_arg(dnnl_exec_arg_t *args, int count, int name, dnnl_memory_t m)
{
    if (!m) return count;
    args[count] = (dnnl_exec_arg_t){name, m};
    return count + 1;
}

static dnnl_status_t run_slice(const tac__matmul_plan *plan,
                               tac__matmul_slice *s,
                               const tac__matmul_args *args, char *space)
{
    dnnl_exec_arg_t list[5];
    int n = add_arg(list, 0, DNNL_ARG_SRC, s->a);
    n = add_arg(list, n, DNNL_ARG_WEIGHTS, s->b);
    n = add_arg(list, n, DNNL_ARG_BIAS, s->bias);
    n = add_arg(list, n, DNNL_ARG_DST, s->c);
    n = add_arg(list, n, DNNL_ARG_SCRATCHPAD, s->scratch);
    TRY(point_operands(plan, s, args));
    if (s->space != space) {
        TRY(point(s->scratch, space, 0, TAC_U8));
        s->space = space;
    }
    TRY(dnnl_primitive_execute(s->product, s->stream, n, list));
    return dnnl_stream_wait(s->stream);
}

static void run_part(void *arg, size_t begin, size_t end, int part)
{
    matmul_call *call = arg;
    const int before = tac__omp_enter(&call->o->omp);
    for (size_t i = begin; i < end; ++i) {
        const dnnl_status_t s = run_slice(call->plan, &call->plan->slices[i],
                                          call->args, call->o->spaces[part].p);
        if (s != dnnl_success) atomic_store(&call->failed, (int)s);
    }
    tac__omp_leave(&call->o->omp, before);
}

tac_status tac__matmul(const tac_kctx *kc, const tac__matmul_spec *spec,
                       const tac__matmul_args *args, int *done)
{
    matmul_call call = {.o = tac__onednn_of(kc), .args = args};
    const size_t threads = (size_t)tac_pool_size(kc->pool);
    *done = 0;
    if (spec->m * spec->n * spec->k == 0) return TAC_OK;
    TAC_TRY(tac__matmul_plan_get(call.o, spec, threads, &call.plan));
    if (call.plan->unsupported) return TAC_OK;
    TAC_TRY(tac__onednn_reserve(call.o, threads, call.plan->bytes));
    tac_pool_for(kc->pool, call.plan->parts * call.plan->blocks,
                 call.plan->blocks, run_part, &call);
    const int failed = atomic_load(&call.failed);
    if (failed != dnnl_success)
        return tac__onednn_fail(call.o, (dnnl_status_t)failed,
                                "a matrix product");
    *done = 1;
    return TAC_OK;
}
