/* ddp_trial.h: training on thread ranks through the replica, as ddp_train does
 * it: epochs of groups of micro-steps, the last of which may be smaller. A
 * trial is a configuration and what came of it. */
#ifndef TAC_TESTS_DDP_TRIAL_H
#define TAC_TESTS_DDP_TRIAL_H

#include <pthread.h>
#include <stdlib.h>

#include "local.h"
#include "tac_check.h"
#include "tacit/data.h"
#include "tacit/replica.h"

/* Sanitizers look at the memory, not at the numbers: fewer steps will do. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { TRIAL_RANKS = 8, TRIAL_ATTEMPTS = 128 };

typedef struct trial {
    tac_train_config config;
    int ranks, attempts;
    size_t samples; /* of made-up training data */
    int alike;      /* every rank has all of it, in the same order */
    /* Called on every rank after each attempt; NULL: nothing. */
    void (*each)(struct trial *t, tac_replica *r, int rank, int attempt);
    /* What came of it. Losses and rates are rank 0's view of all ranks. */
    float *theta; /* rank 0's parameters in registration order; to be freed */
    size_t n;
    double loss[TRIAL_ATTEMPTS], lr[TRIAL_ATTEMPTS], norm[TRIAL_ATTEMPTS];
    double count[TRIAL_ATTEMPTS], nonfinite[TRIAL_ATTEMPTS];
    uint64_t position, epoch, steps_an_epoch;
    uint64_t hash[TRIAL_RANKS], applied[TRIAL_RANKS];
    tac_scaler_report report[TRIAL_RANKS];
    tac_status polled[TRIAL_RANKS];
    int origin[TRIAL_RANKS];
    char why[TRIAL_RANKS][1024];
    size_t high_water;
    double accuracy;
} trial;

typedef struct trial_rank {
    trial *t;
    tac_thread_group *group;
    tac_dataset *train;
    int rank;
} trial_rank;

/* A small mlp with sgd, a constant rate and a step of 64 samples. */
static inline trial trial_of(const char *precision)
{
    trial t;

    memset(&t, 0, sizeof t);
    CHECK_OK(tac_train_config_defaults(&t.config));
    t.config.model = SANITIZED ? "mlp:9,7" : "mlp:61,33";
    t.config.precision = precision;
    t.config.optimizer = "sgd";
    t.config.schedule = "constant";
    t.config.batch = 64;
    t.config.deterministic = 1;
    t.ranks = 1;
    t.attempts = SANITIZED ? 6 : 20;
    t.samples = (size_t)64 * 24;
    return t;
}

static inline void trial_log(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line; /* failures are looked at, not shown */
}

static inline tac_micro trial_place(const trial_rank *w, tac_sampler *sampler,
                                    tac_loader *loader, const tac_batch *b)
{
    const uint64_t k = (uint64_t)w->t->config.accumulate;
    const uint64_t group = b->step - b->step % k;
    const size_t n = (size_t)w->t->config.batch;
    const size_t replicas = tac_sampler_replicas(sampler);
    const size_t size = (size_t)w->t->config.worker_size;
    const int local = tac_train_config_is_local(&w->t->config);
    const size_t first =
        w->t->alike || !local ? 0 : (size_t)w->rank / size * size;
    const size_t end = w->t->alike || !local ? replicas : first + size;
    const tac_micro m = {.first = b->step == group,
                         .last = (b->step + 1) % k == 0 ||
                                 b->step + 1 == tac_loader_batches(loader),
                         .samples = (double)tac_sampler_step_count_of(
                             sampler, group * n * replicas, n * k, first, end),
                         .first_sample = b->count ? b->position[0] : 0};

    return m;
}

static inline void trial_note(const trial_rank *w, tac_replica *r, int attempt)
{
    trial *t = w->t;
    tac_metrics m = TAC_METRICS_INIT;

    CHECK_OK(tac_replica_take_metrics(r, &m));
    CHECK_OK(tac_metrics_reduce(r->comm, &m));
    if (w->rank == 0) {
        t->loss[attempt] = m.loss_sum / m.count;
        t->count[attempt] = m.count;
        t->nonfinite[attempt] = m.nonfinite;
        t->lr[attempt] = tac_replica_lr(r);
        t->norm[attempt] =
            t->config.clip_norm > 0 ? tac_replica_grad_norm(r) : NAN;
    }
    if (t->each) t->each(t, r, w->rank, attempt);
}

/* A worker without samples, or that is late, drops the step. */
static inline tac_status trial_attempt(tac_replica *r, const tac_batch *b,
                                       const tac_micro *m)
{
    const int computed = !r->local || (m->samples > 0 && !r->local->dropping);

    if (computed) TAC_TRY(tac_replica_step(r, b, m));
    if (!m->last) return TAC_OK;
    if (!computed) r->attempts++, r->dropped++;
    return tac__local_step(r, computed ? m->samples : 0, computed);
}

static inline void trial_train(const trial_rank *w, tac_replica *r,
                               tac_sampler *sampler, tac_loader *loader)
{
    trial *t = w->t;
    uint64_t epoch = 0;

    CHECK_OK(tac_loader_start_epoch(loader, epoch));
    for (int attempt = 0; attempt < t->attempts;) {
        const tac_batch *b = NULL;

        if (!CHECK_OK(tac_loader_next(loader, &b))) return;
        if (!b) {
            CHECK_OK(tac_loader_start_epoch(loader, ++epoch));
            continue;
        }
        const tac_micro m = trial_place(w, sampler, loader, b);

        if (!CHECK_OK(trial_attempt(r, b, &m))) return;
        if (m.last) trial_note(w, r, attempt++);
    }
    if (w->rank != 0) return;
    t->epoch = epoch;
    t->position = tac_sampler_position(sampler);
}

