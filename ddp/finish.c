/* The end of a run: totals over all ranks. */
#include "run.h"
#include "local.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tacit/clock.h"

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

    return s / run->rank->place.process_ranks;
}

static void add_comm(tac__totals *t, const tac_comm *comm)
{
    tac_comm_stats s;

    if (!comm) return;
    tac_comm_stats_get(comm, &s);
    t->bytes_logical += s.total.bytes_logical;
    t->bytes_wire += s.total.bytes_wire;
    t->bytes_between_hosts += s.total.bytes_between_hosts;
}

/* What training exchanged: its own state keeps the count of localsgd. */
static void add_local(tac__totals *t, const tac__local *l)
{
    tac_localsgd_stats s;
    tac_comm_op_stats c;

    add_comm(t, l->leaders);
    if (!l->lsgd) return;
    tac_localsgd_comm_stats(l->lsgd, &c);
    t->bytes_logical += c.bytes_logical;
    t->bytes_wire += c.bytes_wire;
    t->bytes_between_hosts += c.bytes_between_hosts;
    tac_localsgd_stats_get(l->lsgd, &s);
    t->bytes_sync_logical = s.bytes_logical;
    t->bytes_sync_wire = s.bytes_wire;
}

static void add_reducer(tac__totals *t, const tac_reducer *reducer)
{
    tac_reducer_stats s;

    tac_reducer_stats_get(reducer, &s);
    t->bytes_sync_logical += s.total.bytes_logical;
    t->bytes_sync_wire += s.total.bytes_wire;
}

tac__totals tac__run_totals(const tac__run *run)
{
    const tac_replica *r = run->replica;
    tac__totals t = run->before;

    t.cpu_s += cpu_seconds(run);
    add_comm(&t, run->rank->comm);
    add_comm(&t, r->own_worker);
    if (r->local)
        add_local(&t, r->local);
    else if (r->reducer)
        add_reducer(&t, r->reducer);
    return t;
}

uint64_t tac__run_syncs(const tac__run *run)
{
    const tac_replica *r = run->replica;
    tac_localsgd_stats s;

    if (!r->local) return r->reducer ? r->attempts : 0;
    if (!r->local->lsgd) return 0; /* rank 0 alone tells */
    tac_localsgd_stats_get(r->local->lsgd, &s);
    return (uint64_t)s.syncs;
}

