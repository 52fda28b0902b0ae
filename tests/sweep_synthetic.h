/* sweep_synthetic.h: a sweep that nobody ran, with figures from formulas: for
 * tests of what is made of one. Accuracies fall a little with H, faster beyond
 * 16; bytes fall with 1/H; seeds differ by a fixed pattern. */
#ifndef SWEEP_SYNTHETIC_H
#define SWEEP_SYNTHETIC_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"

enum { SYN_CASES = 64, SYN_EVALS = 8, SYN_STEPS = 1720, SYN_TRIALS = 512 };

typedef struct synthetic {
    sweep s;
    sweep_options o;
    sweep_case cases[SYN_CASES];
    sweep_row rows[SYN_CASES * 4];
    run_point evals[SYN_CASES * 4][SYN_EVALS];
    sweep_trial trials[SYN_TRIALS];
    double layer_params[2];
} synthetic;

static sweep_case *syn_case(synthetic *y, const char *label, const char *sync,
                            int64_t every, int64_t accumulate,
                            const char *compress)
{
    sweep_case *k = &y->cases[y->s.n_cases++];
    snprintf(k->label, sizeof k->label, "%s", label);
    snprintf(k->sync, sizeof k->sync, "%s", sync);
    snprintf(k->compress, sizeof k->compress, "%s", compress);
    k->every = every;
    k->accumulate = accumulate;
    k->baseline = strcmp(sync, "grad") == 0 || every == 0;
    k->lr = 0.1;
    k->steps = SYN_STEPS / (accumulate > 1 ? accumulate : 1);
    k->sync_alone_s = NAN;
    return k;
}

static void syn_method(synthetic *y, const char *sync, const char *compress)
{
    char label[64];
    for (int64_t h = 1; h <= 128; h *= 2) {
        snprintf(label, sizeof label, "%s H=%d%s%s", sync, (int)h,
                 strcmp(compress, "none") ? " " : "",
                 strcmp(compress, "none") ? compress : "");
        syn_case(y, label, sync, h, 1, compress);
    }
}

/* ---- figures ---------------------------------------------------------------
 */

static double syn_loss_of_h(const sweep_case *k)
{
    const double h = (double)(k->accumulate > 1 ? k->accumulate : k->every);
    const double h2 = h > 0 ? log2(h) : 0;
    double a = 0.002 * h2 + (h > 16 ? 0.006 * (h2 - 4) : 0);
    if (k->accumulate > 1) a *= 2.2;
    if (strcmp(k->sync, "slowmo") == 0) a *= 0.7;
    if (strcmp(k->sync, "diloco") == 0) a = a * 0.5 + (h == 1 ? 0.02 : 0);
    if (strcmp(k->sync, "oneshot") == 0) a = 0.045;
    if (strcmp(k->sync, "none") == 0) a = 0.06;
    return a;
}

static double syn_syncs(const sweep_case *k)
{
    if (strcmp(k->sync, "none") == 0) return 0;
    if (strcmp(k->sync, "oneshot") == 0) return 1;
    const int64_t steps = SYN_STEPS / (k->accumulate > 1 ? k->accumulate : 1);
    return ceil((double)steps / (double)(k->every > 0 ? k->every : 1));
}