static inline void trial_keep(trial *t, tac_replica *r)
{
    size_t at = 0;

    t->n = tac_params_elements(r->params);
    t->theta = malloc(t->n * sizeof *t->theta);
    if (!CHECK(t->theta)) return;
    for (size_t i = 0; i < tac_params_count(r->params); i++) {
        const tac_param *p = tac_params_get(r->params, i);

        memcpy(t->theta + at, tac_params_value(r->params, i),
               p->count * sizeof(float));
        at += p->count;
    }
}

static inline void trial_finish(const trial_rank *w, tac_replica *r)
{
    trial *t = w->t;
    tac_step_scalars scalars;

    CHECK_OK(tac_replica_verify_equal(r));
    CHECK_OK(tac_replica_hash(r, &t->hash[w->rank]));
    CHECK_OK(tac_optimizer_read(r->optimizer, &scalars, NULL));
    t->applied[w->rank] = scalars.applied;
    t->polled[w->rank] = tac_replica_poll(r, &t->report[w->rank]);
    t->origin[w->rank] = tac_replica_is_origin(r);
    tac_context_error(r->ctx, t->why[w->rank], sizeof t->why[w->rank]);
    CHECK_EQ_U64(r->attempts, (unsigned long long)t->attempts);
    if (w->rank == 0) {
        t->high_water = tac_tape_high_water(r->tape);
        trial_keep(t, r);
    }
}

static inline void *trial_run_rank(void *arg)
{
    const trial_rank *w = arg;
    const trial *t = w->t;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    tac_train_config c = t->config;
    tac_dataset_info info = tac_dataset_get_info(w->train);
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_replica *r = NULL;
    tac_sampler *sampler = NULL;
    tac_loader *loader = NULL;

    cc.rank = w->rank;
    sc.rank = (size_t)w->rank;
    cc.world = t->ranks;
    cc.threads = t->ranks == 1 && !t->alike ? 2 : 1;
    cc.log = trial_log;
    sc.replicas = (size_t)t->ranks;
    if (t->alike) sc.replicas = 1, sc.rank = 0;
    sc.count = info.count;
    sc.shuffle = 1;
    lc.batch = (size_t)c.batch;
    CHECK_OK(tac_context_create(&cc, &ctx));
    CHECK_OK(tac_comm_create_threads(ctx, w->group, w->rank, NULL, &comm));
    CHECK_OK(tac_train_config_resolve(ctx, &c, t->ranks));
    CHECK_OK(tac_sampler_create(ctx, &sc, &sampler));
    CHECK_OK(tac_loader_create(ctx, w->train, sampler, &lc, &loader));
    if (CHECK_OK(tac_replica_open(ctx, comm, &c, &info, NULL, &r)) &&
        CHECK_OK(tac_replica_connect(r, (uint64_t)t->attempts))) {
        CHECK_OK(tac__local_start(r, 0));
        trial_train(w, r, sampler, loader);
        if (t->attempts > 0) CHECK_OK(tac__local_finish(r));
        trial_finish(w, r);
    }
    tac_loader_destroy(loader);
    tac_sampler_destroy(sampler);
    tac_replica_close(r);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return NULL;
}

/* Runs it; replicas must end with the same bits (not with sync none). */
static inline void trial_run(trial *t)
{
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    tac_dataset *train = NULL;
    tac_thread_group *group = NULL;
    trial_rank w[TRIAL_RANKS];
    pthread_t thread[TRIAL_RANKS];

    sc.count = t->samples;
    CHECK(t->attempts <= TRIAL_ATTEMPTS && t->ranks <= TRIAL_RANKS);
    CHECK_OK(tac_dataset_synth(NULL, &sc, &train));
    CHECK_OK(tac_thread_group_create(t->ranks, &group));
    for (int r = 0; r < t->ranks; r++) {
        w[r] = (trial_rank){t, group, train, r};
        CHECK(pthread_create(&thread[r], NULL, trial_run_rank, &w[r]) == 0);
    }
    for (int r = 0; r < t->ranks; r++) pthread_join(thread[r], NULL);
    for (int r = 1; r < t->ranks; r++) CHECK_EQ_U64(t->hash[r], t->hash[0]);
    tac_thread_group_destroy(group);
    tac_dataset_destroy(train);
}

static inline void trial_free(trial *t)
{
    free(t->theta);
    t->theta = NULL;
}

/* ||a - b|| / ||a|| of the parameters, in double. */
static inline double trial_distance(const trial *a, const trial *b)
{
    double d = 0, s = 0;

    if (!CHECK(a->theta && b->theta) || !CHECK_EQ(a->n, b->n)) return INFINITY;
    for (size_t i = 0; i < a->n; i++) {
        const double x = a->theta[i], y = b->theta[i];

        d += (x - y) * (x - y);
        s += x * x;
    }
    return sqrt(d / s);
}

/* How far training went from the initial parameters, relatively. */
static inline double trial_moved(const trial *t)
{
    trial start = *t;
    double d;

    start.attempts = 0;
    start.each = NULL;
    trial_run(&start);
    d = trial_distance(t, &start);
    trial_free(&start);
    return d;
}

#endif
