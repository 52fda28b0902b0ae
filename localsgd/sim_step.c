/* sim_step.c: one step of all workers.
 *
 * Time is kept for each cell (now) and for each group of each level (channel:
 * when it is free). A reduction starts when the slowest cell of its group has
 * queued it and the one before has ended, which is what a queue first in, first
 * out of collectives does, since all workers queue in the same order. Where
 * nothing is waited for or sent, a step is one addition a cell. */
#include <math.h>

#include "sim_impl.h"
#include "tacit/rng.h"

/* ---- arrivals -------------------------------------------------------------
 */

/* Results whose delay ends before this step, or that must make room. */
static void expect_late(tac__sim *s, int64_t u)
{
    const int64_t n = s->cells.n;
    double *ready = s->ready + u * n, *late = s->late + u * n;
    for (int64_t i = 0; i < n; i++) ready[i] = fmax(ready[i], late[i]);
    s->late_step[u] = -1;
    s->waits = 1;
}

static void expect_all_late(tac__sim *s)
{
    for (int64_t u = 0; u < s->plan.units; u++)
        if (s->late_step[u] == s->step) expect_late(s, u);
}

static void arrive(tac__sim *s, int64_t u, int level)
{
    const int outermost = s->cells.n_levels - 1;
    const int64_t n = s->cells.n;
    const int delayed = s->plan.delay > 0 && level == outermost;
    double *to = (delayed ? s->late : s->ready) + u * n;
    /* A fragment that is due again takes the result before with it. */
    if (delayed && s->late_step[u] >= 0) expect_late(s, u);
    for (int64_t i = 0; i < n; i++) {
        const double t = s->channel[level][s->cells.group[level][i]];
        to[i] = delayed ? t : fmax(to[i], t);
    }
    if (delayed)
        s->late_step[u] = s->step + 1 + s->plan.delay;
    else
        s->waits = 1;
}

static void wait_for(tac__sim *s, int64_t u)
{
    const int64_t n = s->cells.n;
    double *ready = s->ready + u * n;
    for (int64_t i = 0; i < n; i++) {
        if (ready[i] > s->now[i]) {
            if (tac__sim_draws(s))
                tac__sim_span(s, i, 0, "wait", u, s->now[i], ready[i]);
            s->now[i] = ready[i];
        }
        ready[i] = 0;
    }
}

/* ---- sending --------------------------------------------------------------
 */

static double luck(const tac__sim *s, int level, int64_t group)
{
    const tac_rng_key key = {s->c->seed, TAC_STREAM_USER, s->messages};
    const double jitter = s->nets[level].jitter_s;
    if (jitter == 0) return 0;
    return tac__sim_latest(jitter, s->cells.members[level],
                           tac_rng_uniform(&key, (uint64_t)group));
}

static void count(tac__sim *s, int level, double bits, double *step_bits)
{
    *step_bits += bits;
    s->bits_sent += bits;
    s->bits_link +=
        bits * tac__sim_link_factor(s->c->topology, s->cells.members[level]);
    s->messages++;
}

static void send(tac__sim *s, int64_t u, double *step_bits)
{
    const tac__sim_plan *p = &s->plan;
    const int k = p->level[u];
    const double lasts = tac__sim_duration(&s->nets[k], s->c->topology,
                                           s->cells.members[k], p->bits[u]) +
                         s->c->codec_s * p->params[u];
    double *channel = s->channel[k];
    count(s, k, p->bits[u], step_bits);
    if (s->cells.members[k] < 2) return;
    for (int64_t i = 0; i < s->cells.n; i++) {
        double *free_at = &channel[s->cells.group[k][i]];
        *free_at = fmax(*free_at, s->now[i]);
    }
    for (int64_t g = 0; g < s->cells.n_groups[k]; g++)
        channel[g] += lasts + luck(s, k, g);
    if (tac__sim_draws(s))
        for (int64_t i = 0; i < s->cells.n; i++) {
            const double end = channel[s->cells.group[k][i]];
            tac__sim_span(s, i, 1 + k, "reduce", u, end - lasts, end);
        }
    arrive(s, u, k);
}

/* ---- compute ---------------------------------------------------------------
 */

static void compute(tac__sim *s, const char *name, int64_t layer,
                    double seconds)
{
    for (int64_t i = 0; i < s->cells.n; i++) {
        const double begin = s->now[i];
        s->now[i] = begin + seconds * s->cells.factor[i];
        if (tac__sim_draws(s))
            tac__sim_span(s, i, 0, name, layer, begin, s->now[i]);
    }
}

static void layers_forward(tac__sim *s)
{
    for (int64_t l = 0; l < s->c->layers; l++) {
        if (s->waits) wait_for(s, l);
        compute(s, "forward", l, s->forward[l]);
    }
}

static void layers_backward(tac__sim *s, double *step_bits)
{
    for (int64_t l = s->c->layers - 1; l >= 0; l--) {
        compute(s, "backward", l, s->backward[l]);
        if (s->plan.any && s->plan.level[l] >= 0) send(s, l, step_bits);
    }
}

static void step_with_backward(tac__sim *s, double *step_bits)
{
    const int draws = tac__sim_draws(s);
    if (s->waits || draws)
        layers_forward(s);
    else
        compute(s, "forward", -1, s->c->step_s / 3);
    s->waits = 0;
    if (s->plan.any || draws)
        layers_backward(s, step_bits);
    else
        compute(s, "backward", -1, s->c->step_s * 2 / 3);
}

static void step_then_send(tac__sim *s, double *step_bits)
{
    for (int64_t u = 0; s->waits && u < s->plan.units; u++) wait_for(s, u);
    s->waits = 0;
    compute(s, "step", -1, s->c->step_s);
    for (int64_t u = 0; s->plan.any && u < s->plan.units; u++)
        if (s->plan.level[u] >= 0) send(s, u, step_bits);
}

static void count_step(tac__sim *s, double step_bits)
{
    s->syncs += s->plan.any;
    s->bits_peak = fmax(s->bits_peak, step_bits);
}

void tac__sim_step(tac__sim *s)
{
    double step_bits = 0;
    tac__sim_plan_next(&s->plan);
    expect_all_late(s);
    if (s->c->sending == TAC_SIM_AFTER_STEP)
        step_then_send(s, &step_bits);
    else
        step_with_backward(s, &step_bits);
    count_step(s, step_bits);
    s->step++;
}

void tac__sim_finish(tac__sim *s)
{
    double step_bits = 0;
    tac__sim_plan_finish(&s->plan);
    for (int64_t u = s->plan.units - 1; s->plan.any && u >= 0; u--)
        if (s->plan.level[u] >= 0) send(s, u, &step_bits);
    count_step(s, step_bits);
}
