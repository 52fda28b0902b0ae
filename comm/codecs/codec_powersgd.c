/* codec_powersgd.c: matrices of low rank: M (n x m) travels as P (n x r) and Q
 * (m x r).
 *
 *     M = gradient + residual
 *     P = M Q, averaged over ranks, orthonormalised
 *     Q = M^T P, and residual = M - P Q^T with this rank's own Q
 *     Q averaged over ranks; result = P Q^T; Q is where the next call starts
 *
 * Two allreduces a call, whatever the number of matrices: of all P with the
 * parameters that are sent whole, and of all Q. 4 (n + m) r bytes a matrix;
 * 8 n m r operations, of which half is decoding. Residuals and Q are f32.
 *
 * Each rank's own residual, not the difference to the average (as the
 * reference has it): what ranks disagree about cancels in the sums either way,
 * but would grow in the residuals. Q is orthonormalised before it is used
 * again: P spans the same columns, and its size does not depend on the
 * gradient's. Reference: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical
 * Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019,
 * algorithm 1. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"
#include "tacit/hash.h"
#include "tacit/rng.h"

/* Of random numbers; those of users begin at TAC_STREAM_USER. */
enum { STREAM = TAC_STREAM_USER - 1 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t tac__powersgd_rank(const tac__codec_spec *s, size_t rows, size_t columns)
{
    const double n = (double)rows, m = (double)columns, r = (double)s->rank;
    if (columns < 2 || rows < 2) return 0;
    if (!((n + m) * r * s->min_rate < n * m)) return 0;
    return smaller(s->rank, smaller(rows, columns));
}

static size_t rank_of(const tac_codec *c, const tac__codec_param *p)
{
    return tac__powersgd_rank(&c->spec, p->rows, p->columns);
}

static size_t bytes(const tac__codec_spec *s, const tac__extents *e,
                    uint64_t call)
{
    const size_t r = tac__powersgd_rank(s, e->rows, e->columns);
    (void)call;
    return sizeof(float) * (r ? (e->rows + e->columns) * r : e->count);
}

/* Both factors, and the second once more as the next warm start. */
static size_t room(const tac__codec_spec *s, const tac__extents *e, int size)
{
    const size_t r = tac__powersgd_rank(s, e->rows, e->columns);
    (void)size;
    return bytes(s, e, 0) + sizeof(float) * e->columns * r;
}

/* ---- warm starts ----------------------------------------------------------
 */

/* The same on all ranks: a function of seed, name and calls. */
typedef struct source {
    const tac_codec *c;
    const tac__codec_param *p;
} source;

static void randomise(void *arg, size_t which, float *v, size_t length)
{
    const source *s = arg;
    uint64_t h = tac_hash_str(TAC_HASH_INIT, s->p->name);
    h = tac_hash_u64(h, s->p->calls);
    const tac_rng_key key = {s->c->spec.seed, STREAM, h ^ h >> 48};
    for (size_t i = 0; i < length; i++)
        v[i] = (float)tac_rng_normal(&key, which * length + i);
}

static void refresh(const tac_codec *c, const tac__codec_param *p, float *q)
{
    source s = {c, p};
    tac__orthonormalise(q, rank_of(c, p), p->columns, randomise, &s);
}

tac_status tac__powersgd_warm(tac_codec *c, tac__codec_param *p)
{
    const size_t r = rank_of(c, p);
    if (p->q || r == 0) return TAC_OK;
    p->q = malloc(r * p->columns * sizeof *p->q);
    if (!p->q)
        return tac_fail(c->ctx, TAC_ERR_NOMEM,
                        "codec %s: no memory for the factors of '%s'", c->text,
                        p->name);
    for (size_t j = 0; j < r; j++)
        randomise(&(source){c, p}, j, p->q + j * p->columns, p->columns);
    refresh(c, p, p->q);
    return TAC_OK;
}

static tac_status open(tac_codec *c, tac__codec_set *set, int size)
{
    (void)size;
    for (size_t i = 0; i < set->n; i++) {
        tac__codec_param *p = set->places[i].param;
        const size_t r = rank_of(c, p);
        TAC_TRY(tac__powersgd_warm(c, p));
        set->n_values += r ? p->rows * r : p->count;
        set->n_sums += p->columns * r;
    }
    set->values = malloc((set->n_values + 1) * sizeof(float));
    set->sums = malloc((set->n_sums + 1) * sizeof(float));
    if (set->values && set->sums) return TAC_OK;
    return tac_fail(c->ctx, TAC_ERR_NOMEM, "codec %s: no memory for factors",
                    c->text);
}

/* ---- one matrix -----------------------------------------------------------
 */

/* Everything row after row: M (n, m), P^T (r, n), Q^T (r, m). */
typedef struct matrix {
    const tac__codec_kernels *k;
    size_t n, m, r;
    float *M, *P, *Q;
} matrix;

/* P = M Q, where Q is the warm start */
static void multiply(const matrix *a, const float *warm)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->r; j++)
            a->P[j * a->n + i] =
                a->k->dot(a->M + i * a->m, warm + j * a->m, a->m);
}

