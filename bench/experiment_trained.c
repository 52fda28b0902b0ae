/* experiment_trained.c: variants of a run of ddp_train, each with the learning
 * rate that suits it, over several seeds. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"

/* Nothing that counts is measured with it. */
enum { SEARCH_SEED = 1001, WORDS_MAX = 64, TEXT_MAX = 1024 };

int64_t exp_seeds(const exp_bench *b)
{
    if (b->o->seeds) return b->o->seeds;
    return b->o->quick ? 1 : 3;
}

int64_t exp_steps(const exp_bench *b, int64_t full, int64_t quick)
{
    if (b->o->steps) return b->o->steps;
    return b->o->quick ? quick : full;
}

int64_t exp_ranks(const exp_trained *t)
{
    return t->ranks ? t->ranks : t->b->o->ranks;
}

/* ---- one run -------------------------------------------------------------
 */

typedef struct words {
    char text[TEXT_MAX];
    const char *word[WORDS_MAX];
} words;

static int split(words *w)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *p = strtok_r(w->text, " ", &rest); p && n + 1 < WORDS_MAX;
         p = strtok_r(NULL, " ", &rest))
        w->word[n++] = p;
    w->word[n] = NULL;
    return n + 1 < WORDS_MAX;
}

/* Options of ddp_train. A folder's name may have blanks, so it goes last. */
static tac_status make_words(const exp_trained *t, const exp_variant *v,
                             double lr, int64_t seed, words *w)
{
    const exp_options *o = t->b->o;
    const int n = snprintf(
        w->text, sizeof w->text,
        "--model %s --data %s --threads %lld --steps %lld --eval-every 0 "
        "--lr %.6g --seed %lld %s %s",
        o->model, o->data, (long long)o->threads, (long long)t->steps, lr,
        (long long)seed, t->common, v->args);
    if (n >= (int)sizeof w->text || !split(w))
        return tac_fail(t->b->ctx, TAC_ERR_CONFIG,
                        "options of a run are too long: %s", v->label);
    if (!o->data_dir) return TAC_OK;
    size_t k = 0;
    while (w->word[k]) k++;
    if (k + 2 >= WORDS_MAX)
        return tac_fail(t->b->ctx, TAC_ERR_CONFIG, "too many options");
    w->word[k++] = "--data-dir";
    w->word[k++] = o->data_dir;
    w->word[k] = NULL;
    return TAC_OK;
}

/* "E5-H=30-lr0.001-seed2": what can't be in a name is left out. */
static void make_name(const exp_trained *t, const exp_variant *v, double lr,
                      int64_t seed, char *out, size_t bytes)
{
    char *to = out;
    snprintf(out, bytes, "%s%s-%s-lr%.6g-seed%lld",
             t->b->o->quick ? "quick-" : "", t->name, v->label, lr,
             (long long)seed);
    for (const char *p = out; *p; p++)
        if (isalnum((unsigned char)*p) || strchr(".-+=_", *p)) *to++ = *p;
    *to = 0;
}

/* The launcher's command for the number of ranks. */
static tac_status make_launch(const exp_trained *t, int64_t ranks, char **out)
{
    const char *launch = t->b->o->launch;
    if (!strstr(launch, "{}") && ranks != t->b->o->ranks)
        return tac_fail(t->b->ctx, TAC_ERR_CONFIG,
                        "%s needs %lld ranks, not --ranks: give --launch with "
                        "{} for their number",
                        t->name, (long long)ranks);
    *out = runs_launch(launch, ranks);
    return *out ? TAC_OK : tac_fail(t->b->ctx, TAC_ERR_NOMEM, "no memory");
}

