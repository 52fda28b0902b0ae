/* sweep_model.c: how long a run would have taken on networks that are not here.
 *
 * The simulator gets what training had: the time of an attempt that was
 * measured with --sync none, the layers of the model, and the run's own
 * configuration. Local modes send when a step is over, as tac_localsgd_step
 * does; gradients leave behind backward, in the buckets that the reducer makes
 * (a bucket is a layer to the simulator). Rings, one network for all workers.
 * Not in it: time of codecs, gradients inside a worker, jitter, stragglers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep_page.h"
#include "tacit/reducer.h"
#include "tacit/schedule.h"
#include "tacit/train_config.h"

/* A simulation with what it points to: must not be moved. */
typedef struct modelled {
    const sweep *s;
    const sweep_row *row;
    tac_options *options; /* owns the strings of train */
    tac_train_config train;
    tac_localsgd_config localsgd;
    tac_sim_config sim;
    tac_schedule schedule;
    double *params, *share; /* (sim.layers) */
} modelled;

/* ---- the run's configuration -----------------------------------------------
 */

/* From what ddp_train was told. */
static tac_status read_args(modelled *m, const sweep_args *a)
{
    char *argv[sizeof a->argv / sizeof *a->argv + 1];
    char program[] = "ddp_train";
    tac_options_action action;
    argv[0] = program;
    for (size_t i = 0; i < a->n; i++) argv[i + 1] = (char *)a->argv[i];
    return tac_options_read_argv(m->options, (int)a->n + 1, argv, &action);
}

static tac_status configure(modelled *m)
{
    const tac_options_config config = {"ddp_train", "", NULL,
                                       tac_train_config_options(), &m->train};
    tac_context *ctx = m->s->ctx;
    sweep_args args;
    TAC_TRY(tac_train_config_defaults(&m->train));
    TAC_TRY(tac_options_create(ctx, &config, &m->options));
    tac_status status = sweep_args_make(m->s, &m->s->cases[m->row->of],
                                        m->row->lr, m->row->seed, &args);
    if (status >= 0) status = read_args(m, &args);
    sweep_args_free(&args);
    if (status < 0) return status;
    return tac_train_config_resolve(ctx, &m->train, m->s->world);
}

static int64_t workers(const modelled *m)
{
    const int64_t size = m->train.worker_size > 0 ? m->train.worker_size : 1;
    return m->s->world / size > 0 ? m->s->world / size : 1;
}

/* ---- layers and buckets ----------------------------------------------------
 */

static tac_status no_memory(const modelled *m)
{
    return tac_fail(m->s->ctx, TAC_ERR_NOMEM, "no memory for %lld layers",
                    (long long)m->s->layers);
}

static tac_status allocate(modelled *m)
{
    const size_t n = (size_t)m->s->layers;
    m->params = calloc(n, sizeof *m->params);
    m->share = calloc(n, sizeof *m->share);
    return m->params && m->share ? TAC_OK : no_memory(m);
}

static void use_layers(modelled *m)
{
    for (int64_t l = 0; l < m->s->layers; l++) {
        m->params[l] = m->s->layer_params[l];
        m->share[l] = 1;
    }
    m->sim.layers = m->s->layers;
}

static tac_status plan_buckets(const modelled *m, tac_bucket_plan *plan)
{
    const size_t n = (size_t)m->s->layers;
    const double mib = 1048576;
    const size_t limits[] = {(size_t)(m->train.first_bucket_mb * mib),
                             (size_t)(m->train.bucket_mb * mib)};
    tac_param_desc *d = calloc(n, sizeof *d);
    if (!d) return no_memory(m);
    for (size_t l = 0; l < n; l++) /* backward comes from the last layer */
        d[l] = (tac_param_desc){
            .name = "layer",
            .count = (size_t)m->s->layer_params[n - 1 - l],
            .dtype = TAC_F32,
        };
    const tac_status status =
        tac_reducer_assign_buckets(d, n, NULL, limits, 2, plan);
    free(d);
    return status < 0 ? tac_fail(m->s->ctx, status, "can't plan the buckets")
                      : TAC_OK;
}

