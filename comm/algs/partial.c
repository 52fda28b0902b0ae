/* partial.c: see partial.h. Blocks of 1024 elements stay in the L1 cache. */
#include "algs/partial.h"

#include <string.h>

#include "tacit/half.h"

#define BLOCK TAC__REDUCE_BLOCK

static int is_half(tac_dtype t)
{
    return t == TAC_F16 || t == TAC_BF16;
}

tac__partial tac__partial_of(const tac_req *req)
{
    const int scaled = req->prescale != 1.0 || req->postscale != 1.0;
    tac_dtype t = req->dtype;
    if (is_half(t))
        t = TAC_F32;
    else if (!tac_dtype_is_float(t) && (scaled || req->op == TAC_AVG))
        t = TAC_I64;
    return (tac__partial){t, tac_dtype_size(t),
                          t == req->dtype && req->prescale == 1.0};
}

/* As the kernels scale integers. */
static int64_t scaled(int64_t v, double by)
{
    const double x = (double)v * by;
    if (x >= 0x1p63) return INT64_MAX;
    if (x <= -0x1p63) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

static void load_integers(const tac_req *req, size_t at, size_t n, int64_t *to)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        switch (req->dtype) {
        case TAC_I32:
            v = ((const int32_t *)(const void *)req->src)[at + i];
            break;
        case TAC_I64:
            v = ((const int64_t *)(const void *)req->src)[at + i];
            break;
        default: v = ((const uint8_t *)req->src)[at + i]; break;
        }
        to[i] = req->prescale == 1.0 ? v : scaled(v, req->prescale);
    }
}

static void load_floats(const tac_req *req, size_t at, size_t n, float *to)
{
    const char *src = req->src + at * req->esize;
    if (req->dtype == TAC_F32)
        memmove(to, src, n * sizeof *to); /* maybe in place */
    else if (req->dtype == TAC_F16)
        tac_f16_to_f32_n(to, (const uint16_t *)(const void *)src, n);
    else
        tac_bf16_to_f32_n(to, (const uint16_t *)(const void *)src, n);
    if (req->prescale != 1.0)
        req->comm->kernels->scale(to, (float)req->prescale, n);
}

static void load_doubles(const tac_req *req, size_t at, size_t n, double *to)
{
    const double *src = (const double *)(const void *)req->src + at;
    for (size_t i = 0; i < n; i++) to[i] = src[i] * req->prescale;
}

void tac__partial_load(tac_req *req, size_t at, size_t n, void *to)
{
    const tac__partial p = tac__partial_of(req);
    const char *src = req->src + at * req->esize;
    if (n == 0 || (p.as_is && src == to)) return;
    if (p.as_is)
        memcpy(to, src, n * req->esize);
    else if (p.dtype == TAC_F32)
        load_floats(req, at, n, to);
    else if (p.dtype == TAC_F64)
        load_doubles(req, at, n, to);
    else
        load_integers(req, at, n, to);
}

static void combine(tac_req *req, tac__partial p, void *to, const void *left,
                    const void *right, size_t n)
{
    const void *srcs[2] = {left, right};
    tac__reduce(
        req->comm->kernels,
        &(tac__reduce_args){.dst = to,
                            .srcs = srcs,
                            .p = 2,
                            .n = n,
                            .dtype = p.dtype,
                            .op = req->op == TAC_AVG ? TAC_SUM : req->op,
                            .prescale = 1.0,
                            .postscale = 1.0});
}

void tac__partial_combine(tac_req *req, void *to, const void *left,
                          const void *right, size_t n)
{
    const tac__partial p = tac__partial_of(req);
    if (n == 0) return;
    combine(req, p, to, left, right, n);
}

void tac__partial_add(tac_req *req, void *sum, size_t at, size_t n)
{
    const tac__partial p = tac__partial_of(req);
    int64_t own[BLOCK]; /* the widest */
    if (n == 0) return;
    if (p.as_is) {
        tac__partial_combine(req, sum, sum, req->src + at * req->esize, n);
        return;
    }
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = tac__min(BLOCK, n - k);
        char *s = (char *)sum + k * p.esize;
        tac__partial_load(req, at + k, m, own);
        combine(req, p, s, s, own, m);
    }
}

void tac__partial_finish(const tac_req *req, float *sum, size_t n)
{
    const tac_comm *c = req->comm;
    if (req->op == TAC_AVG) c->kernels->divide(sum, (float)c->size, n);
    if (req->postscale != 1.0) c->kernels->scale(sum, (float)req->postscale, n);
}

static void store_floats(const tac_req *req, const float *sum, size_t n,
                         char *to)
{
    float x[BLOCK];
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = tac__min(BLOCK, n - k);
        void *out = to + k * req->esize;
        memcpy(x, sum + k, m * sizeof *x);
        tac__partial_finish(req, x, m);
        if (req->dtype == TAC_F32)
            memcpy(out, x, m * sizeof *x);
        else if (req->dtype == TAC_F16)
            tac_f32_to_f16_n(out, x, m);
        else
            tac_f32_to_bf16_n(out, x, m);
    }
}

static void store_doubles(const tac_req *req, const double *sum, size_t n,
                          double *to)
{
    for (size_t i = 0; i < n; i++) {
        double v = sum[i];
        if (req->op == TAC_AVG) v /= req->comm->size;
        to[i] = req->postscale == 1.0 ? v : v * req->postscale;
    }
}

static void store_integers(const tac_req *req, const int64_t *sum, size_t n,
                           char *to)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = sum[i];
        if (req->op == TAC_AVG) v /= req->comm->size;
        if (req->postscale != 1.0) v = scaled(v, req->postscale);
        if (req->dtype == TAC_I32)
            ((int32_t *)(void *)to)[i] = (int32_t)(uint64_t)v;
        else if (req->dtype == TAC_I64)
            ((int64_t *)(void *)to)[i] = v;
        else
            ((uint8_t *)to)[i] = (uint8_t)(uint64_t)v;
    }
}

void tac__partial_store(tac_req *req, const void *sum, size_t n, void *to)
{
    const tac__partial p = tac__partial_of(req);
    const int plain = req->op != TAC_AVG && req->postscale == 1.0;
    if (n == 0 || (plain && p.dtype == req->dtype && sum == to)) return;
    if (plain && p.dtype == req->dtype)
        memcpy(to, sum, n * p.esize);
    else if (p.dtype == TAC_F32)
        store_floats(req, sum, n, to);
    else if (p.dtype == TAC_F64)
        store_doubles(req, sum, n, to);
    else
        store_integers(req, sum, n, to);
}
