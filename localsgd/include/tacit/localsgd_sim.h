/* tacit/localsgd_sim.h: how long a run would take on a network that is not
 * here.
 *
 * The graph, for each worker and step: forward and backward of each layer, and
 * reductions. Compute is serial on a worker: forward takes a third of the step,
 * backward two thirds, of each layer its `share`. A reduction of a layer is
 * queued when that layer's backward of step t ends on the slowest worker of the
 * group; it lasts what tac_sim_topology says, on a channel for each level that
 * takes one reduction after the other; forward of that layer at step t + 1 +
 * delay waits for it. Data parallelism sends all layers each step, local SGD
 * and DiLoCo when a synchronisation is due, streaming the layers of the
 * fragment that is due (Streaming DiLoCo, arXiv:2501.18512, section 3.1 and
 * table 4; what the paper leaves open is in docs/localsgd_sim.md). What is due
 * when is asked from the same code as in training. A run ends when everything
 * that was sent has arrived.
 *
 * Beyond the paper: latency, jitter, stragglers, asymmetric links, levels,
 * algorithms, time of the codec, sending as tac_localsgd_step does. Workers
 * that behave alike are simulated once, so 10,000 workers take seconds.
 *
 * Thread-safe: no state. */
#ifndef TACIT_LOCALSGD_SIM_H
#define TACIT_LOCALSGD_SIM_H

#include <stdint.h>

#include "tacit/localsgd_config.h"

TAC_BEGIN_DECLS

/* A worker's link. 0 bits/s is an error, INFINITY is legal. */
typedef struct tac_sim_network {
    double up_bits, down_bits; /* bits/s; the slower counts */
    double latency_s;          /* a hop */
    double jitter_s; /* each worker is late for each reduction by |x|, x normal
                        with this standard deviation; the latest counts */
} tac_sim_network;

/* "nvlink", "ib-400g", "eth-100g", "eth-10g", "eth-1g", "wan-100m"; a NULL name
 * ends the table. */
typedef struct tac_sim_network_entry {
    const char *name, *doc;
    tac_sim_network net;
} tac_sim_network_entry;
TAC_API const tac_sim_network_entry *tac_sim_networks(void);
/* Errors: ARG, with the names. */
TAC_API tac_status tac_sim_network_find(tac_context *ctx, const char *name,
                                        tac_sim_network *out);

typedef enum tac_sim_method {
    TAC_SIM_DP,   /* every step, every layer; one level */
    TAC_SIM_LOCAL /* by the tac_localsgd_config */
} tac_sim_method;

typedef enum tac_sim_sending {
    TAC_SIM_WITH_BACKWARD, /* a layer at a time, behind the rest of backward */
    TAC_SIM_AFTER_STEP     /* a fragment at a time, when the step is over; the
                              step that needs it waits before it begins: what
                              tac_localsgd_step does */
} tac_sim_sending;

/* How long a reduction of b bits among M workers lasts; without others, 0. */
typedef enum tac_sim_topology {
    TAC_SIM_ONCE,   /* latency + b / bits per second: as in the paper */
    TAC_SIM_RING,   /* 2(M-1) latency + 2(1-1/M) b / bits per second */
    TAC_SIM_HALVING /* halving and doubling: 2 ceil(log2 M) latency, the same
                       bits */
} tac_sim_topology;

typedef struct tac_sim_config {
    size_t struct_size;
    tac_sim_method method;
    const tac_localsgd_config *localsgd; /* of TAC_SIM_LOCAL */
    /* The model. */
    int64_t layers;
    double params;              /* all */
    const double *layer_params; /* (layers), whole numbers; NULL: equal */
    const double *share; /* (layers) of compute, any scale; NULL: equal */
    double bits;    /* a parameter on the wire; 0: exactly what training sends
                       with the configuration's codec (DP: 32) */
    double step_s;  /* compute of one step of an ordinary worker */
    double codec_s; /* encoding and decoding a parameter; part of the
                       reduction */
    /* The cluster. */
    int64_t workers;
    tac_sim_sending sending;
    tac_sim_topology topology;
    double straggler_factor; /* compute time of a slow worker over that of an
                                ordinary one; 1: none is slow */
    double straggler_share;  /* how many are slow, spread evenly; 0: one */
    /* The run. */
    int64_t steps; /* optimizer attempts */
    int finish;    /* 1: a run that ends here: what is not synchronised is (as
                      tac_localsgd_finish does); 0: a stretch of a longer one */
    double (*lr)(void *arg, int64_t attempt); /* for schedules that ask, from 1;
                                                 NULL: always 1 */
    void *lr_arg;
    uint64_t seed; /* of jitter */
} tac_sim_config;

#define TAC_SIM_CONFIG_INIT                                                \
    {                                                                      \
        sizeof(tac_sim_config), TAC_SIM_DP, NULL, 24, 1e9, NULL, NULL, 16, \
            0.1, 0, 2, TAC_SIM_WITH_BACKWARD, TAC_SIM_ONCE, 1, 0, 1000, 0, \
            NULL, NULL, 0                                                  \
    }

typedef struct tac_sim_result {
    double total_s;     /* until all workers are done and all has arrived */
    double compute_s;   /* steps * step_s */
    double exposed_s;   /* total_s less the slowest worker's compute */
    double utilisation; /* compute_s / total_s */
    double bits_sent;   /* a worker contributes, whatever the topology. With
                           `bits` 0 and `finish`: tac_localsgd_predict's
                           bytes_wire * 8 for a model without other tensors */
    double bits_link;   /* cross its link, each way */
    double bits_peak;   /* contributed in one step, at most */
    int64_t syncs;      /* attempts at which something was sent */
    int64_t classes;    /* of workers that behave alike */
} tac_sim_result;

/* `nets`: one for each level of the configuration, inner first; one if it has
 * no levels. trace (may be NULL): path of a Chrome trace of the first
 * `trace_steps` steps (0: until the first synchronisation has arrived) of an
 * ordinary worker and of a slow one, if there are any. Errors: ARG;
 * UNSUPPORTED for schedules that depend on losses; NOMEM; IO. */
TAC_API tac_status tac_sim_run(tac_context *ctx, const tac_sim_config *c,
                               const tac_sim_network *nets, const char *trace,
                               int64_t trace_steps, tac_sim_result *out);
/* The least bandwidth of grid[0..g-1] (ascending, bits/s) of the outermost
 * level at which the utilisation reaches targets[i] (0..1): out[i], INFINITY if
 * none does. `nets` as above; the outermost one's bandwidth is not read. */
TAC_API tac_status tac_sim_required(tac_context *ctx, const tac_sim_config *c,
                                    const tac_sim_network *nets,
                                    const double *targets, int n,
                                    const double *grid, int g, double *out);

TAC_END_DECLS

#endif
