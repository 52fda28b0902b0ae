/* The body of one rank: build, train, test, tell. Set-up goes in stages; after
 * each, all ranks agree on how it went. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "attempt_times.h"
#include "compare.h"
#include "local.h"
#include "save.h"
#include "tacit/clock.h"

static tac_status open_sampler(tac__run *run, tac_dataset *set,
                               const tac_shards *shards, int shuffle,
                               tac__part *part)
{
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;

    sc.count = tac_dataset_get_info(set).count;
    sc.replicas = (size_t)run->rank->world;
    sc.rank = (size_t)run->rank->rank;
    sc.shuffle = shuffle;
    sc.seed = run->config->seed;
    sc.shards = shards;
    return tac_sampler_create(run->rank->ctx, &sc, &part->sampler);
}

/* Only what is trained on is dealt unevenly. */
static tac_status open_samplers(tac__run *run)
{
    tac_shards *shards = NULL;
    tac_status s;

    TAC_TRY(tac_dataset_shards(run->rank->ctx, run->data.train,
                               run->config->shards, (size_t)run->rank->world,
                               run->config->seed, &shards));
    s = open_sampler(run, run->data.train, shards, 1, &run->train);
    tac_shards_destroy(shards);
    TAC_TRY(s);
    TAC_TRY(open_sampler(run, run->data.val, NULL, 0, &run->val));
    return open_sampler(run, run->data.test, NULL, 0, &run->test);
}

static tac_status open_loader(tac__run *run, tac_dataset *set, tac__part *part)
{
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;

    lc.batch = (size_t)run->config->batch;
    lc.prefetch = (size_t)run->config->prefetch;
    return tac_loader_create(run->rank->ctx, set, part->sampler, &lc,
                             &part->loader);
}

static tac_status open_loaders(tac__run *run)
{
    TAC_TRY(open_loader(run, run->data.train, &run->train));
    TAC_TRY(open_loader(run, run->data.val, &run->val));
    return open_loader(run, run->data.test, &run->test);
}

static void close_part(tac__part *part)
{
    tac_loader_destroy(part->loader);
    tac_sampler_destroy(part->sampler);
}

/* Steps of an epoch: groups of micro-steps do not cross its end. */
static void plan_steps(tac__run *run)
{
    const uint64_t samples = tac_sampler_length(run->train.sampler);
    const uint64_t b = (uint64_t)run->config->batch;
    const uint64_t batches = samples / b + (samples % b != 0);
    const uint64_t k = (uint64_t)run->config->accumulate;

    run->epoch_steps = (batches + k - 1) / k;
    run->total_steps =
        run->config->steps > 0
            ? (uint64_t)run->config->steps
            : (uint64_t)ceil(run->config->epochs * (double)run->epoch_steps -
                             1e-9);
}

/* Everything that needs no other rank; what is large only if all of it fits. */
static tac_status open_local(tac__run *run)
{
    tac_dataset_info info;

    TAC_TRY(tac__preflight_samples(run));
    TAC_TRY(open_samplers(run));
    plan_steps(run);
    info = tac_dataset_get_info(run->data.train);
    TAC_TRY(tac_replica_open(run->rank->ctx, run->rank->comm, run->config,
                             &info, &run->replica));
    TAC_TRY(tac__memory_check(run));
    TAC_TRY(tac__preflight_batch(run));
    TAC_TRY(open_loaders(run));
    TAC_TRY(tac__attempt_times_open(run));
    return tac__run_dir_open(run);
}

static tac_status agree(tac__run *run, tac_status mine)
{
    return tac__agree_verdict(run->rank->comm, run->rank->capture, mine);
}

