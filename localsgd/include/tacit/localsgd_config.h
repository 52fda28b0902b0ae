/* tacit/localsgd_config.h: one description of how replicas talk, for training,
 * for predicting bytes and for the simulator.
 *
 * Terms. An *attempt* is one optimizer step tried, whether it was applied or
 * skipped for an overflow: all clocks count attempts, or ranks would wait for
 * each other for ever (pytorch#76282). H is the interval: attempts between two
 * synchronisations. The *anchor* is the f32 copy of the parameters as of the
 * last synchronisation, equal on all ranks; a rank's *delta* is anchor minus
 * its present parameters; the *outer optimizer* updates the anchor with the
 * averaged delta as if it were a gradient (DiLoCo, arXiv:2311.08105).
 *
 * Plain data: strings are borrowed, start from TAC_LOCALSGD_CONFIG_INIT. */
#ifndef TACIT_LOCALSGD_CONFIG_H
#define TACIT_LOCALSGD_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

/* ---- when --------------------------------------------------------------- */

typedef enum tac_sync_kind {
    TAC_SYNC_FIXED,   /* every `every` attempts */
    TAC_SYNC_QSR,     /* max(every, floor((alpha / lr)^power)), lr that of the
                         attempt before the interval (of the run's first one for
                         the first): quadratic synchronisation rule,
                         arXiv:2310.14423 */
    TAC_SYNC_ADACOMM, /* ceil(every * sqrt(loss / loss_0 * lr_0 / lr)): fewer as
                         the loss falls, arXiv:1810.08313; losses are means over
                         the ranks and the interval, loss_0 the first one told
                       */
    TAC_SYNC_BUDGET,  /* ceil(bytes / (bytes_per_second * seconds)): what keeps
                         the bytes on the wire a second and rank at or below
                         bytes_per_second, from the measured time of an attempt
                         (the slowest rank's mean); the first interval: every */
    TAC_SYNC_CUSTOM
} tac_sync_kind;

/* What a rule sees at the start of an interval; equal on all ranks (lr: rank
 * 0's). */
typedef struct tac_sync_view {
    int64_t attempts; /* so far */
    int64_t last;     /* length of the interval before; 0: none */
    double lr, lr_first;
    double loss, loss_first; /* means over ranks; NaN: not told */
    double attempt_s;        /* slowest rank's mean seconds an attempt; NaN */
    size_t bytes;            /* on the wire for one synchronisation, a rank */
} tac_sync_view;

typedef struct tac_sync_schedule {
    tac_sync_kind kind;
    int64_t every; /* H, at least 1 */
    int64_t start; /* post-local SGD (Lin et al. 2020): until this many attempts
                      every attempt averages the parameters, plainly: in f32,
                      without codec, outer optimizer and delay; 0: none */
    int64_t min_every, max_every; /* of QSR, ADACOMM, BUDGET, CUSTOM; 0: no
                                     limit */
    double alpha, power;          /* QSR; power 2 */
    double bytes_per_second;      /* BUDGET */
    int64_t (*next)(void *arg, const tac_sync_view *view); /* CUSTOM */
    void *arg;
} tac_sync_schedule;

/* ---- how the anchor moves ----------------------------------------------- */

typedef enum tac_outer_kind {
    TAC_OUTER_AVERAGE,    /* anchor -= delta: plain averaging; needs no anchor
                             if nothing else does */
    TAC_OUTER_SGD,        /* anchor -= lr * delta */
    TAC_OUTER_HEAVY_BALL, /* u = m*u + delta; anchor -= lr*u */
    TAC_OUTER_NESTEROV,   /* u = m*u + delta; anchor -= lr*(delta + m*u):
                             torch.optim.SGD's; DiLoCo 0.7, 0.9 */
    TAC_OUTER_SLOWMO,     /* u = m*u + delta/inner_lr; anchor -=
                             lr*inner_lr*u, inner_lr at the synchronisation
                             (arXiv:1910.00643; lr 1, m 0.5) */
    TAC_OUTER_ADAM, /* torch.optim.Adam with beta1 = momentum, beta2, eps */
    TAC_OUTER_CUSTOM
} tac_outer_kind;

/* Updates n elements of the anchor; state has state_per_element f32 arrays of
 * n, zero at first. step counts outer steps from 1. Must be the same on all
 * ranks. */
typedef void tac_outer_fn(void *arg, size_t n, uint64_t step, double inner_lr,
                          float *anchor, const float *delta,
                          float *const *state);

typedef struct tac_outer {
    tac_outer_kind kind;
    double lr, momentum, beta2, eps;
    tac_outer_fn *fn; /* CUSTOM */
    void *arg;
    int state_per_element; /* CUSTOM: f32 arrays, at most 4 */
} tac_outer;

/* ---- what else ----------------------------------------------------------- */

typedef enum tac_weighting {
    TAC_WEIGHT_UNIFORM,
    TAC_WEIGHT_SAMPLES, /* a rank counts by its samples in the interval */
    TAC_WEIGHT_STEPS    /* by its applied steps */
} tac_weighting;

