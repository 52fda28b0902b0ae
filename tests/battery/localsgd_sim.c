/* The simulator against one that is written for clarity alone: every worker by
 * itself, every layer of every step, a list of all messages, and what is due
 * by arithmetic on the attempt's number. Configurations are random. */
#include <stdint.h>
#include <stdlib.h>

#include "localsgd_sim_setup.h"
#include "tac_check.h"
#include "tacit/rng.h"

enum { WORKERS = 24, LAYERS = 7, STEPS = 40, MESSAGES = STEPS * LAYERS };

typedef struct message {
    int64_t layer, needed; /* by the forward of this step */
    double arrives[WORKERS];
} message;

typedef struct naive {
    const tac_sim_config *c;
    const tac_localsgd_config *l;
    const tac_sim_network *nets;
    double now[WORKERS], channel[TAC_LOCALSGD_LEVELS][WORKERS];
    message list[MESSAGES];
    int64_t n;
    double bits;
} naive;

static int64_t group_size(const naive *s, int level)
{
    return s->l->n_levels > 0 ? s->l->levels[level].ranks : s->c->workers;
}

/* Worker w of M is slow if (w+1) n / M and w n / M differ in their floors. */
static double factor(const tac_sim_config *c, int64_t w)
{
    int64_t n = (int64_t)(c->straggler_share * (double)c->workers + 0.5);
    if (n < 1) n = 1;
    if (c->straggler_factor == 1) return 1;
    return (w + 1) * n / c->workers > w * n / c->workers ? c->straggler_factor
                                                         : 1;
}

/* The level at which a layer is sent after attempt a; -1: it is not. */
static int level_at(const naive *s, int64_t a, int64_t layer)
{
    const tac_localsgd_config *l = s->l;
    const int64_t p = l->fragments > 1 ? l->fragments : 1;
    const int64_t f = l->strided ? layer % p : layer * p / s->c->layers;
    const int last = l->n_levels > 0 ? l->n_levels - 1 : 0;
    const int64_t h =
        l->n_levels > 0 ? l->levels[last].every : l->schedule.every;
    if (a <= l->schedule.start) return last;
    a -= l->schedule.start;
    if (a % h == f * h / p) return last;
    for (int k = last - 1; k >= 0; k--)
        if (a % l->levels[k].every == 0) return k;
    return -1;
}

static void send(naive *s, int level, int64_t layer, int64_t needed)
{
    const int64_t size = group_size(s, level);
    const double bits = s->c->params * s->c->bits / (double)s->c->layers;
    double *channel = s->channel[level];
    message *m = &s->list[s->n++];
    const double m_ = (double)size, bw = s->nets[level].up_bits;
    double lasts = s->nets[level].latency_s + bits / bw;
    if (s->c->topology == TAC_SIM_RING)
        lasts = 2 * (m_ - 1) * s->nets[level].latency_s +
                2 * (m_ - 1) / m_ * bits / bw;
    if (size < 2) lasts = 0;
    *m = (message){.layer = layer, .needed = needed};
    s->bits += bits;
    for (int64_t first = 0; first < s->c->workers; first += size) {
        double start = channel[first];
        for (int64_t w = first; w < first + size; w++)
            start = fmax(start, s->now[w]);
        for (int64_t w = first; w < first + size && size > 1; w++)
            m->arrives[w] = channel[w] = start + lasts;
    }
}

/* A result is due at the latest when its fragment is sent again. */
static void hurry(naive *s, int64_t layer, int64_t step)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->list[i].layer == layer && s->list[i].needed > step + 1)
            s->list[i].needed = step + 1;
}

static void forward(naive *s, int64_t step, int64_t layer)
{
    for (int64_t w = 0; w < s->c->workers; w++) {
        for (int64_t i = 0; i < s->n; i++)
            if (s->list[i].layer == layer && s->list[i].needed <= step)
                s->now[w] = fmax(s->now[w], s->list[i].arrives[w]);
        s->now[w] += s->c->step_s / 3 / (double)s->c->layers * factor(s->c, w);
    }
}

static void backward(naive *s, int64_t step, int64_t layer)
{
    const tac_localsgd_config *l = s->l;
    const int level = level_at(s, step + 1, layer);
    const int outer = level == (l->n_levels > 0 ? l->n_levels - 1 : 0);
    const int delayed = outer && l->delay > 0 && step >= l->schedule.start;
    for (int64_t w = 0; w < s->c->workers; w++)
        s->now[w] +=
            s->c->step_s / 1.5 / (double)s->c->layers * factor(s->c, w);
    if (level < 0) return;
    if (delayed) hurry(s, layer, step);
    send(s, level, layer, step + 1 + (delayed ? l->delay : 0));
}

