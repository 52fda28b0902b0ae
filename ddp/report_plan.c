/* What rank 0 says before training: ranks, kernels, precision, memory. */
#include "run.h"
#include "local.h"
#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tacit/kernels.h"

static size_t count(const tac_dataset *set)
{
    return set ? tac_dataset_get_info(set).count : 0;
}

static void print_data(const tac__run *run)
{
    fprintf(run->out,
            "tacit %s: %s, %zu parameters, on %s (%zu training, %zu "
            "validation, %zu test samples)\n",
            TAC_VERSION_STRING, run->config->model,
            tac_params_elements(run->replica->params), run->config->data,
            count(run->data.train), count(run->data.val),
            count(run->data.test));
}

static void print_ranks(const tac__run *run)
{
    const tac__rank *rank = run->rank;
    const int hosts = tac_comm_hosts(rank->comm);

    fprintf(run->out, "  ranks      %d on %d host%s, transport %s (%s)%s\n",
            rank->world, hosts, hosts == 1 ? "" : "s",
            tac_comm_transport_name(rank->comm),
            tac_comm_transport_why(rank->comm),
            rank->place.host_ranks * tac_context_threads(rank->ctx) >
                    rank->place.cpus
                ? ", oversubscribed"
                : "");
    fprintf(run->out,
            "  compute    %s, %d thread%s a rank, %d CPUs here, kernels %s\n",
            tac_device_name(run->replica->device),
            tac_context_threads(rank->ctx),
            tac_context_threads(rank->ctx) == 1 ? "" : "s", rank->place.cpus,
            tac_device_kernels(run->replica->device, TAC_F32)->names);
}

/* "fp16 over f32 parameters, kernels ..., loss scale 65536, dynamic". */
static void print_precision(const tac__run *run)
{
    const tac_replica *r = run->replica;
    tac_scaler_config sc;

    fprintf(run->out, "  precision  %s", run->config->precision);
    if (r->low != TAC_F32)
        fprintf(run->out, " over f32 parameters%s, kernels %s",
                strcmp(run->config->rounding, "nearest")
                    ? " (rounded stochastically)"
                    : "",
                tac_device_kernels(r->device, r->low)->names);
    if (tac__settings_scaler(run->rank->ctx, run->config, &sc) >= 0 &&
        sc.enabled)
        fprintf(run->out, ", loss scale %.10g, %s", r->scaling.scale,
                sc.growth_interval ? "dynamic" : "static");
    fprintf(run->out, "\n");
}

static void warn_of_scale(const tac__run *run)
{
    const tac_train_config *c = run->config;
    const char *option = tac__settings_unused_scale(run->rank->ctx, c);

    if (option)
        tac_log(run->rank->ctx, TAC_LOG_WARN,
                "--%s is not used: --loss-scale %.40s with --precision %s has "
                "no %sloss scale; --loss-scale dynamic gives one",
                option, c->loss_scale, c->precision,
                strcmp(option, "max-skips") ? "dynamic " : "");
}

static void print_replicas(const tac__run *run)
{
    char text[512];

    if (run->replica->local)
        fprintf(run->out, "  replicas   %s, %s\n", run->config->sync,
                tac__local_describe(run->replica, run->total_steps, text,
                                    sizeof text));
}

static void print_buckets(const tac__run *run)
{
    char text[32];
    size_t n;

    if (run->replica->local && !run->replica->reducer) return;
    if (!run->replica->reducer) {
        fprintf(run->out, "  buckets    none: replicas are not averaged\n");
        return;
    }
    n = tac_reducer_buckets(run->replica->reducer);
    fprintf(run->out, "  buckets    %zu:", n);
    for (size_t b = 0; b < n && b < 8; b++) {
        tac_bucket_view view;

        if (tac_reducer_bucket(run->replica->reducer, b, &view) < 0) break;
        fprintf(run->out, " %s%s", tac__bytes_text((double)view.bytes, text),
                b + 1 < n ? "," : "");
    }
    fprintf(run->out, "%s of gradients\n", n > 8 ? " ..." : "");
}

static void print_codec(const tac__run *run)
{
    const tac_codec *codec = run->replica->codec;

    if (codec) fprintf(run->out, "  compress   %s\n", tac_codec_spec(codec));
}

