/* The end of a run: totals over all ranks, and one trace of all ranks. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tacit/clock.h"
#include "tacit/trace.h"

static uint64_t peak_rss_bytes(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    return (uint64_t)u.ru_maxrss * 1024;
}

/* CPU time of this rank: its process, or its share of one that ranks share. */
static double cpu_seconds(const tac__run *run)
{
    const double s = tac_clock_process_cpu_s();

    return run->rank->shared_data ? s / run->rank->world : s;
}

static tac_status reduce_totals(tac__run *run)
{
    tac_summary *s = &run->summary;
    tac_comm *comm = run->rank->comm;
    tac_comm_stats stats;
    int64_t rss = (int64_t)peak_rss_bytes();
    double v[4];
    tac_req *req = NULL;

    tac_comm_stats_get(comm, &stats);
    v[0] = (double)stats.total.bytes_logical;
    v[1] = (double)stats.total.bytes_wire;
    v[2] = (double)stats.total.bytes_between_hosts;
    v[3] = cpu_seconds(run);
    TAC_TRY(tac_allreduce(comm, v, v, 4, TAC_F64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    TAC_TRY(tac_allreduce(comm, &rss, &rss, 1, TAC_I64, TAC_MAX, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    s->bytes_logical = (uint64_t)v[0];
    s->bytes_wire = (uint64_t)v[1];
    s->bytes_between_hosts = (uint64_t)v[2];
    s->cpu_s = v[3];
    s->peak_rss_bytes = (uint64_t)rss;
    return TAC_OK;
}

static void fill_names(tac__run *run)
{
    tac_summary *s = &run->summary;
    const tac_train_config *c = run->config;

    s->model = c->model;
    s->data = c->data;
    s->transport = tac_comm_transport_name(run->rank->comm);
    s->device = tac_device_name(run->replica->device);
    s->precision = "fp32";
    s->sync = c->sync;
    s->compress = "none";
    s->optimizer = c->optimizer;
    s->world = run->rank->world;
    s->hosts = tac_comm_hosts(run->rank->comm);
    s->threads = tac_context_threads(run->rank->ctx);
    s->oversubscribed = run->rank->local_ranks * s->threads > run->rank->cpus;
}

static void fill_times(tac__run *run)
{
    tac_summary *s = &run->summary;
    const tac_replica_times *t = &run->replica->times;

    tac_replica_update_times(run->replica);
    s->train_s = run->train_s;
    s->samples_per_s =
        run->train_s > 0 ? (double)run->samples / run->train_s : 0;
    s->forward_s = t->forward_s;
    s->backward_s = t->backward_s;
    s->update_s = t->update_s;
    s->compute_s = t->forward_s + t->backward_s + t->update_s;
    s->comm_s = t->comm_s;
    s->comm_exposed_s = t->comm_exposed_s;
    s->wait_s = t->wait_s;
}

tac_status tac__run_summarize(tac__run *run)
{
    tac_summary *s = &run->summary;

    fill_names(run);
    fill_times(run);
    s->steps = (int64_t)run->step;
    s->attempts = (int64_t)run->replica->attempts;
    s->epochs = (double)run->step / (double)run->epoch_steps;
    s->samples = run->samples;
    s->global_batch = run->config->global_batch;
    s->parameters = (int64_t)tac_params_elements(run->replica->params);
    s->sync_every = run->replica->reducer ? 1 : 0;
    s->syncs = run->replica->reducer ? s->steps : 0;
    s->loss_scale = 1;
    s->interrupted = run->stopped;
    s->train_loss = run->epoch_sum.loss_sum / run->epoch_sum.count;
    s->eval_loss = run->last_eval.loss_sum / run->last_eval.count;
    s->eval_accuracy = run->last_eval.correct / run->last_eval.count;
    TAC_TRY(tac_replica_hash(run->replica, &s->params_hash));
    return reduce_totals(run);
}

/* ---- trace ----------------------------------------------------------------
 */

static tac_status gather_sizes(tac_comm *comm, int64_t mine, int64_t *all)
{
    tac_req *req = NULL;

    TAC_TRY(tac_allgather(comm, &mine, all, 1, TAC_I64, NULL, &req));
    return tac_wait(req, 0);
}

/* Rank 0 writes the events of all ranks, of which `block` bytes each are in
 * `all`. */
static tac_status write_merged(tac__run *run, const char *all, int64_t block)
{
    FILE *f = fopen(run->config->trace, "w");
    int written = 0;

    if (!f)
        return tac_fail(run->rank->ctx, TAC_ERR_IO,
                        "cannot write the trace %s: %m; check --trace",
                        run->config->trace);
    fputs("{\"traceEvents\":[\n", f);
    for (int r = 0; r < run->rank->world; r++) {
        const char *text = all + (size_t)r * (size_t)block;

        if (!text[0]) continue;
        fprintf(f, "%s%s", written++ ? ",\n" : "", text);
    }
    fputs("\n]}\n", f);
    if (fclose(f) != 0)
        return tac_fail(run->rank->ctx, TAC_ERR_IO,
                        "cannot write the trace %s: %m; check the free space",
                        run->config->trace);
    return TAC_OK;
}

/* Every rank's text, padded with zeros to the longest, on every rank: simple,
 * and a trace is no part of a measured run. */
static tac_status gather_texts(tac__run *run, const char *mine, int64_t block)
{
    const size_t n = (size_t)block, world = (size_t)run->rank->world;
    char *padded = calloc(n, 1), *all = calloc(n * world, 1);
    tac_req *req = NULL;
    tac_status s = TAC_ERR_NOMEM;

    if (padded && all) {
        memcpy(padded, mine, strlen(mine));
        s = tac_allgather(run->rank->comm, padded, all, n, TAC_U8, NULL, &req);
        if (s >= 0) s = tac_wait(req, 0);
        if (s >= 0 && run->rank->rank == 0) s = write_merged(run, all, block);
    }
    free(padded);
    free(all);
    return s;
}

tac_status tac__run_write_trace(tac__run *run)
{
    int64_t *sizes, block = 1;
    char *mine = NULL;
    tac_status s;

    if (!run->config->trace) return TAC_OK;
    sizes = calloc((size_t)run->rank->world, sizeof *sizes);
    s = sizes ? tac_trace_events_json(run->rank->ctx, &mine) : TAC_ERR_NOMEM;
    if (s >= 0)
        s = gather_sizes(run->rank->comm, (int64_t)strlen(mine) + 1, sizes);
    for (int r = 0; s >= 0 && r < run->rank->world; r++)
        if (sizes[r] > block) block = sizes[r];
    if (s >= 0) s = gather_texts(run, mine, block);
    free(sizes);
    free(mine);
    return s;
}
