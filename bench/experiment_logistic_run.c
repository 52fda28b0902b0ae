/* experiment_logistic_run.c: local SGD on a logistic regression, by workers
 * that are threads, through the library that trains everything else. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment_logistic_worker.h"
#include "tacit/rng.h"

enum { WORKERS_MAX = 64 };

/* ---- one step ------------------------------------------------------------
 */

static void add_drawn(logistic_worker *w, int64_t t)
{
    const logistic_run *r = w->r;
    const tac_rng_key key = {r->seed, TAC_STREAM_USER + (uint32_t)w->rank,
                             (uint64_t)t};
    for (int64_t k = 0; k < r->batch; k++) {
        const size_t i =
            w->from + tac_rng_below(&key, (uint64_t)k, w->to - w->from);
        logistic_gradient_sum(r->p, w->wide, i, i + 1, w->gradient);
    }
}

static double rate_of(const logistic_run *r, int64_t t)
{
    return fmin(r->rate, r->decay / (double)t);
}

static tac_status step(logistic_worker *w, int64_t t)
{
    const logistic_run *r = w->r;
    const size_t d = r->p->d;
    const double rate = rate_of(r, t);
    const double n = r->batch ? (double)r->batch : (double)(w->to - w->from);
    for (size_t j = 0; j < d; j++)
        w->wide[j] = logistic_origin(r, j) + (double)w->x[j];
    memset(w->gradient, 0, d * sizeof *w->gradient);
    if (r->batch)
        add_drawn(w, t);
    else
        logistic_gradient_sum(r->p, w->wide, w->from, w->to, w->gradient);
    for (size_t j = 0; j < d; j++) {
        const double g = w->gradient[j] / n + r->p->lambda * w->wide[j];
        w->x[j] = (float)((double)w->x[j] - rate * g);
    }
    TAC_TRY(tac_localsgd_step(
        w->l,
        &(tac_local_step){
            .lr = rate, .loss = NAN, .samples = fmax(1, (double)r->batch)},
        NULL));
    const double weight = (double)t * (double)t;
    w->weight += weight;
    for (size_t j = 0; j < d; j++) w->sum[j] += weight * (double)w->x[j];
    return TAC_OK;
}

/* ---- a worker ------------------------------------------------------------
 */

static tac_status prepare(logistic_worker *w)
{
    const logistic_run *r = w->r;
    const size_t d = r->p->d, n = r->p->n;
    const size_t rank = (size_t)w->rank, size = (size_t)r->workers;
    w->from = r->sorted ? n * rank / size : 0;
    w->to = r->sorted ? n * (rank + 1) / size : n;
    w->wide = calloc(5 * d, sizeof *w->wide);
    w->x = calloc(d, sizeof *w->x);
    if (!w->wide || !w->x)
        return tac_fail(r->p->ctx, TAC_ERR_NOMEM, "no memory for a worker");
    w->gradient = w->wide + d;
    w->sum = w->gradient + d;
    w->look = w->sum + d;
    w->old = w->look + d;
    logistic_plan_look(w, 0);
    return TAC_OK;
}

static tac_status start(logistic_worker *w)
{
    tac_localsgd_config c;
    TAC_TRY(tac_localsgd_preset(tac_comm_context(w->comm), "local", w->r->every,
                                &c));
    c.total = w->r->steps;
    TAC_TRY(tac_localsgd_create(w->comm, &c, &w->l));
    TAC_TRY(tac_localsgd_add(w->l, &(tac_localsgd_tensor){.name = "x",
                                                          .count = w->r->p->d,
                                                          .data = w->x,
                                                          .layer = -1}));
    return tac_localsgd_start(w->l, TAC_START_VERIFY);
}

static tac_status all_steps(logistic_worker *w)
{
    int stop = 0;
    int64_t t = 0;
    tac_localsgd_stats stats;
    while (!stop && t < w->r->steps) {
        TAC_TRY(step(w, ++t));
        if (t == w->next_look || t == w->r->steps)
            TAC_TRY(logistic_look_now(w, t, &stop));
        if (w->r->stop && *w->r->stop)
            return tac_fail_quiet(w->r->p->ctx, TAC_ERR_INTERRUPTED,
                                  "interrupted");
    }
    tac_localsgd_stats_get(w->l, &stats);
    if (w->rank == 0) {
        w->out->steps = t;
        w->out->syncs = stats.syncs;
        w->out->bytes = (double)stats.bytes_wire;
    }
    return TAC_OK;
}

static tac_status work_on(logistic_worker *w, tac_context *ctx)
{
    TAC_TRY(tac_comm_create_threads(ctx, w->group, w->rank, NULL, &w->comm));
    tac_status s = prepare(w);
    if (s >= 0) s = start(w);
    if (s >= 0) s = all_steps(w);
    if (s < 0) tac_comm_abort(w->comm, "a worker failed");
    tac_localsgd_destroy(w->l);
    tac_comm_destroy(w->comm);
    return s;
}

static void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static void *work(void *arg)
{
    logistic_worker *w = arg;
    tac_context_config c = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    c.rank = w->rank;
    c.world = c.local_ranks = w->r->workers;
    c.threads = 1;
    c.log = drop_line; /* the caller tells of the first failure */
    w->status = tac_context_create(&c, &ctx);
    if (w->status >= 0) w->status = work_on(w, ctx);
    if (w->status < 0 && w->status != TAC_ERR_INTERRUPTED) {
        char text[512];
        tac_context_error(ctx, text, sizeof text);
        tac_fail_quiet(w->r->p->ctx, w->status, "worker %d: %s", w->rank, text);
    }
    tac_context_destroy(ctx);
    free(w->wide);
    free(w->x);
    return NULL;
}

/* ---- all of them ---------------------------------------------------------
 */

static tac_status gather_status(const logistic_worker *workers, int n)
{
    tac_status s = TAC_OK;
    for (int k = 0; k < n; k++)
        if (workers[k].status < 0 && (s >= 0 || s == TAC_ERR_ABORTED))
            s = workers[k].status;
    return s;
}

tac_status logistic_train(const logistic_run *r, logistic_outcome *out)
{
    logistic_worker workers[WORKERS_MAX];
    tac_thread_group *group = NULL;
    *out = (logistic_outcome){.reached = INFINITY};
    if (r->workers < 1 || r->workers > WORKERS_MAX)
        return tac_fail(r->p->ctx, TAC_ERR_ARG, "%d workers; 1 to %d",
                        r->workers, WORKERS_MAX);
    out->mean = calloc(r->p->d, sizeof *out->mean);
    if (!out->mean) return tac_fail(r->p->ctx, TAC_ERR_NOMEM, "no memory");
    TAC_TRY(tac_thread_group_create(r->workers, &group));
    int made = 0;
    for (; made < r->workers; made++) {
        workers[made] =
            (logistic_worker){.r = r, .out = out, .group = group, .rank = made};
        if (pthread_create(&workers[made].thread, NULL, work, &workers[made]))
            break;
    }
    for (int k = 0; k < made; k++) pthread_join(workers[k].thread, NULL);
    tac_thread_group_destroy(group);
    const tac_status s = gather_status(workers, made);
    if (made < r->workers)
        return tac_fail(r->p->ctx, TAC_ERR_NOMEM, "no thread for worker %d",
                        made);
    return s;
}

void logistic_outcome_free(logistic_outcome *o)
{
    free(o->looks);
    free(o->mean);
    *o = (logistic_outcome){0};
}
