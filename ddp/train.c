/* A run on one rank: build, train, test, tell. Building goes in stages; after
 * each, all ranks agree on how it went. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "attempt_times.h"
#include "compare.h"
#include "local.h"
#include "report_page.h"
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
static tac_status open_train_sampler(tac__run *run)
{
    tac_shards *shards = NULL;
    tac_status s;

    TAC_TRY(tac_dataset_shards(run->rank->ctx, run->data.train,
                               run->config->shards, (size_t)run->rank->world,
                               run->config->seed, &shards));
    s = open_sampler(run, run->data.train, shards, 1, &run->train);
    tac_shards_destroy(shards);
    return s;
}

static tac_status open_loader(tac__run *run, tac_dataset *set, int64_t batch,
                              tac__part *part)
{
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;

    lc.batch = (size_t)batch;
    lc.prefetch = (size_t)run->config->prefetch;
    lc.drop_partial = part == &run->train && run->config->drop_last;
    return tac_loader_create(run->rank->ctx, set, part->sampler, &lc,
                             &part->loader);
}

static int64_t eval_batch(const tac_train_config *c)
{
    return c->eval_batch > 0 ? c->eval_batch : c->batch;
}

tac_status tac__part_open(tac__run *run, tac_dataset *set, tac__part *part)
{
    if (!set) return TAC_OK;
    TAC_TRY(open_sampler(run, set, NULL, 0, part));
    return open_loader(run, set, eval_batch(run->config), part);
}

static tac_status open_parts(tac__run *run)
{
    TAC_TRY(open_loader(run, run->data.train, run->config->batch, &run->train));
    TAC_TRY(tac__part_open(run, run->data.val, &run->val));
    return tac__part_open(run, run->data.test, &run->test);
}

void tac__part_close(tac__part *part)
{
    tac_loader_destroy(part->loader);
    tac_sampler_destroy(part->sampler);
    *part = (tac__part){NULL, NULL};
}

/* Steps of an epoch: groups of micro-steps do not cross its end. */
static void plan_steps(tac__run *run)
{
    const uint64_t samples = tac_sampler_length(run->train.sampler);
    const uint64_t b = (uint64_t)run->config->batch;
    const uint64_t batches =
        samples / b + (samples % b != 0 && !run->config->drop_last);
    const uint64_t k = (uint64_t)run->config->accumulate;

    run->epoch_steps = (batches + k - 1) / k;
    run->total_steps =
        run->config->steps > 0
            ? (uint64_t)run->config->steps
            : (uint64_t)ceil(run->config->epochs * (double)run->epoch_steps -
                             1e-9);
}

static tac_status check_steps(const tac__run *run)
{
    if (run->epoch_steps > 0) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "an epoch has no batch: each of %d ranks gets %zu samples, "
                    "a batch is of %lld, and --drop-last drops what is less; "
                    "lower --batch, or leave out --drop-last",
                    run->rank->world, tac_sampler_length(run->train.sampler),
                    (long long)run->config->batch);
}

/* Everything that needs no other rank; what is large only if all of it fits. */
static tac_status open_local(tac__run *run)
{
    tac_dataset_info info;

    TAC_TRY(tac__preflight_samples(run));
    TAC_TRY(open_train_sampler(run));
    plan_steps(run);
    TAC_TRY(check_steps(run));
    info = tac_dataset_get_info(run->data.train);
    TAC_TRY(tac_replica_open(run->rank->ctx, run->rank->comm, run->config,
                             &info, run->model, &run->replica));
    TAC_TRY(tac__memory_check(run));
    TAC_TRY(tac__preflight_batch(run));
    TAC_TRY(open_parts(run));
    if (!run->trains) return TAC_OK;
    TAC_TRY(tac__attempt_times_open(run));
    return tac__run_dir_open(run);
}

tac_status tac__run_agree(tac__run *run, tac_status mine)
{
    return tac__agree_verdict(run->rank->comm, run->rank->capture, mine);
}

tac_status tac__run_open(tac__run *run, int trains)
{
    run->trains = trains;
    run->best_metric = NAN;
    if (trains) TAC_TRY(tac__resume_find(run));
    TAC_TRY(tac__run_agree(run, open_local(run)));
    if (trains) TAC_TRY(tac__run_agree(run, tac__save_open(run)));
    TAC_TRY(tac__run_agree(
        run, tac_replica_connect(run->replica, run->total_steps)));
    if (trains) TAC_TRY(tac__run_agree(run, tac__resume_load(run)));
    if (trains) TAC_TRY(tac__run_agree(run, tac__best_resume(run)));
    return tac__run_agree(
        run, tac__local_start(run->replica, run->resumed_from != NULL));
}

static tac_status test(tac__run *run)
{
    tac_metrics m = TAC_METRICS_INIT;

    run->summary.test_loss = run->summary.test_accuracy = NAN;
    if (run->stopped || run->config->skip_compute || !run->test.loader)
        return TAC_OK;
    TAC_TRY(tac__run_evaluate(run, &run->test, &m));
    run->summary.test_loss = m.loss_sum / m.count;
    run->summary.test_accuracy = m.correct / m.count;
    run->summary.test_samples = (int64_t)m.count;
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
    return (run->reached || run->halted) && changes && run->val.loader
               ? tac__run_validate(run)
               : TAC_OK;
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
    tac__callbacks_tell(run, TAC__TRAIN_END);
    TAC_TRY(test(run));
    run->summary.wall_s = tac_clock_s() - run->begin_s;
    return tac__run_summarize(run);
}

/* The page is made of files that are there already: a run whose page can't be
 * written has not failed. */
static void write_report(tac__run *run)
{
    if (run->rank->rank != 0 || !run->config->run_dir) return;
    run->rank->capture->armed = 0;
    if (tac__report_page_write(run->rank->ctx, run->config->run_dir) >= 0)
        run->has_report = 1;
}

/* A run that fails on its way has a page, too: why, and how far it came. */
static tac_status fail(tac__run *run, tac_status s)
{
    const int armed = run->rank->capture->armed;

    tac__metrics_failed(run, s);
    write_report(run);
    run->rank->capture->armed = armed;
    return s;
}

/* What is written in the end, by rank 0 from what all have told it. */
static tac_status write_files(tac__run *run)
{
    run->rank->capture->armed = 1;
    TAC_TRY(tac__run_agree(run, tac__run_write_trace(run)));
    TAC_TRY(tac__run_agree(run, tac__attempt_times_write(run)));
    TAC_TRY(tac__run_agree(run, tac__run_dir_finish(run)));
    write_report(run);
    tac__report_files(run);
    return TAC_OK;
}

tac_status tac__run_train(tac__run *run)
{
    run->rank->capture->armed = 0;
    tac__report_banner(run);
    tac__report_plan(run);
    if (run->config->dry_run) return TAC_OK;
    run->begin_s = tac_clock_s() - run->before_s;
    tac__callbacks_tell(run, TAC__TRAIN_BEGIN);
    const tac_status s = leave(run, run_all(run));
    if (s < 0) return fail(run, s);
    tac__report_result(run);
    TAC_TRY(write_files(run));
    return run->stopped ? TAC_ERR_INTERRUPTED : TAC_OK;
}

void tac__run_close(tac__run *run)
{
    tac__progress_clear(&run->progress);
    tac__run_dir_close(run);
    tac__attempt_times_close(run);
    tac_replica_close(run->replica);
    tac__part_close(&run->train);
    tac__part_close(&run->val);
    tac__part_close(&run->test);
    free(run->save_root);
    free(run->resumed_from);
    run->replica = NULL;
    run->save_root = run->resumed_from = NULL;
}