/* Bucket 0 leaves first, so to the simulator it is the last layer. */
static tac_status use_buckets(modelled *m)
{
    const size_t n = (size_t)m->s->layers;
    tac_bucket_plan plan;
    TAC_TRY(plan_buckets(m, &plan));
    for (size_t b = 0; b < plan.buckets; b++)
        for (size_t i = plan.first[b]; i < plan.first[b + 1]; i++) {
            const size_t to = plan.buckets - 1 - b;
            m->params[to] += m->s->layer_params[n - 1 - plan.params[i]];
            m->share[to] += 1;
        }
    m->sim.layers = (int64_t)plan.buckets;
    /* All micro-steps before the last send nothing. Put between the last one's
     * forward and backward their time is where it does no harm: whatever leaves
     * leaves behind the last backward. */
    m->share[plan.buckets - 1] += (double)(m->train.accumulate - 1) * (double)n;
    tac_bucket_plan_free(&plan);
    return TAC_OK;
}

/* ---- the simulation --------------------------------------------------------
 */

static double rate_of(void *arg, int64_t attempt)
{
    return tac_schedule_lr(arg, (uint64_t)(attempt > 0 ? attempt - 1 : 0));
}

static tac_status set_schedule(modelled *m)
{
    const int64_t warmup = m->train.warmup_steps;
    m->schedule.lr = m->train.lr;
    m->schedule.warmup = (uint64_t)(warmup > 0 ? warmup : 0);
    m->schedule.total = (uint64_t)m->row->steps;
    if (!isfinite(m->train.lr)) return TAC_OK; /* the optimizer's own: 1 */
    m->sim.lr = rate_of;
    m->sim.lr_arg = &m->schedule;
    return tac_schedule_parse(m->s->ctx, m->train.schedule, &m->schedule.kind);
}

static tac_status simulate_local(modelled *m)
{
    m->sim.method = TAC_SIM_LOCAL;
    m->sim.sending = TAC_SIM_AFTER_STEP;
    m->sim.localsgd = &m->localsgd;
    m->sim.bits = 0;
    use_layers(m);
    TAC_TRY(set_schedule(m));
    return tac_train_config_localsgd(m->s->ctx, &m->train, (int)workers(m),
                                     m->s->layers, m->row->steps, &m->localsgd);
}

static tac_status simulate_gradients(modelled *m)
{
    m->sim.method = TAC_SIM_DP;
    m->sim.sending = TAC_SIM_WITH_BACKWARD;
    m->sim.bits = 32;
    return use_buckets(m);
}

/* The same network on all levels. */
static void use_network(const sweep *s, int network,
                        tac_sim_network nets[TAC_LOCALSGD_LEVELS])
{
    for (int i = 0; i < TAC_LOCALSGD_LEVELS; i++)
        nets[i] = s->networks[network]->net;
}

static tac_status run(modelled *m, int network, int64_t steps,
                      tac_sim_result *out)
{
    tac_sim_network nets[TAC_LOCALSGD_LEVELS];
    use_network(m->s, network, nets);
    m->sim.steps = steps;
    m->sim.finish = steps == m->row->steps;
    return tac_sim_run(m->s->ctx, &m->sim, nets, NULL, 0, out);
}

/* What the run sends is what was predicted for it: codecs encode buckets, and
 * averaged moments travel with the parameters. */
static tac_status match_bytes(modelled *m)
{
    const sweep_row *row = m->row;
    const double bits =
        8 * (row->predictable ? row->bytes_predicted : row->bytes_counted);
    tac_sim_result r;
    if (!(bits > 0)) return TAC_OK;
    TAC_TRY(run(m, 0, row->steps, &r));
    if (fabs(r.bits_sent - bits) < 1 || !(r.bits_sent > 0)) return TAC_OK;
    m->sim.bits = 32;
    TAC_TRY(run(m, 0, row->steps, &r));
    m->sim.bits *= bits / r.bits_sent;
    return TAC_OK;
}

