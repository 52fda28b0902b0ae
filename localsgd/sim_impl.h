/* sim_impl.h: the parts of the simulator.
 *
 *   sim_check.c     what a configuration can't be
 *   sim_cells.c     workers that behave alike: cells, and their groups
 *   sim_plan.c      what is sent after which step: asks the clock of training
 *   sim_size.c      how large that is: bits, codecs
 *   sim_network.c   named networks; how long a reduction lasts
 *   sim_state.c     memory of a run
 *   sim_step.c      one step: forward, backward, queues
 *   sim_run.c       a run, and the search for the bandwidth
 *   sim_trace.c     the picture */
#ifndef TAC_LOCALSGD_SIM_IMPL_H
#define TAC_LOCALSGD_SIM_IMPL_H

#include "clock.h"
#include "tacit/codec.h"
#include "tacit/json.h"
#include "tacit/localsgd_sim.h"

/* ---- workers that behave alike ------------------------------------------- */

typedef struct tac__sim_cells {
    int64_t n;
    double *factor; /* (n) of compute time */
    int n_levels;
    int64_t members[TAC_LOCALSGD_LEVELS];  /* workers in a group */
    int64_t n_groups[TAC_LOCALSGD_LEVELS]; /* that behave differently */
    int32_t *group[TAC_LOCALSGD_LEVELS];   /* (n) */
    int64_t ordinary, slow; /* a cell of each kind; slow -1: none */
} tac__sim_cells;

/* `each_group`: groups of the innermost level have luck of their own. */
tac_status tac__sim_cells_make(tac_context *ctx, const tac_sim_config *c,
                               int each_group, tac__sim_cells *out);
void tac__sim_cells_free(tac__sim_cells *s);

/* ---- what is sent when ----------------------------------------------------
 *
 * A unit is what travels as one reduction: a layer, or with
 * TAC_SIM_AFTER_STEP a fragment. */

typedef struct tac__sim_plan {
    const tac_sim_config *c;
    const tac_localsgd_config *localsgd; /* NULL: data parallel */
    tac__clock clock;
    tac_codec *codec; /* whose bytes count; NULL: none */
    int levels;
    int64_t units, n_fragments;
    int64_t *fragment; /* (units) */
    double *params;    /* (units) */
    double *size;      /* (fragments) parameters */
    uint64_t *calls;   /* (levels, fragments) of the codec so far */
    /* Of the present attempt. */
    int any;
    int64_t delay;      /* of the outermost level; inner ones have none */
    signed char *at;    /* (fragments) level at which it is sent; -1: not */
    double *share;      /* (fragments) bits a parameter */
    signed char *level; /* (units) */
    double *bits;       /* (units) */
} tac__sim_plan;

tac_status tac__sim_plan_make(tac_context *ctx, const tac_sim_config *c,
                              tac__sim_plan *out);
void tac__sim_plan_free(tac__sim_plan *p);
/* Goes to the next attempt. */
void tac__sim_plan_next(tac__sim_plan *p);
/* What is left to send after the last attempt. */
void tac__sim_plan_finish(tac__sim_plan *p);

double tac__sim_layer_params(const tac_sim_config *c, int64_t layer);
/* A parameter, where no codec encodes. */
double tac__sim_plain_bits(const tac_sim_config *c);
tac_status tac__sim_codec(tac_context *ctx, tac__sim_plan *p);
/* One synchronisation of everything. */
uint64_t tac__sim_model_bytes(const tac__sim_plan *p);
/* Bits a parameter of fragment f, which is sent now at level p->at[f]. */
double tac__sim_fragment_share(tac__sim_plan *p, const tac__due *due,
                               int64_t f);

/* ---- networks -------------------------------------------------------------
 */

/* Times its bits that a worker's link carries. */
double tac__sim_link_factor(tac_sim_topology t, int64_t members);
double tac__sim_duration(const tac_sim_network *net, tac_sim_topology t,
                         int64_t members, double bits);
/* How late the latest of `members` is, for u uniform in [0, 1). */
double tac__sim_latest(double jitter_s, int64_t members, double u);

/* ---- a run -----------------------------------------------------------------
 */

typedef struct tac__sim_trace {
    tac_json *json;
    int64_t steps; /* that are drawn */
    const char *path;
} tac__sim_trace;

typedef struct tac__sim {
    const tac_sim_config *c;
    const tac_sim_network *nets;
    tac__sim_cells cells;
    tac__sim_plan plan;
    tac__sim_trace *trace;
    double *forward, *backward;           /* (layers) seconds */
    double *now;                          /* (cells) */
    double *channel[TAC_LOCALSGD_LEVELS]; /* (groups) free from then on */
    double *ready; /* (units, cells): when what the next forward needs arrives;
                      0: nothing */
    double *late;  /* (units, cells): the same for a delayed result */
    int64_t *late_step; /* (units) whose forward waits for it; -1: none */
    int64_t step;       /* present, from 0 */
    int waits;          /* something in `ready` */
    uint64_t messages;  /* so far */
    double bits_sent, bits_link, bits_peak;
    int64_t syncs;
} tac__sim;

tac_status tac__sim_check(tac_context *ctx, const tac_sim_config *c);
tac_status tac__sim_check_nets(tac_context *ctx, const tac_sim_config *c,
                               const tac_sim_network *nets, int need_bits);
int tac__sim_levels(const tac_sim_config *c);
tac_status tac__sim_open(tac_context *ctx, const tac_sim_config *c,
                         const tac_sim_network *nets, tac__sim *s);
void tac__sim_close(tac__sim *s);
/* One step of all workers. */
void tac__sim_step(tac__sim *s);
/* After the last one: what tac_localsgd_finish would send. */
void tac__sim_finish(tac__sim *s);

/* ---- the picture ------------------------------------------------------------
 */

tac_status tac__sim_trace_open(tac_context *ctx, const tac__sim *s,
                               const char *path, int64_t steps,
                               tac__sim_trace *out);
/* A span of a cell, if it is drawn. lane 0: compute; 1 + k: level k. */
void tac__sim_span(const tac__sim *s, int64_t cell, int lane, const char *name,
                   int64_t unit, double begin, double end);
tac_status tac__sim_trace_close(tac_context *ctx, tac__sim_trace *t);

static inline int tac__sim_draws(const tac__sim *s)
{
    return s->trace && s->step < s->trace->steps;
}

#endif
