/* localsgd_sim.h: the parts of localsgd_sim.
 *
 *   localsgd_sim.c         main, messages of --help
 *   localsgd_sim_options.c the option table
 *   localsgd_sim_case.c    options to a simulation: method, levels, networks
 *   localsgd_sim_model.c   one model: bandwidth needed, or named networks
 *   localsgd_sim_paper.c   published tables beside ours
 *   localsgd_sim_text.c    text of models, numbers and rows */
#ifndef LOCALSGD_SIM_H
#define LOCALSGD_SIM_H

#include "tacit/json.h"
#include "tacit/localsgd_sim.h"
#include "tacit/options.h"

enum { TAC__SIM_TARGETS = 16, TAC__SIM_GRID = 50, TAC__SIM_NETS = 16 };

/* What programs in the literature sent is 16; this reproduces the published
 * table best and has no other reason. */
#define TAC__SIM_FITTED_BITS 13.4

typedef struct tac__sim_options {
    const char *table, *model, *method, *codec, *levels, *inner_network;
    const char *topology, *sending, *targets, *network, *trace, *json, *config;
    double params, step_seconds, bits, codec_seconds;
    double bandwidth, up_bandwidth, latency, jitter;
    double straggler, straggler_share;
    int64_t layers, sync_every, start, fragment_layers, overlap, workers, steps;
    int64_t trace_steps, seed;
    int finish, quiet;
} tac__sim_options;

typedef struct tac__sim_bench {
    tac_context *ctx;
    const tac__sim_options *opt;
    tac_json *json;
} tac__sim_bench;

/* A simulation with what it points to: must not be moved. */
typedef struct tac__sim_case {
    tac_localsgd_config localsgd;
    tac_sim_config sim;
    tac_sim_network nets[TAC_LOCALSGD_LEVELS];
    int outermost; /* of nets */
    char model[32];
} tac__sim_case;

extern const tac_option tac__sim_table[];

tac_status tac__sim_case_make(const tac__sim_bench *b, tac__sim_case *out);
/* H of the outermost level; dp: 1. */
int64_t tac__sim_interval(const tac__sim_case *k);
/* --steps, or enough for intervals of `every`. */
int64_t tac__sim_steps(const tac__sim_options *o, int64_t every);
/* "50,80" into shares; n of them. */
tac_status tac__sim_targets(const tac__sim_bench *b,
                            double out[TAC__SIM_TARGETS], int *n);
/* logspace(-1, 3, 50) Gbit/s, in bits/s: the grid of the papers. */
void tac__sim_grid(double out[TAC__SIM_GRID]);

tac_status tac__sim_model(tac__sim_bench *b);
tac_status tac__sim_paper(tac__sim_bench *b);

/* 1e9: "1B". */
const char *tac__sim_size_text(double params, char *buf, size_t bytes);
/* Gbit/s with a digit after the point as in the papers; "never". */
const char *tac__sim_gbps_text(double bits, char *buf, size_t bytes);
/* Begins a row's object with what all rows have; the caller ends it. */
void tac__sim_row_begin(tac_json *j, const char *model, const char *method,
                        int64_t sync_every);

#endif