typedef enum tac_stale {
    TAC_STALE_DELAYED, /* the averaged delta is applied when it arrives. With
                          delay == every that is at the fragment's next
                          synchronisation: the new delta is taken first, then
                          the old result applied ("one outer step late") */
    TAC_STALE_EAGER    /* arXiv:2502.12996: needs delay == every. At its t-th
                          synchronisation rank r gives its outer optimizer the
                          average of the one before with its own part replaced
                          by a fresh one:
                          avg_(t-1) - w_r*delta_r,(t-1) + w_r*delta_r,t.
                          Anchors then differ between ranks until the end, which
                          averages the parameters plainly */
} tac_stale;

typedef enum tac_late {
    TAC_LATE_WAIT,
    TAC_LATE_DROP /* a rank whose interval has taken deadline_s is told so
                     (tac_sync_event.late): its trainer drops the rest of the
                     interval, which means it calls tac_localsgd_step for each
                     remaining attempt, skipped and without samples, and what
                     it has is synchronised */
} tac_late;

enum { TAC_LOCALSGD_LEVELS = 4 };

/* Hierarchical periods: groups of `ranks` neighbours average every `every`
 * attempts (counted from `start`); at an attempt where several levels are due
 * only the outermost runs. The last level has all ranks; it alone has the outer
 * optimizer, fragments and delay: inner ones average their groups' parameters
 * (with a codec: their deltas to the common anchor, which stays). */
typedef struct tac_sync_level {
    int ranks;
    int64_t every;
} tac_sync_level;

typedef struct tac_localsgd_config {
    size_t struct_size;
    tac_sync_schedule schedule;
    int64_t total; /* attempts of the whole run: the last is always
                      synchronised; 0: unknown (tac_localsgd_finish does) */
    tac_outer outer;
    const char *codec; /* of the deltas, as in tacit/codec.h; NULL or "none".
                          A fragment is one parameter to it (topk takes the
                          largest of all its elements); powersgd, which needs
                          shapes, can't be used */
    tac_weighting weighting;

    /* Streaming (arXiv:2501.18512): layers are dealt to fragments; fragment p
     * is synchronised every H attempts: in an interval that begins after
     * attempt b at b + floor(p*H/P), fragment 0 (and those whose offset is 0)
     * at b + H. */
    int64_t fragments; /* P; 0 or 1: the whole model at once */
    int strided;       /* layer l of L belongs to fragment l mod P; 0: to
                          floor(l*P/L), so that they are neighbours */
    int64_t delay;     /* tau: attempts between sending a delta and applying the
                          result, during which training goes on; 0 to `every`.
                          A result is applied at the latest when its fragment is
                          due again */
    double alpha;      /* on arrival: local = alpha*local + (1-alpha)*anchor; 0
                          to 1. The end of the run is always alpha 0 */
    tac_stale stale;

    tac_sync_level levels[TAC_LOCALSGD_LEVELS]; /* inner first */
    int n_levels; /* 0: one level of all ranks; else `schedule` is FIXED and
                     its `every` is not used */

    tac_late late;
    double deadline_s;
    double drop_probability; /* experiments: a rank's delta is left out of the
                                average with this probability, by a function of
                                (seed, synchronisation, fragment, rank) known to
                                all, and the rank goes on from its own
                                parameters (DiLoCo, 3.5). Outermost level only;
                                never at the end */
    uint64_t seed;
} tac_localsgd_config;

#define TAC_LOCALSGD_CONFIG_INIT                                            \
    {                                                                       \
        sizeof(tac_localsgd_config),                                        \
            {TAC_SYNC_FIXED, 1, 0, 0, 0, 0, 2, 0, NULL, NULL}, 0,           \
            {TAC_OUTER_AVERAGE, 1, 0, 0.95, 1e-8, NULL, NULL, 0}, NULL,     \
            TAC_WEIGHT_UNIFORM, 0, 1, 0, 0, TAC_STALE_DELAYED, {{0, 0}}, 0, \
            TAC_LATE_WAIT, 0, 0, 0                                          \
    }

/* Ready-made configurations by the field's names: "local" (average), "slowmo"
 * (lr 1, momentum 0.5), "diloco" (Nesterov, lr 0.7, momentum 0.9), "streaming"
 * (Nesterov, lr 0.4, momentum 0.9, strided fragments of 3 layers, delay 1,
 * alpha 0.5; the caller sets `fragments`), "oneshot" (average at the end only),
 * with H = every. Errors: ARG, with the names. */
TAC_API tac_status tac_localsgd_preset(tac_context *ctx, const char *name,
                                       int64_t every, tac_localsgd_config *out);
/* Everything that can't be, with one message that says what to change. `world`
 * is the number of workers, `layers` of the model (0: unknown). */
TAC_API tac_status tac_localsgd_check(tac_context *ctx,
                                      const tac_localsgd_config *c, int world,
                                      int64_t layers);
/* Fragment of a layer: what training, prediction and simulation agree on. */
TAC_API int64_t tac_localsgd_fragment_of(const tac_localsgd_config *c,
                                         int64_t layer, int64_t layers);
/* Does it need the f32 anchor? (For counting memory.) */
TAC_API int tac_localsgd_has_anchor(const tac_localsgd_config *c);
/* One line of text with everything that is not a default; into buf. */
TAC_API const char *tac_localsgd_describe(const tac_localsgd_config *c,
                                          char *buf, size_t bytes);

TAC_END_DECLS

#endif