/* Q = M^T P */
static void multiply_back(const matrix *a)
{
    memset(a->Q, 0, a->r * a->m * sizeof *a->Q);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->r; j++)
            a->k->axpy(a->Q + j * a->m, a->P[j * a->n + i], a->M + i * a->m,
                       a->m);
}

/* out += sign P Q^T */
static void add_product(const matrix *a, float sign, float *out)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->r; j++)
            a->k->axpy(out + i * a->m, sign * a->P[j * a->n + i],
                       a->Q + j * a->m, a->m);
}

/* ---- all of an arrangement ------------------------------------------------
 */

/* Calls fn for each parameter, with its factors or, where a->r is 0, with what
 * is sent whole at a->P. */
typedef void visit_fn(tac_req *req, const matrix *a, tac__codec_param *p,
                      size_t at);
static void for_each(tac_req *req, visit_fn *fn)
{
    const tac_codec *c = req->codec;
    const tac__codec_set *set = req->plan;
    float *values = set->values, *sums = set->sums;
    for (size_t i = 0; i < set->n; i++) {
        tac__codec_param *p = set->places[i].param;
        const size_t at = set->places[i].at;
        const matrix a = {.k = req->comm->codec_kernels,
                          .n = p->rows,
                          .m = p->columns,
                          .r = rank_of(c, p),
                          .M = set->lost.next + at,
                          .P = values,
                          .Q = sums};
        fn(req, &a, p, at);
        values += a.r ? a.n * a.r : p->count;
        sums += a.m * a.r;
    }
}

static void make_p(tac_req *req, const matrix *a, tac__codec_param *p,
                   size_t at)
{
    (void)req, (void)at;
    if (a->r) {
        multiply(a, p->q);
        return;
    }
    memcpy(a->P, a->M, p->count * sizeof *a->P);
    memset(a->M, 0, p->count * sizeof *a->M); /* nothing is lost */
}

static void make_q(tac_req *req, const matrix *a, tac__codec_param *p,
                   size_t at)
{
    (void)req, (void)p, (void)at;
    if (!a->r) return;
    tac__orthonormalise(a->P, a->r, a->n, NULL, NULL);
    multiply_back(a);
    add_product(a, -1.0f, a->M);
}

static void decode(tac_req *req, const matrix *a, tac__codec_param *p,
                   size_t at)
{
    float *dst = (float *)(void *)req->dst + at;
    if (a->r)
        add_product(a, 1.0f, dst);
    else
        memcpy(dst, a->P, p->count * sizeof *dst);
}

static tac_status reduce(tac_req *req, float *x, size_t n)
{
    tac_codec *c = req->codec;
    c->inner = tac__codec_inner_like(req);
    c->inner.src = c->inner.dst = (char *)x;
    c->inner.count = n;
    c->inner.prescale = c->inner.postscale = 1;
    TAC_TRY(tac__inner_begin(req, &c->inner));
    return TAC_INPROGRESS;
}

static tac_status first_half(tac_req *req, tac__codec_set *set)
{
    const tac__work w = tac__work_begin(req->count * sizeof(float));
    tac__codec_prepare(req, set);
    for_each(req, make_p);
    tac__work_end(req, w);
    return reduce(req, set->values, set->n_values);
}

static tac_status second_half(tac_req *req, tac__codec_set *set)
{
    const float scale = tac__codec_scale(req);
    const tac__work w = tac__work_begin(req->count * sizeof(float));
    for_each(req, make_q);
    if (scale != 1.0f)
        req->comm->kernels->divide(set->lost.next, scale, set->count);
    tac__work_end(req, w);
    return reduce(req, set->sums, set->n_sums);
}

static tac_status finish(tac_req *req)
{
    const tac__work w = tac__work_begin(req->count * sizeof(float));
    memset(req->dst, 0, req->count * sizeof(float));
    for_each(req, decode);
    if (req->postscale != 1.0)
        req->comm->kernels->scale((float *)(void *)req->dst,
                                  (float)req->postscale, req->count);
    tac__work_end(req, w);
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    tac__codec_set *set = req->plan;
    const int stage = req->turn++;
    if (stage == 0) return first_half(req, set);
    return stage == 1 ? second_half(req, set) : finish(req);
}

static void commit(tac_codec *c, tac__codec_set *set)
{
    const float *q = set->sums;
    for (size_t i = 0; i < set->n; i++) {
        tac__codec_param *p = set->places[i].param;
        const size_t n = rank_of(c, p) * p->columns;
        if (n == 0) continue;
        memcpy(p->q, q, n * sizeof *q);
        refresh(c, p, p->q);
        q += n;
    }
}

const tac__codec_method tac__codec_powersgd = {
    .name = "powersgd",
    .doc = "matrices of low rank",
    .argument = "R",
    .options = "seed=N min-rate=X",
    .feedback = 1,
    .own_feedback = 1,
    .start = 10,
    .bytes = bytes,
    .room = room,
    .open = open,
    .step = step,
    .commit = commit,
};