static double simulate(naive *s)
{
    double end = 0;
    for (int64_t t = 0; t < s->c->steps; t++) {
        for (int64_t i = 0; i < s->c->layers; i++) forward(s, t, i);
        for (int64_t i = s->c->layers - 1; i >= 0; i--) backward(s, t, i);
    }
    for (int64_t w = 0; w < s->c->workers; w++) {
        end = fmax(end, s->now[w]);
        for (int k = 0; k < TAC_LOCALSGD_LEVELS; k++)
            end = fmax(end, s->channel[k][w]);
    }
    return end;
}

/* ---- random configurations
 * ---------------------------------------------------- */

typedef struct dice {
    tac_rng_key key;
    uint64_t n;
} dice;

/* From a to b, both included. */
static int64_t roll(dice *d, int64_t a, int64_t b)
{
    return a + (int64_t)tac_rng_below(&d->key, d->n++, (uint64_t)(b - a + 1));
}

static void roll_levels(dice *d, tac_localsgd_config *l, int64_t workers)
{
    static const int sizes[][3] = {
        {2, 12, 24}, {3, 6, 24}, {4, 8, 24}, {1, 8, 24}};
    const int *size = sizes[roll(d, 0, 3)];
    int64_t every = 0;
    if (workers != WORKERS) return;
    l->n_levels = (int)roll(d, 0, 3);
    for (int k = 0; k < l->n_levels; k++) {
        every += roll(d, 1, 4);
        l->levels[k] =
            (tac_sync_level){k == l->n_levels - 1 ? WORKERS : size[k], every};
    }
}

static void roll_local(dice *d, tac_localsgd_config *l, int64_t layers,
                       int64_t workers)
{
    l->schedule.every = roll(d, 1, 9);
    l->schedule.start = roll(d, 0, 2) ? 0 : roll(d, 0, 5);
    l->fragments = roll(d, 0, layers);
    l->strided = (int)roll(d, 0, 1);
    roll_levels(d, l, workers);
    const int64_t h =
        l->n_levels > 0 ? l->levels[l->n_levels - 1].every : l->schedule.every;
    l->delay = roll(d, 0, 1) ? 0 : roll(d, 0, h);
}

static void roll_sim(dice *d, tac_sim_config *c)
{
    c->layers = roll(d, 1, LAYERS);
    c->params = (double)roll(d, 1, 400);
    c->bits = 1;
    c->step_s = (double)roll(d, 1, 5);
    c->workers = roll(d, 0, 1) ? WORKERS : roll(d, 1, WORKERS);
    c->steps = roll(d, 1, STEPS);
    c->topology = roll(d, 0, 1) ? TAC_SIM_ONCE : TAC_SIM_RING;
    if (roll(d, 0, 1)) {
        c->straggler_factor = 1 + 0.25 * (double)roll(d, 1, 4);
        c->straggler_share = 0.125 * (double)roll(d, 0, 8);
    }
}

static void one(tac_context *ctx, uint64_t seed)
{
    dice d = {{seed, TAC_STREAM_USER, 0}, 0};
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    tac_sim_config c = TAC_SIM_CONFIG_INIT;
    tac_sim_network nets[TAC_LOCALSGD_LEVELS];
    tac_sim_result r;
    roll_sim(&d, &c);
    roll_local(&d, &l, c.layers, c.workers);
    sim_local(&c, &l);
    for (int k = 0; k < TAC_LOCALSGD_LEVELS; k++)
        nets[k] =
            sim_net((double)roll(&d, 5, 500), 0.1 * (double)roll(&d, 0, 5));
    naive *s = calloc(1, sizeof *s);
    if (!s) return;
    *s = (naive){.c = &c, .l = &l, .nets = nets};
    const double want = simulate(s);
    if (CHECK_OK(tac_sim_run(ctx, &c, nets, NULL, 0, &r))) {
        tac_check_report(sim_near(r.total_s, want), __FILE__, __LINE__,
                         "seed %d: %.15g s, not %.15g", (int)seed, r.total_s,
                         want);
        tac_check_report(sim_near(r.bits_sent, s->bits), __FILE__, __LINE__,
                         "seed %d: %.15g bits, not %.15g", (int)seed,
                         r.bits_sent, s->bits);
        CHECK(r.classes <= c.workers);
    }
    free(s);
}

int main(void)
{
    tac_context *ctx = NULL;
    if (!CHECK_OK(tac_context_create(NULL, &ctx))) return tac_check_summary();
    for (uint64_t seed = 0; seed < 400; seed++) one(ctx, seed);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
