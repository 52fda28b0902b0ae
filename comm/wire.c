/* wire.c: a request's elements on their way out and in (see wire.h), a block of
 * 1024 at a time, so that nothing leaves the L1 cache in between. */
#include "wire.h"

#include <string.h>

#include "comm_impl.h"

#define BLOCK TAC__REDUCE_BLOCK

const tac__wire *tac__wire_of(int wire_dtype)
{
    if (wire_dtype == TAC_F16) return &tac__wire_fp16;
    if (wire_dtype == TAC_BF16) return &tac__wire_bf16;
    return NULL;
}

size_t tac__wire_bytes(const tac_req *req, size_t n)
{
    return req->wire ? req->wire->bytes(n) : n * req->esize;
}

static float scale_of(const tac__feedback *f)
{
    return f->grad_scale != 0 ? f->grad_scale : 1.0f;
}

/* x[i] = src[i] * prescale + grad_scale * old[i] */
static void prepare(const tac_req *req, size_t at, size_t n, float *x)
{
    const tac__feedback *f = &req->feedback;
    memcpy(x, (const float *)(const void *)req->src + at, n * sizeof *x);
    if (req->prescale != 1.0)
        req->comm->kernels->scale(x, (float)req->prescale, n);
    if (!f->old) return;
    const float s = scale_of(f);
    for (size_t i = 0; i < n; i++) x[i] += s * f->old[at + i];
}

/* What the encoding of x has lost. */
static void keep_loss(const tac_req *req, size_t at, size_t n, const float *x,
                      const float *sent)
{
    const tac__feedback *f = &req->feedback;
    const float s = scale_of(f);
    for (size_t i = 0; i < n; i++) f->next[at + i] = (x[i] - sent[i]) / s;
}

void tac__wire_out(tac_req *req, size_t at, size_t n, void *msg)
{
    float x[BLOCK], sent[BLOCK];
    const tac__work w = tac__work_begin(n * req->esize);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        prepare(req, at + k, m, x);
        req->wire->encode(msg, n, k, x, m, &req->feedback.dither, at);
        if (!req->feedback.next) continue;
        req->wire->decode(msg, n, k, sent, m);
        keep_loss(req, at + k, m, x, sent);
    }
    tac__work_end(req, w);
}

void tac__wire_reduce(tac_req *req, size_t at, size_t n, void *msg)
{
    const tac_comm *c = req->comm;
    float acc[BLOCK], x[BLOCK];
    const tac__work w = tac__work_begin(n * req->esize * (size_t)c->size);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        req->wire->decode(c->scratch.srcs[0], n, k, acc, m);
        for (int r = 1; r < c->size; r++) {
            req->wire->decode(c->scratch.srcs[r], n, k, x, m);
            c->kernels->combine[req->op](acc, x, m);
        }
        if (req->op == TAC_AVG) c->kernels->divide(acc, (float)c->size, m);
        if (req->postscale != 1.0)
            c->kernels->scale(acc, (float)req->postscale, m);
        req->wire->encode(msg, n, k, acc, m, &req->feedback.dither, at);
    }
    tac__work_end(req, w);
}

void tac__wire_in(tac_req *req, size_t at, size_t n, const void *msg)
{
    float *dst = (float *)(void *)req->dst + at;
    const tac__work w = tac__work_begin(n * req->esize);
    for (size_t k = 0; k < n; k += BLOCK)
        req->wire->decode(msg, n, k, dst + k, n - k < BLOCK ? n - k : BLOCK);
    tac__work_end(req, w);
}