static tac_status set_up(tac__run *run)
{
    tac__rank *rank = run->rank;

    TAC_TRY(agree(
        run, tac_train_config_resolve(rank->ctx, &rank->config, rank->world)));
    TAC_TRY(agree(run, tac__compare_options(rank->comm, rank->options)));
    TAC_TRY(tac__resume_find(run));
    TAC_TRY(agree(run, open_local(run)));
    TAC_TRY(agree(run, tac__save_open(run)));
    TAC_TRY(agree(run, tac_replica_connect(run->replica, run->total_steps)));
    TAC_TRY(agree(run, tac__resume_load(run)));
    return agree(run,
                 tac__local_start(run->replica, run->resumed_from != NULL));
}

static tac_status test(tac__run *run)
{
    tac_metrics m = TAC_METRICS_INIT;

    run->summary.test_loss = run->summary.test_accuracy = NAN;
    if (run->stopped || run->config->skip_compute) return TAC_OK;
    TAC_TRY(tac__run_evaluate(run, &run->test, &m));
    run->summary.test_loss = m.loss_sum / m.count;
    run->summary.test_accuracy = m.correct / m.count;
    return TAC_OK;
}

/* Verdicts to which all ranks come together. Any other failure between two
 * agreements is this rank's own, and the others must not wait for it. */
static int is_shared(tac_status s)
{
    return s >= 0 || s == TAC_ERR_DIVERGED || s == TAC_ERR_INCOMPLETE ||
           s == TAC_ERR_MISMATCH || s == TAC_ERR_INTERRUPTED;
}

static tac_status leave(tac__run *run, tac_status s)
{
    tac_comm *comm = run->rank->comm;
    char why[256];

    if (is_shared(s) || run->agreed) run->rank->capture->agreed = 1;
    if (run->rank->capture->agreed || tac_comm_error(comm, NULL, 0) < 0)
        return s;
    tac_context_error(run->rank->ctx, why, sizeof why);
    tac_comm_abort(comm, *why ? why : tac_status_text(s));
    return s;
}

/* The last average, outside of a step. Evaluated once more: an outer optimizer
 * makes it another model than the mean that was as good as wanted. */
static tac_status finish_early(tac__run *run)
{
    const tac__local *l = run->replica->local;
    const int changes = l && !l->clean;

    TAC_TRY(tac__local_finish(run->replica));
    return run->reached && changes ? tac__run_validate(run) : TAC_OK;
}

/* The last average. A run that was stopped and will go on has none, or it would
 * not go on as if nothing had happened. */
static tac_status end_training(tac__run *run)
{
    if (run->stopped && run->saving) return TAC_OK;
    TAC_TRY(finish_early(run));
    TAC_TRY(tac__best_load(run));
    if (!strcmp(run->config->sync, "none")) return TAC_OK;
    TAC_TRY(tac_replica_verify_equal(run->replica));
    run->verified = 1;
    return TAC_OK;
}

/* From here to the end of the loop nobody agrees on how it goes. */
static tac_status run_all(tac__run *run)
{
    TAC_TRY(tac__run_epochs(run));
    TAC_TRY(end_training(run));
    TAC_TRY(test(run));
    run->summary.wall_s = tac_clock_s() - run->begin_s;
    return tac__run_summarize(run);
}

static tac_status train_run(tac__run *run)
{
    TAC_TRY(set_up(run));
    run->rank->capture->armed = 0;
    tac__report_banner(run);
    tac__report_plan(run);
    if (run->config->dry_run) return TAC_OK;
    /* Until here a signal ends the program at once. */
    if (run->rank->rank == run->rank->place.first_of_process)
        run->rank->catch_signals();
    run->begin_s = tac_clock_s() - run->before_s;
    TAC_TRY(leave(run, run_all(run)));
    tac__report_result(run);
    run->rank->capture->armed = 1;
    TAC_TRY(agree(run, tac__run_write_trace(run)));
    TAC_TRY(agree(run, tac__attempt_times_write(run)));
    TAC_TRY(agree(run, tac__run_dir_finish(run)));
    tac__report_files(run);
    return run->stopped ? TAC_ERR_INTERRUPTED : TAC_OK;
}