static tac_status prepare(modelled *m)
{
    TAC_TRY(configure(m));
    TAC_TRY(allocate(m));
    m->sim = (tac_sim_config)TAC_SIM_CONFIG_INIT;
    m->sim.workers = workers(m);
    m->sim.topology = TAC_SIM_RING;
    m->sim.params = m->s->params;
    m->sim.layer_params = m->params;
    m->sim.share = m->share;
    m->sim.step_s = m->s->compute_s * (double)m->train.accumulate;
    return tac_train_config_is_local(&m->train) ? simulate_local(m)
                                                : simulate_gradients(m);
}

static void close_modelled(modelled *m)
{
    tac_options_destroy(m->options);
    free(m->params);
    free(m->share);
}

/* ---- rows ------------------------------------------------------------------
 */

/* A schedule that follows losses has no model. */
static int follows_losses(const modelled *m)
{
    return tac_train_config_is_local(&m->train) &&
           m->localsgd.schedule.kind == TAC_SYNC_ADACOMM;
}

static int can_model(const sweep *s, const sweep_row *row)
{
    return s->compute_s > 0 && isfinite(s->compute_s) && s->layers > 0 &&
           s->layer_params && s->params > 0 && row->steps > 0 &&
           s->n_networks > 0;
}

/* Seconds until each of steps (n) is done on each network: out (networks, n).
 */
static tac_status simulate(modelled *m, const int64_t *steps, size_t n,
                           double *out)
{
    tac_sim_result r;
    if (follows_losses(m)) return TAC_OK;
    TAC_TRY(match_bytes(m));
    for (int k = 0; k < m->s->n_networks; k++)
        for (size_t i = 0; i < n; i++) {
            r.total_s = 0;
            if (steps[i] > 0) TAC_TRY(run(m, k, steps[i], &r));
            out[(size_t)k * n + i] = r.total_s;
        }
    return TAC_OK;
}

static void compute_alone(const sweep *s, const int64_t *steps, size_t n,
                          double *out)
{
    for (int k = 0; k < s->n_networks; k++)
        for (size_t i = 0; i < n; i++)
            out[(size_t)k * n + i] = (double)steps[i] * s->compute_s;
}

/* The same; NaN where there is no model. */
static tac_status model_steps(const sweep *s, const sweep_row *row,
                              const int64_t *steps, size_t n, double *out)
{
    modelled m = {.s = s, .row = row};
    for (size_t i = 0; i < n * (size_t)s->n_networks; i++) out[i] = NAN;
    if (!can_model(s, row)) return TAC_OK;
    if (strcmp(s->cases[row->of].sync, "none") == 0) {
        compute_alone(s, steps, n, out);
        return TAC_OK;
    }
    tac_status status = prepare(&m);
    if (status >= 0) status = simulate(&m, steps, n, out);
    close_modelled(&m);
    return status;
}

tac_status sweep_model(sweep *s)
{
    for (size_t i = 0; i < s->n_rows; i++)
        TAC_TRY(model_steps(s, &s->rows[i], &s->rows[i].steps, 1,
                            s->rows[i].modelled_s));
    return TAC_OK;
}

tac_status tac__sweep_model_evals(const sweep *s, const sweep_row *row,
                                  double *out)
{
    int64_t *steps = calloc(row->n_evals + 1, sizeof *steps);
    if (!steps) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < row->n_evals; i++)
        steps[i] =
            row->evals[i].step < row->steps ? row->evals[i].step : row->steps;
    const tac_status status = model_steps(s, row, steps, row->n_evals, out);
    free(steps);
    return status;
}