/* DIVERGED is no failure here: *diverged says so. */
static tac_status do_run(const exp_trained *t, const exp_variant *v, double lr,
                         int64_t seed, run_result *out, int *diverged)
{
    words w;
    char name[160], *launch = NULL;
    runs r = t->b->runs;
    *out = (run_result){.name = NULL};
    *diverged = 0;
    TAC_TRY(make_words(t, v, lr, seed, &w));
    make_name(t, v, lr, seed, name, sizeof name);
    r.ranks = exp_ranks(t);
    if (t->b->o->launch) {
        TAC_TRY(make_launch(t, r.ranks, &launch));
        r.launch = launch;
    }
    const tac_status s = runs_do(&r, name, w.word, out);
    free(launch);
    *diverged = s == TAC_ERR_DIVERGED;
    return *diverged ? TAC_OK : s;
}

/* ---- search and seeds ----------------------------------------------------
 */

int64_t exp_search_seeds(const exp_trained *t)
{
    return t->search_seeds ? t->search_seeds : 1;
}

static tac_status try_once(const exp_trained *t, const exp_variant *v,
                           double lr, int64_t seed, double *loss)
{
    run_result run;
    int diverged = 0;
    const tac_status s = do_run(t, v, lr, seed, &run, &diverged);
    *loss = diverged ? INFINITY : run_number(&run, "eval_loss");
    if (isnan(*loss)) *loss = INFINITY;
    run_result_free(&run);
    return s;
}

/* Mean over the search's seeds. */
static tac_status try_rate(const exp_trained *t, const exp_variant *v,
                           double lr, double *loss)
{
    double one;
    *loss = 0;
    for (int64_t k = 0; k < exp_search_seeds(t); k++) {
        TAC_TRY(try_once(t, v, lr, SEARCH_SEED + k, &one));
        *loss += one / (double)exp_search_seeds(t);
    }
    return TAC_OK;
}

tac_status exp_search(const exp_trained *t, exp_variant *v)
{
    double best = INFINITY, loss;
    size_t at = 0;
    for (size_t k = 0; k < t->n_lrs; k++) {
        TAC_TRY(try_rate(t, v, t->lrs[k], &loss));
        if (loss < best) best = loss, at = k;
    }
    v->lr = t->lrs[at];
    v->lr_at_edge = t->n_lrs < 2 ? 0 : at == 0 ? -1 : at + 1 == t->n_lrs;
    exp_say(t->b, "%s %s: learning rate %g, validation loss %.4f", t->name,
            v->label, v->lr, best);
    return TAC_OK;
}

static void keep(exp_variant *v, const run_result *run, int diverged,
                 double ranks)
{
    const size_t k = v->n++;
    v->loss[k] = diverged ? INFINITY : run_number(run, "eval_loss");
    v->accuracy[k] = diverged ? NAN : run_number(run, "eval_accuracy");
    v->seconds[k] = run_number(run, "train_s");
    v->bytes = run_number(run, "bytes_sync_wire") / ranks;
    v->syncs = run_number(run, "syncs");
}

tac_status exp_measure(const exp_trained *t, exp_variant *v)
{
    const double ranks = (double)exp_ranks(t);
    v->n = 0;
    for (int64_t seed = 1; seed <= exp_seeds(t->b); seed++) {
        run_result run;
        int diverged = 0;
        const tac_status s = do_run(t, v, v->lr, seed, &run, &diverged);
        if (s >= 0) keep(v, &run, diverged, ranks);
        run_result_free(&run);
        TAC_TRY(s);
    }
    exp_say(t->b, "%s %s: validation loss %.4f, accuracy %.2f %%, %.1f s",
            t->name, v->label, exp_loss(v), 100 * exp_accuracy(v),
            exp_mean(v->seconds, v->n));
    return TAC_OK;
}

tac_status exp_search_and_measure(const exp_trained *t, exp_variant *v,
                                  size_t n)
{
    for (size_t k = 0; k < n; k++) {
        TAC_TRY(exp_search(t, &v[k]));
        TAC_TRY(exp_measure(t, &v[k]));
    }
    return TAC_OK;
}