static void close_run(tac__run *run)
{
    tac__progress_clear(&run->progress);
    tac__run_dir_close(run);
    tac__attempt_times_close(run);
    tac_replica_close(run->replica);
    close_part(&run->train);
    close_part(&run->val);
    close_part(&run->test);
    tac_data_close(&run->data);
    free(run->save_root);
    free(run->resumed_from);
}

/* ---- the program ----------------------------------------------------------
 */

void tac__train_program_init(tac__train_program *p, const tac_options *options,
                             const tac_train_config *config)
{
    memset(p, 0, sizeof *p);
    p->options = options;
    p->config = config;
    pthread_mutex_init(&p->lock, NULL);
}

void tac__train_program_close(tac__train_program *p)
{
    if (p->opened) tac_data_close(&p->data);
    pthread_mutex_destroy(&p->lock);
}

/* A file that can't be read before training is the user's to mend, one that
 * can't be written after it has begun is a failure of the run. Without a
 * checkpoint a run that was stopped can't go on. */
static int exit_code(void *program, tac_status s)
{
    tac__train_program *p = program;
    const int saves = strcmp(p->config->save_every, "0") != 0;

    if (s == TAC_ERR_INTERRUPTED && !saves) return 1;
    if (s == TAC_ERR_IO && atomic_load(&p->begun)) return 1;
    return tac_launch_exit_code(s);
}

tac_launch_config tac__train_launch(const tac_train_config *c)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;

    lc.program = "ddp_train";
    lc.exit_code = exit_code;
    lc.ranks = (int)c->ranks;
    lc.threads = (int)c->threads;
    lc.quiet = c->quiet;
    lc.allow_singleton = c->allow_singleton;
    if (c->trace) lc.trace_events = (size_t)1 << 18;
    lc.comm.transport = c->transport;
    lc.comm.emulate = c->emulate;
    lc.comm.timeout_ms = (int)(c->timeout_s * 1000);
    lc.comm.stall_warn_ms = (int)(c->stall_warn_s * 1000);
    lc.comm.deterministic = c->deterministic;
    lc.comm.progress = strcmp(c->progress, "thread") ? TAC_PROGRESS_CALLER
                                                     : TAC_PROGRESS_THREAD;
    return lc;
}

/* All ranks of a process read the same images, so they are loaded once. A rank
 * whose predecessor has failed tries again, to have its own reason. */
static tac_status share_data(tac__train_program *p, tac_context *ctx,
                             tac_data *out)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    tac_status s = TAC_OK;

    dc.dir = p->config->data_dir;
    pthread_mutex_lock(&p->lock);
    if (!p->opened) s = tac_data_open(ctx, p->config->data, &dc, &p->data);
    if (s >= 0) {
        p->opened = 1;
        *out = p->data; /* there until all ranks are done */
    }
    pthread_mutex_unlock(&p->lock);
    return s;
}

tac_status tac__train_rank(tac__rank *rank, const tac_data *data, int *begun)
{
    tac__run run = {.rank = rank, .config = &rank->config};
    tac_status s;

    run.data = (tac_data){tac_dataset_retain(data->train),
                          tac_dataset_retain(data->val),
                          tac_dataset_retain(data->test)};
    s = train_run(&run);
    *begun = run.begin_s > 0;
    close_run(&run);
    return s;
}

tac_status tac__train(tac_context *ctx, tac_comm *comm, void *program)
{
    tac__train_program *p = program;
    tac_data data;
    int begun = 0;
    tac__rank rank = {.ctx = ctx,
                      .comm = comm,
                      .capture = tac__capture_of(ctx),
                      .options = p->options,
                      .config = *p->config,
                      .stop = p->stop,
                      .catch_signals = p->catch_signals,
                      .rank = tac_comm_rank(comm),
                      .world = tac_comm_size(comm)};

    TAC_TRY(tac__place_find(comm, &rank.place));
    TAC_TRY(tac__agree_verdict(comm, rank.capture, share_data(p, ctx, &data)));
    const tac_status s = tac__train_rank(&rank, &data, &begun);

    if (begun) atomic_store(&p->begun, 1);
    return s;
}
