/* tacit/summary.h: what a run amounts to: one object, one file.
 *
 * The keys of summary.json are the field names below. Definitions: seconds are
 * wall time of rank 0 unless said; bytes are summed over all ranks.
 *   wall_s          from the first training step to the end of the last
 *                   evaluation
 *   train_s         of wall_s: training steps alone; samples_per_s divides by
 * it compute_s       time in forward, backward and update comm_s          union
 * of the spans in which a gradient bucket was under way comm_exposed_s  the
 * part of it in which no compute ran on rank 0 wait_s          of comm_s:
 * waiting for other ranks cpu_s           CPU time of all ranks bytes_logical
 * what ranks contribute: elements times element size bytes_wire      the same
 * after encoding bytes_between_hosts  what the algorithm really sent from host
 * to host params_hash     XXH3-64 over the f32 parameters in registration order
 */
#ifndef TACIT_SUMMARY_H
#define TACIT_SUMMARY_H

#include <stdint.h>

#include "tacit/checkpoint.h"
#include "tacit/context.h"

TAC_BEGIN_DECLS

/* One kind of memory, in bytes; measured after the first step. */
typedef struct tac_memory_row {
    const char *name; /* "optimizer_state" */
    uint64_t predicted, measured;
    int per_process; /* 0: each rank has it */
} tac_memory_row;

/* What a rank needs, and the host for all of its ranks. */
typedef struct tac_memory_summary {
    const tac_memory_row *rows; /* borrowed */
    size_t n;
    int ranks, processes; /* of rank 0's host */
    uint64_t host_predicted, host_measured;
    uint64_t available; /* to the ranks of the host before the run */
    uint64_t rss_bytes; /* of rank 0's process after the first step */
} tac_memory_summary;

typedef struct tac_summary {
    int world, hosts, threads;
    const char *transport, *device, *precision, *sync, *compress, *optimizer,
        *model, *data; /* borrowed */
    int64_t sync_every, steps, attempts, skipped_steps;
    double epochs;
    int64_t samples, tokens, global_batch, parameters;
    double train_loss, eval_loss, eval_accuracy, test_loss, test_accuracy;
    int64_t test_samples; /* that these two are of */
    double samples_per_s, tokens_per_s, wall_s, train_s, compute_s, forward_s,
        backward_s, update_s, comm_s, wait_s, comm_exposed_s, cpu_s;
    uint64_t bytes_logical, bytes_wire, bytes_between_hosts;
    int64_t syncs; /* of gradients, or of parameters in local modes */
    /* What training itself exchanged, all ranks: gradients, or parameters and
     * their differences with what is merged beside them; without evaluation,
     * control and set-up. Predicted before training from the configuration. */
    uint64_t bytes_sync_logical, bytes_sync_wire;
    uint64_t bytes_predicted; /* of bytes_sync_wire; 0 with predictable 0 */
    int predictable;          /* 0: depends on losses or times */
    /* Local modes; NaN or 0 otherwise. */
    const char *outer, *shards; /* as resolved */
    int64_t worker_size, workers, fragments;
    double sync_s; /* rank 0's wall time in synchronisations */
    double local_loss, local_accuracy; /* validation, mean over ranks of their
                                          own models before the last average,
                                          each rank on its share; `none`: the
                                          same as eval_* */
    double consensus_distance, delta_norm; /* as in tac_localsgd_stats */
    double target_s; /* of train_s, when --target-accuracy was reached; NaN */
    int64_t target_step; /* 0: not reached */
    double loss_scale;
    uint64_t peak_rss_bytes; /* largest of the ranks' processes */
    tac_memory_summary memory;
    int oversubscribed;
    int interrupted; /* a signal ended the run early */
    int64_t resumed; /* attempts that were in the checkpoint from which the last
                        start went on; 0: it began the run */
    uint64_t params_hash;
    const tac_checkpoint_metric *metrics; /* of compute_metrics, written as
                                             eval_<name>; borrowed */
    size_t n_metrics;
} tac_summary;

/* Writes the summary as one JSON object to `path`. Unmeasured values
 * (test_* of a run that was stopped) are NaN here and null there. Errors:
 * IO. */
TAC_API tac_status tac_summary_write(tac_context *ctx, const tac_summary *s,
                                     const char *path);

TAC_END_DECLS

#endif
