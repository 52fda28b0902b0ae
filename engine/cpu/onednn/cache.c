/* cache.c: what the oneDNN kernels keep between calls. */
#include <stdint.h>
#include <stdlib.h>

#include "cpu/half/half.h"
#include "cpu/kernel_sets.h"
#include "cpu/onednn/conv.h"
#include "cpu/onednn/matmul.h"
#include "cpu/onednn/onednn.h"
#include "tacit/half.h"

tac_status tac__onednn_fail(tac__onednn *o, dnnl_status_t s, const char *what)
{
    if (s == dnnl_out_of_memory)
        return tac_fail(o->ctx, TAC_ERR_NOMEM,
                        "oneDNN has no memory for %s; lower the batch", what);
    return tac_fail(o->ctx, TAC_ERR_INTERNAL,
                    "oneDNN failed with status %d in %s; TACIT_ISA=avx512 or "
                    "ref does without it",
                    (int)s, what);
}

/* What a table has before this set is applied. */
static tac_kernels base_kernels(tac_dtype dtype)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    tac_kernels t = {.struct_size = sizeof t, .dtype = dtype};
    char why[128];
    if (dtype == TAC_BF16) tac__half_apply(&t);
    for (size_t i = 0; sets[i] && sets[i] != &tac__onednn_set; ++i)
        if (sets[i]->available(why, sizeof why)) sets[i]->apply(&t);
    return t;
}

tac_status tac__onednn_create(tac_context *ctx, void **cache)
{
    tac__onednn *o = calloc(1, sizeof *o);
    if (!o) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for oneDNN's cache");
    o->ctx = ctx;
    o->omp = tac__omp_find();
    o->base = base_kernels(TAC_F32);
    o->base_bf16 = base_kernels(TAC_BF16);
    o->small = tac__small_conv_find();
    const dnnl_status_t s = dnnl_engine_create(&o->engine, dnnl_cpu, 0);
    if (s != dnnl_success) {
        const tac_status status = tac__onednn_fail(o, s, "creating its engine");
        free(o);
        return status;
    }
    *cache = o;
    return TAC_OK;
}

void tac__onednn_destroy(void *cache)
{
    tac__onednn *o = cache;
    if (!o) return;
    for (size_t i = 0; i < TAC__PLAN_BUCKETS; ++i) {
        tac__conv_plans_destroy(o->plans[i]);
        tac__matmul_plans_destroy(o->products[i]);
    }
    for (size_t i = 0; i < o->space_count; ++i) free(o->spaces[i].p);
    free(o->spaces);
    dnnl_engine_destroy(o->engine);
    free(o);
}

size_t tac__onednn_bytes(const void *cache)
{
    const tac__onednn *o = cache;
    size_t bytes = 0;
    for (size_t i = 0; i < o->space_count; ++i) bytes += o->spaces[i].bytes;
    return bytes;
}

static tac_status no_memory(const tac__onednn *o, size_t bytes)
{
    return tac_fail(o->ctx, TAC_ERR_NOMEM,
                    "no memory for %zu bytes of scratch; lower "
                    "the batch or the threads",
                    bytes);
}

static tac_status reserve_spaces(tac__onednn *o, size_t parts)
{
    if (parts <= o->space_count) return TAC_OK;
    tac__workspace *spaces = realloc(o->spaces, parts * sizeof *spaces);
    if (!spaces) return no_memory(o, parts * sizeof *spaces);
    for (size_t i = o->space_count; i < parts; ++i)
        spaces[i] = (tac__workspace){NULL, 0};
    o->spaces = spaces;
    o->space_count = parts;
    return TAC_OK;
}

tac_status tac__onednn_reserve(tac__onednn *o, size_t parts, size_t bytes)
{
    const size_t page = 4096;
    const size_t whole = (bytes + page - 1) / page * page;
    TAC_TRY(reserve_spaces(o, parts));
    for (size_t i = 0; i < parts; ++i) {
        tac__workspace *space = &o->spaces[i];
        if (space->bytes >= whole) continue;
        char *p = aligned_alloc(page, whole);
        if (!p) return no_memory(o, whole);
        free(space->p);
        *space = (tac__workspace){p, whole};
    }
    return TAC_OK;
}

enum { PIECE = 512 };

static void add_bf16(uint16_t *y, const float *x, size_t n)
{
    float wide[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = n - i < PIECE ? n - i : PIECE;
        tac_bf16_to_f32_n(wide, y + i, m);
        for (size_t j = 0; j < m; ++j) wide[j] += x[i + j];
        tac_f32_to_bf16_n(y + i, wide, m);
    }
}

static void add_f32(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; ++i) y[i] += x[i];
}

void tac__onednn_add(tac_dtype type, void *y, const float *x, size_t n)
{
    if (type == TAC_BF16)
        add_bf16(y, x, n);
    else
        add_f32(y, x, n);
}