static tac_status reduce_totals(tac__run *run)
{
    tac_summary *s = &run->summary;
    tac_comm *comm = run->rank->comm;
    const tac__totals mine = tac__run_totals(run);
    int64_t most[2] = {(int64_t)peak_rss_bytes(), s->skipped_steps};
    double v[6] = {
        (double)mine.bytes_logical,       (double)mine.bytes_wire,
        (double)mine.bytes_between_hosts, (double)mine.bytes_sync_logical,
        (double)mine.bytes_sync_wire,     mine.cpu_s};
    tac_req *req = NULL;

    TAC_TRY(tac_allreduce(comm, v, v, 6, TAC_F64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    TAC_TRY(tac_allreduce(comm, most, most, 2, TAC_I64, TAC_MAX, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    s->bytes_logical = (uint64_t)v[0];
    s->bytes_wire = (uint64_t)v[1];
    s->bytes_between_hosts = (uint64_t)v[2];
    s->bytes_sync_logical = (uint64_t)v[3];
    s->bytes_sync_wire = (uint64_t)v[4];
    s->cpu_s = v[5];
    s->peak_rss_bytes = (uint64_t)most[0];
    s->skipped_steps = most[1];
    s->steps = s->attempts - s->skipped_steps;
    return TAC_OK;
}

/* Rank 0 leads a worker, so it knows. */
static void fill_local(tac__run *run)
{
    tac_summary *s = &run->summary;
    const tac__local *l = run->replica->local;
    const tac_localsgd_config *c = &l->config;
    tac_localsgd_stats stats;

    s->outer = run->config->outer;
    s->worker_size = run->config->worker_size;
    s->workers = l->workers;
    s->fragments = c->fragments > 1 ? c->fragments : 1;
    s->sync_every = tac__local_interval(c);
    if (s->sync_every == INT64_MAX) s->sync_every = s->attempts; /* oneshot */
    s->sync_s = l->sync_s;
    s->local_loss = run->own_eval.loss_sum / run->own_eval.count;
    s->local_accuracy = run->own_eval.correct / run->own_eval.count;
    if (!l->lsgd) return;
    tac_localsgd_stats_get(l->lsgd, &stats);
    s->syncs = stats.syncs;
    s->consensus_distance = stats.consensus_distance;
    s->delta_norm = stats.delta_norm;
}

/* For the attempts that were made. A run that will go on has not had its last
 * average. */
static tac_status fill_prediction(tac__run *run)
{
    tac_summary *s = &run->summary;
    tac__prediction p;

    TAC_TRY(tac__run_predict(run, run->step, &p));
    s->bytes_predicted = p.wire;
    s->predictable =
        p.known && !(run->replica->local && !run->replica->local->finished);
    return TAC_OK;
}

static void fill_sync(tac__run *run)
{
    tac_summary *s = &run->summary;
    const int grad = !strcmp(run->config->sync, "grad");

    s->shards = run->config->shards;
    s->outer = "none";
    s->worker_size = 1;
    s->workers = run->rank->world;
    s->sync_every = grad;
    s->syncs = grad ? s->attempts : 0;
    s->local_loss = s->local_accuracy = NAN;
    s->consensus_distance = s->delta_norm = NAN;
    if (s->target_step == 0) s->target_s = NAN;
    if (!strcmp(run->config->sync, "none")) {
        s->local_loss = s->eval_loss;
        s->local_accuracy = s->eval_accuracy;
    }
    if (run->replica->local) fill_local(run);
}

static void fill_names(tac__run *run)
{
    tac_summary *s = &run->summary;
    const tac_train_config *c = run->config;

    s->model = c->model;
    s->data = c->data;
    s->transport = tac_comm_transport_name(run->rank->comm);
    s->device = tac_device_name(run->replica->device);
    s->precision = c->precision;
    s->sync = c->sync;
    s->compress = c->compress;
    s->optimizer = c->optimizer;
    s->world = run->rank->world;
    s->hosts = tac_comm_hosts(run->rank->comm);
    s->threads = tac_context_threads(run->rank->ctx);
    s->oversubscribed =
        run->rank->place.host_ranks * s->threads > run->rank->place.cpus;
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
    s->attempts = (int64_t)run->replica->attempts;
    s->skipped_steps = (int64_t)run->replica->scaling.skipped;
    s->steps = s->attempts - s->skipped_steps;
    s->epochs = (double)run->step / (double)run->epoch_steps;
    s->samples = run->samples;
    s->global_batch = run->config->global_batch;
    s->parameters = (int64_t)tac_params_elements(run->replica->params);
    s->loss_scale = run->replica->scaling.scale;
    s->memory = run->memory;
    s->interrupted = run->stopped;
    s->resumed = (int64_t)run->resumed_attempts;
    s->train_loss = run->epoch_sum.loss_sum / run->epoch_sum.count;
    s->eval_loss = run->last_eval.loss_sum / run->last_eval.count;
    s->eval_accuracy = tac__run_own(
        run, "accuracy", run->last_eval.correct / run->last_eval.count);
    s->metrics = run->own;
    s->n_metrics = run->n_own;
    fill_sync(run);
    TAC_TRY(fill_prediction(run));
    TAC_TRY(tac__local_show_mean(run->replica));
    TAC_TRY(tac_replica_hash(run->replica, &s->params_hash));
    TAC_TRY(tac__local_hide_mean(run->replica));
    return reduce_totals(run);
}