static void syn_row(synthetic *y, size_t of, int64_t seed)
{
    const size_t at = y->s.n_rows++;
    const sweep_case *k = &y->cases[of];
    sweep_row *r = &y->rows[at];
    const double worse = syn_loss_of_h(k);
    const double noise =
        0.001 * sin((double)(seed * 7) + (double)of * 1.3) - 0.0002;
    const double share = strcmp(k->compress, "int8") == 0   ? 0.254
                         : strcmp(k->compress, "fp16") == 0 ? 0.5
                                                            : 1;
    *r = (sweep_row){.of = of, .seed = seed, .lr = k->lr, .predictable = 1};
    r->steps = SYN_STEPS / (k->accumulate > 1 ? k->accumulate : 1);
    r->samples = (int64_t)SYN_STEPS * y->o.batch * y->s.world;
    r->syncs = (int64_t)syn_syncs(k);
    r->bytes_predicted = r->bytes_counted =
        floor(4 * y->s.params * share) * (double)r->syncs;
    r->wall_s = 4 + 0.011 * (double)r->syncs * (1 + 8 * noise);
    r->wall_predicted_s = 4.1 + 0.0108 * (double)r->syncs;
    r->test_accuracy = 0.884 - worse + noise;
    r->eval_accuracy = r->test_accuracy + 0.004;
    r->local_accuracy = r->eval_accuracy - worse;
    r->eval_loss = 0.32 + 2 * worse - noise;
    r->train_loss = 0.25 + worse;
    r->consensus_distance = r->syncs ? 1e-3 * (double)k->every : NAN;
    for (int i = 0; i < SWEEP_NETWORKS; i++) r->modelled_s[i] = NAN;
    r->evals = y->evals[at];
    r->n_evals = SYN_EVALS;
    for (int i = 0; i < SYN_EVALS; i++) {
        const double done = (double)(i + 1) / SYN_EVALS;
        y->evals[at][i] = (run_point){
            .step = (int64_t)(done * (double)r->steps),
            .train_s = done * r->wall_s,
            .loss = r->eval_loss + 0.35 * exp(-4 * done) + 0.2 * worse / done,
            .accuracy = r->eval_accuracy - 0.1 * exp(-4 * done),
            .bytes = done * r->bytes_counted * y->s.world};
    }
}

static void syn_search(synthetic *y, size_t of)
{
    static const double rates[] = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.4};
    const double worse = syn_loss_of_h(&y->cases[of]);
    for (int i = 0; i < 6 && y->s.n_trials < SYN_TRIALS; i++) {
        const double d = log2(rates[i] / 0.1);
        y->trials[y->s.n_trials++] =
            (sweep_trial){of, rates[i], 0.32 + 2 * worse + 0.02 * d * d,
                          0.888 - worse - 0.01 * d * d};
    }
}

/* ---- all of it -------------------------------------------------------------
 */

static void syn_cases(synthetic *y)
{
    char label[64];
    syn_method(y, "local", "none");
    syn_method(y, "slowmo", "none");
    syn_method(y, "diloco", "none");
    syn_case(y, "per-step", "grad", 1, 1, "none");
    syn_case(y, "per-step fp16", "grad", 1, 1, "fp16");
    for (int64_t h = 2; h <= 128; h *= 2) {
        snprintf(label, sizeof label, "accumulate %d", (int)h);
        syn_case(y, label, "grad", 1, h, "none");
    }
    syn_case(y, "one-shot", "oneshot", SYN_STEPS, 1, "none");
    syn_case(y, "no averaging", "none", 0, 1, "none");
}

/* To be freed. */
static inline synthetic *syn_make(tac_context *ctx, int64_t seeds)
{
    synthetic *y = calloc(1, sizeof *y);
    if (!y) abort();
    sweep *s = &y->s;
    *s = (sweep){.o = &y->o,
                 .ctx = ctx,
                 .cases = y->cases,
                 .rows = y->rows,
                 .trials = y->trials,
                 .compute_s = 0.0023,
                 .layers = 2,
                 .layer_params = y->layer_params,
                 .world = 8,
                 .test_count = 10000,
                 .val_count = 5000,
                 .oversubscribed = 1};
    y->layer_params[0] = 392500;
    y->layer_params[1] = 5010;
    s->params = 397510;
    y->o = (sweep_options){.sync = "local,slowmo,diloco",
                           .sync_every = "1,2,4,8,16,32,64,128",
                           .compress = "none",
                           .baseline_compress = "none,fp16",
                           .lrs = "auto",
                           .seeds = seeds,
                           .model = "mlp",
                           .data = "fashion-mnist",
                           .optimizer = "sgd",
                           .shards = "iid",
                           .precision = "fp32",
                           .batch = 32,
                           .epochs = 8,
                           .ranks = 8,
                           .threads = 1,
                           .out = "sweep"};
    syn_cases(y);
    for (size_t i = 0; i < s->n_cases; i++) {
        for (int64_t seed = 1; seed <= seeds; seed++) syn_row(y, i, seed);
        syn_search(y, i);
    }
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        s->networks[s->n_networks++] = e;
    return y;
}

#endif