void tac__report_banner(tac__run *run)
{
    if (!tac__report_speaks(run)) return;
    print_data(run);
    print_ranks(run);
    print_precision(run);
    warn_of_scale(run);
    tac__local_warn(run);
    fprintf(run->out,
            "  batch      %" PRId64 " a rank%s, %" PRId64 " a step; %" PRIu64
            " steps an epoch, %" PRIu64 " steps in all\n",
            run->config->batch,
            run->config->accumulate > 1 ? " and micro-step" : "",
            run->config->global_batch, run->epoch_steps, run->total_steps);
    print_replicas(run);
    print_buckets(run);
    print_codec(run);
    if (run->config->skip_compute)
        fprintf(run->out,
                "  compute    skipped: everything is sent, nothing is learned, "
                "evaluated or tested\n");
    if (run->resumed_from)
        fprintf(run->out, "  resumed    %s: step %" PRIu64 ", epoch %.4g\n",
                run->resumed_from, run->step,
                (double)run->step / (double)run->epoch_steps);
    if (run->resumed_from && run->step >= run->total_steps)
        fprintf(
            run->out,
            "             nothing is left to train: --%s ends at step %" PRIu64
            "\n",
            run->config->steps > 0 ? "steps" : "epochs", run->total_steps);
    fflush(run->out);
}

/* With --param-groups: what each parameter gets, so that no pattern fits or
 * misses silently. */
static void print_settings(const tac__run *run)
{
    const tac_replica *r = run->replica;

    if (!run->config->param_groups) return;
    for (size_t i = 0; i < tac_params_count(r->params); i++) {
        tac_param_settings s;

        if (tac_optimizer_settings(r->optimizer, i, &s) < 0) return;
        fprintf(run->out,
                "  %-10s %s: lr x %g, weight decay %g, state %s (%s)\n",
                i ? "" : "parameters", tac_params_get(r->params, i)->name,
                s.lr_scale, s.weight_decay, s.state,
                s.group ? s.group : "no group");
    }
}

/* Not one rank alone, and not --sync none. */
static int averages(const tac__run *run)
{
    return run->replica->local ||
           (run->replica->reducer && run->rank->world > 1);
}

/* What a rank contributes to one average. */
static void print_step(const tac__run *run)
{
    const tac_replica *r = run->replica;
    const double bytes = (double)tac_params_elements(r->params) * 4;
    char a[32];

    if (r->local)
        fprintf(run->out,
                "  an average is of %s of parameters a worker, in %" PRId64
                " part%s\n",
                tac__bytes_text(bytes, a),
                r->local->config.fragments > 1 ? r->local->config.fragments : 1,
                r->local->config.fragments > 1 ? "s" : "");
    else if (averages(run))
        fprintf(run->out, "  a step     averages %s of gradients a rank\n",
                tac__bytes_text(bytes, a));
}

static void print_run(const tac__run *run)
{
    tac__prediction p;
    char a[32];

    if (!averages(run)) {
        fprintf(run->out, "  the run    averages nothing\n");
        return;
    }
    if (tac__run_predict(run, run->total_steps, &p) < 0) return;
    if (p.known)
        fprintf(run->out,
                "  the run    averages %" PRIu64 " time%s, in which all ranks "
                "send %s\n",
                p.syncs, p.syncs == 1 ? "" : "s",
                tac__bytes_text((double)p.wire, a));
    else
        fprintf(run->out,
                "  the run    averages as often as measured %s say: not known "
                "before\n",
                strcmp(run->config->sync_schedule, "adacomm") ? "times"
                                                              : "losses");
}

void tac__report_plan(tac__run *run)
{
    tac__progress_begin(&run->progress,
                        tac__report_speaks(run) && !run->config->dry_run,
                        (int64_t)run->step, (int64_t)run->total_steps);
    if (!tac__report_speaks(run)) return;
    tac__memory_print(run);
    print_settings(run);
    if (run->config->dry_run) {
        print_step(run);
        print_run(run);
        fprintf(run->out, "dry run: nothing was trained\n");
    }
    fflush(run->out);
}
