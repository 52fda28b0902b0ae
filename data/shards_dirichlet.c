/* shards_dirichlet.c: shards whose mixes of labels are drawn at random.
 *
 * A Dirichlet variate is a vector of Gamma variates over their sum. They are
 * drawn as logarithms: with a small concentration most of them are below the
 * smallest f64, and once the classes of the large ones have run out, their
 * proportions still say how the rest is shared.
 * Gamma: Marsaglia, Tsang, "A Simple Method for Generating Gamma Variables",
 * 2000, in f64. Cost: O(N + R*C) draws and moves, C*C comparisons a rank at
 * most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shards_impl.h"
#include "tacit/rng.h"

/* Numbers of a variate are those of its own two keys: a key's blocks are cut
 * either into normals or into uniforms. Step 0 is taken. */
static tac_rng_key key_of(uint64_t seed, uint64_t variate, unsigned which)
{
    return (tac_rng_key){seed, TAC_STREAM_SHARD, 1 + 2 * variate + which};
}

/* In (0, 1], so that the logarithm is finite. */
static double positive(const tac_rng_key *key, uint64_t index)
{
    return 1 - tac_rng_uniform(key, index);
}

/* The logarithm of a Gamma(a, 1) variate, a > 0. Below 1 it is that of a + 1
 * times U^(1/a). */
static double log_gamma_variate(uint64_t seed, uint64_t variate, double a)
{
    const tac_rng_key normals = key_of(seed, variate, 0);
    const tac_rng_key uniforms = key_of(seed, variate, 1);
    const double boost = a < 1 ? log(positive(&uniforms, 0)) / a : 0;
    const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (uint64_t i = 1;; ++i) {
        const double x = tac_rng_normal(&normals, i), root = 1 + c * x;
        const double v = root * root * root, u = positive(&uniforms, i);
        if (root > 0 && log(u) < x * x / 2 + d - d * v + d * log(v))
            return log(d * v) + boost;
    }
}

/* One rank's mix and what it leads to. */
typedef struct mix {
    double *log_weight; /* (classes) */
    double *want;       /* (classes) scratch */
    size_t *take;       /* (classes) samples that the rank gets */
    size_t *used;       /* (classes) of the pools, by the ranks before */
} mix;

static size_t left_of(const tac__pools *p, const mix *m, size_t k)
{
    return p->first[k + 1] - p->first[k] - m->used[k] - m->take[k];
}

static void draw_mix(const tac_shards_config *c, double a, size_t rank,
                     const tac__pools *p, mix *m)
{
    const double scale = a * (double)c->classes / (double)c->count;
    for (size_t k = 0; k < c->classes; ++k) {
        const size_t n = p->first[k + 1] - p->first[k];
        const uint64_t variate = (uint64_t)rank * c->classes + k;
        m->log_weight[k] =
            n ? log_gamma_variate(c->seed, variate, scale * (double)n) : 0;
    }
}

/* want[k]: class k's part of `quota` among the classes that have samples left;
 * -1 for the others. */
static void set_want(const tac__pools *p, size_t quota, mix *m)
{
    double largest = -INFINITY, sum = 0;
    for (size_t k = 0; k < p->classes; ++k)
        if (left_of(p, m, k) > 0) largest = fmax(largest, m->log_weight[k]);
    for (size_t k = 0; k < p->classes; ++k) {
        m->want[k] = left_of(p, m, k) > 0 ? exp(m->log_weight[k] - largest) : 0;
        sum += m->want[k];
    }
    for (size_t k = 0; k < p->classes; ++k)
        m->want[k] =
            left_of(p, m, k) > 0 ? m->want[k] / sum * (double)quota : -1;
}

/* Takes all of the classes that have no more than is wanted; returns how many
 * samples that is. */
static size_t take_scarce(const tac__pools *p, mix *m)
{
    size_t taken = 0;
    for (size_t k = 0; k < p->classes; ++k) {
        const size_t left = left_of(p, m, k);
        if (left == 0 || m->want[k] < (double)left) continue;
        m->take[k] += left;
        taken += left;
    }
    return taken;
}

/* Each class has more than is wanted: whole parts, then one each to the largest
 * remainders. */
static void round_want(const tac__pools *p, size_t quota, mix *m)
{
    for (size_t k = 0; k < p->classes; ++k) {
        if (m->want[k] < 0) continue;
        const size_t whole = (size_t)m->want[k];
        m->take[k] += whole;
        m->want[k] -= (double)whole;
        quota -= whole;
    }
    for (; quota > 0; --quota) {
        size_t best = 0;
        for (size_t k = 1; k < p->classes; ++k)
            if (m->want[k] > m->want[best]) best = k;
        ++m->take[best];
        m->want[best] = -1;
    }
}

static void apportion(const tac__pools *p, size_t quota, mix *m)
{
    memset(m->take, 0, p->classes * sizeof(*m->take));
    while (quota > 0) {
        set_want(p, quota, m);
        const size_t taken = take_scarce(p, m);
        quota -= taken;
        if (taken > 0) continue;
        round_want(p, quota, m);
        return;
    }
}

/* Moves what the rank takes from the pools to its shard. */
static void fill_shard(const tac__pools *p, mix *m, uint32_t *to)
{
    for (size_t k = 0; k < p->classes; ++k) {
        const uint32_t *from = p->index + p->first[k] + m->used[k];
        if (m->take[k]) memcpy(to, from, m->take[k] * sizeof(*to));
        to += m->take[k];
        m->used[k] += m->take[k];
    }
}

tac_status tac__shards_dirichlet(tac_context *ctx, const tac_shards_config *c,
                                 double a, const tac__pools *pools,
                                 tac_shards *s)
{
    double *reals = calloc(2 * c->classes, sizeof(*reals));
    size_t *sizes = calloc(2 * c->classes, sizeof(*sizes));
    mix m = {reals, reals + c->classes, sizes, sizes + c->classes};
    tac_status status = TAC_OK;
    if (reals && sizes) {
        for (size_t r = 0; r < c->ranks; ++r) {
            draw_mix(c, a, r, pools, &m);
            apportion(pools, tac_shards_size(s, r), &m);
            fill_shard(pools, &m, s->index + s->first[r]);
        }
    } else {
        status = tac_fail(ctx, TAC_ERR_NOMEM,
                          "no memory for mixes of %zu classes", c->classes);
    }
    free(sizes);
    free(reals);
    return status;
}
