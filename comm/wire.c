/* wire.c: a request's elements on their way out and in (see wire.h), a block of
 * 1024 at a time, so that nothing leaves the L1 cache in between. */
#include "wire.h"

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

tac__feedback tac__feedback_at(const tac__feedback *f, size_t at)
{
    tac__feedback g = *f;
    if (g.old) g.old += at;
    if (g.next) g.next += at;
    if (g.sum_old) g.sum_old += at;
    if (g.sum_next) g.sum_next += at;
    return g;
}

static float scale_of(const tac__feedback *f)
{
    return f->grad_scale != 0 ? f->grad_scale : 1.0f;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* One sequence a sender, and one of results, which are the same whoever forms
 * them: were two the same, their errors would not cancel in the sum. */
static uint64_t dither_key(const tac__dither *d, uint64_t sender)
{
    if (d->seed == 0) return 0;
    return mix(d->seed + mix(d->step + mix(sender + 1))) | 1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- out ------------------------------------------------------------------
 */

/* Elements as they are encoded: in the source itself where nothing is to be
 * done to them. */
static const float *prepared(const tac_req *req, size_t at, size_t n,
                             float *tmp)
{
    const tac__feedback *f = &req->feedback;
    const float *src = (const float *)(const void *)req->src + at;
    if (req->prescale == 1.0 && !f->old) return src;
    req->comm->codec_kernels->prepare(tmp, src, (float)req->prescale,
                                      f->old ? f->old + at : NULL, scale_of(f),
                                      n);
    return tmp;
}

/* What the encoding of x has lost. */
static void keep_loss(const tac_req *req, const void *msg, size_t total,
                      size_t k, const float *x, size_t n, float *next)
{
    const tac__codec_kernels *loops = req->comm->codec_kernels;
    float sent[BLOCK];
    req->wire->decode(loops, msg, total, k, sent, n);
    loops->loss(next, x, sent, scale_of(&req->feedback), n);
}

void tac__wire_out(tac_req *req, size_t at, size_t n, void *msg)
{
    const tac_comm *c = req->comm;
    const tac__feedback *f = &req->feedback;
    const uint64_t key = dither_key(&f->dither, (uint64_t)c->rank + 1);
    float tmp[BLOCK];
    const tac__work w = tac__work_begin(n * req->esize);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = least(n - k, BLOCK);
        const float *x = prepared(req, at + k, m, tmp);
        req->wire->encode(c->codec_kernels, msg, n, k, x, m, key, at);
        if (f->next) keep_loss(req, msg, n, k, x, m, f->next + at + k);
    }
    tac__work_end(req, w);
}

/* ---- the sum --------------------------------------------------------------
 */

/* acc = the ranks' elements k .. k + m of their messages of n, in rank order */
static void add_up(const tac_req *req, size_t n, size_t k, float *acc, size_t m)
{
    const tac_comm *c = req->comm;
    const void *const *msgs = c->scratch.srcs;
    const int sum = req->op == TAC_SUM || req->op == TAC_AVG;
    float x[BLOCK];
    req->wire->decode(c->codec_kernels, msgs[0], n, k, acc, m);
    for (int r = 1; r < c->size; r++) {
        if (sum) {
            req->wire->add(c->codec_kernels, msgs[r], n, k, acc, m);
            continue;
        }
        req->wire->decode(c->codec_kernels, msgs[r], n, k, x, m);
        c->kernels->combine[req->op](acc, x, m);
    }
    if (req->op == TAC_AVG) c->kernels->divide(acc, (float)c->size, m);
    if (req->postscale != 1.0) c->kernels->scale(acc, (float)req->postscale, m);
}

void tac__wire_reduce(tac_req *req, size_t at, size_t n, void *msg)
{
    const tac_comm *c = req->comm;
    const tac__feedback *f = &req->feedback;
    const uint64_t key = dither_key(&f->dither, 0);
    float acc[BLOCK];
    const tac__work w = tac__work_begin(n * req->esize * (size_t)c->size);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = least(n - k, BLOCK);
        add_up(req, n, k, acc, m);
        if (f->sum_old)
            c->codec_kernels->axpy(acc, scale_of(f), f->sum_old + at + k, m);
        req->wire->encode(c->codec_kernels, msg, n, k, acc, m, key, at);
        if (f->sum_next)
            keep_loss(req, msg, n, k, acc, m, f->sum_next + at + k);
    }
    tac__work_end(req, w);
}

/* ---- in -------------------------------------------------------------------
 */

void tac__wire_in(tac_req *req, size_t at, size_t n, const void *msg)
{
    const tac__codec_kernels *loops = req->comm->codec_kernels;
    float *dst = (float *)(void *)req->dst + at;
    const tac__work w = tac__work_begin(n * req->esize);
    for (size_t k = 0; k < n; k += BLOCK)
        req->wire->decode(loops, msg, n, k, dst + k, least(n - k, BLOCK));
    tac__work_end(req, w);
}
