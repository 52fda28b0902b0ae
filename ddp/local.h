/* What a replica has in the local modes: its worker, and how workers average
 * parameters now and then. docs/localsgd.md, "In ddp_train".
 *
 * A worker is --worker-size neighbouring ranks, which average gradients in
 * every step by the reducer and so stay equal. The first of them, the leader,
 * owns the tac_localsgd, over a communicator of the leaders; after each attempt
 * it tells its worker what happened, and if parameters have changed it sends
 * them. With workers of one rank there is neither. */
#ifndef TAC_DDP_LOCAL_H
#define TAC_DDP_LOCAL_H

#include "tacit/localsgd.h"
#include "tacit/replica.h"

typedef struct tac__local {
    tac_localsgd_config config;
    int workers;
    tac_comm *leaders;  /* NULL: this rank is none, or all are */
    tac_localsgd *lsgd; /* NULL on ranks that lead no worker */
    /* Moments of the optimizer that are merged, too. */
    struct tac__moment {
        float *data;
        size_t count;
    } * moments;
    size_t n_moments, room;
    float *mean;      /* (elements) of parameters, for evaluation */
    uint64_t skipped; /* by the scaler, up to the last attempt */
    int dropping;     /* late: what is left of the interval is dropped */
    int clean;        /* all replicas are equal */
    int finished;
    double sync_s; /* in tac__local_step and _finish, if it did anything */
    uint64_t last_syncs; /* on all ranks of a worker */
} tac__local;

/* Collective over all ranks, after the optimizer's creation, in local modes;
 * else does nothing. Nothing is started yet, so that state may be loaded. */
tac_status tac__local_create(tac_replica *r, uint64_t total_steps);
/* Splits r->worker off, where ranks of a worker average gradients. */
tac_status tac__local_split(tac_replica *r);
void tac__local_destroy(tac_replica *r);
/* Collective. `loaded`: parameters and state are those of a checkpoint. */
tac_status tac__local_start(tac_replica *r, int loaded);

/* "8 workers of 2 ranks: every 16, total 1716; average", for an open replica;
 * "" for other modes. */
const char *tac__local_describe(const tac_replica *r, uint64_t total_steps,
                                char *buf, size_t bytes);

/* local_memory.c: what a leader holds beside its replica: tac_localsgd and its
 * communicators; for an open replica, and now. */
tac_status tac__local_predict(const tac_replica *r, uint64_t total_steps,
                              uint64_t *bytes);
uint64_t tac__local_held(const tac_replica *r);
/* The configuration, for an open replica of a local mode; layer[i]: of each
 * parameter, may be NULL. */
tac_status tac__local_configure(const tac_replica *r, uint64_t total_steps,
                                int64_t *layer, tac_localsgd_config *out);

/* H, of the outermost level and at first. */
int64_t tac__local_interval(const tac_localsgd_config *c);

/* After each attempt, on all ranks: `samples` of the worker trained in it; 0
 * and computed 0: it was dropped. Collective where something is due. */
tac_status tac__local_step(tac_replica *r, double samples, int computed);
/* Averages what is not yet. Collective; at most once. */
tac_status tac__local_finish(tac_replica *r);

/* Seconds of this process in which synchronisations waited for other ranks. */
double tac__local_wait_s(const tac_replica *r);

/* Collective: the averaged model takes the place of the parameters; and back.
 * Does nothing without local modes and while all replicas are equal. */
tac_status tac__local_show_mean(tac_replica *r);
tac_status tac__local_hide_mean(tac_replica *r);

/* A tac_state_walk_fn over a replica: shows nothing without local modes. After
 * tac__local_settle, or before tac__local_start to load it. */
tac_status tac__local_walk(void *replica, const tac_state_visitor *v);
/* Collective: what is under way arrives; all that a run that ends in between
 * needs, so that its communicators are idle when they go. */
tac_status tac__local_land(tac_replica *r);
/* Collective: completes what is under way. *mean: the averaged model, in the
 * order of the arena, borrowed until the next mean; NULL: the parameters are
 * it, or this rank leads no worker. */
tac_status tac__local_settle(tac_replica *r, float **mean);

#endif
