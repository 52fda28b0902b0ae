/* tacit/scaler.h: dynamic loss scaling.
 *
 * Gradients of small losses vanish in f16, whose smallest number is 6e-8. So
 * the loss is multiplied by a scale before backward and gradients are divided
 * by it before the update. The scale is found by trying: it doubles after
 * growth_interval steps without inf or NaN and halves at once, skipping the
 * step, when there was one (Micikevicius et al., "Mixed Precision Training",
 * 2018; the algorithm and defaults are torch.amp.GradScaler's).
 *
 *     tac_tape_backward_scaled(tape, loss, 1/n, tac_scaler_scale(scaler));
 *     tac_scaler_unscale(scaler, opt, q);  or  tac_scaler_check: cheaper
 *     tac_optimizer_clip(opt, 1.0, q);        (optional)
 *     tac_scaler_step(scaler, opt, q);
 *     tac_scaler_update(scaler, q);
 *
 * An optimizer is READY, then UNSCALED, then STEPPED, and READY again after
 * update; a call out of order is an error of the caller, named, and changes
 * nothing. Everything else is enqueued: the host reads neither found_inf nor
 * the scale in a step. It learns of skips from tac_scaler_poll, which also
 * gives up after max_skips in a row.
 *
 * Which ranks must agree: where gradients are averaged before the check (plain
 * data parallelism) inf and NaN reach all ranks by themselves. Where ranks hold
 * different gradients but must step together, set an agreement
 * (tac_scaler_set_agree).
 *
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_SCALER_H
#define TACIT_SCALER_H

#include "tacit/optim.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

typedef struct tac_scaler tac_scaler;

typedef struct tac_scaler_config {
    size_t struct_size;
    int enabled; /* 0: every call passes through, the scale is 1 */
    double init_scale;
    double growth_factor;    /* > 1 */
    double backoff_factor;   /* in (0,1) */
    int64_t growth_interval; /* steps; 0: a static scale */
    double min_scale;        /* > 0: a scale of 0 would lose everything */
    double max_scale;        /* INFINITY: grows as long as it is finite */
    int64_t max_skips;       /* in a row, then poll is DIVERGED; 0: never */
} tac_scaler_config;

/* 65536, 2, 0.5, 2000, scale in [1, 2^24], 100 skips. */
#define TAC_SCALER_CONFIG_INIT                                              \
    {                                                                       \
        sizeof(tac_scaler_config), 1, 65536, 2, 0.5, 2000, 1, 16777216, 100 \
    }

/* NULL config means defaults. Errors: ARG for factors or scales out of range,
 * NOMEM, UNSUPPORTED if the device has no kernels for it. */
TAC_API tac_status tac_scaler_create(tac_device *dev,
                                     const tac_scaler_config *config,
                                     tac_scaler **out);
TAC_API void tac_scaler_destroy(tac_scaler *s); /* NULL is legal */

/* The scale: one f32 in device memory, for tac_tape_backward_scaled. Never
 * NULL; 1 if disabled. */
TAC_API const float *tac_scaler_scale(const tac_scaler *s);
/* Waits for the queue and reads the scale: for reports and tests. */
TAC_API tac_status tac_scaler_get_scale(tac_scaler *s, double *out,
                                        tac_queue *queue);

/* Called after a check, with the flag of this rank in device memory: must leave
 * the same flag, nonzero if any rank's was, on all ranks that must agree. NULL
 * removes it. */
typedef tac_status tac_scaler_agree_fn(void *arg, float *found_inf,
                                       tac_queue *queue);
TAC_API void tac_scaler_set_agree(tac_scaler *s, tac_scaler_agree_fn *fn,
                                  void *arg);

/* Divides the optimizer's gradients by the scale in place. For loops that look
 * at gradients. Parameters of 16 bits are fine: their gradients are f32 all the
 * same. What was known of the gradients (a norm, found_inf) is forgotten first.
 * Errors: STATE, PyTorch's cases: "unscale_() has already been called on this
 * optimizer since the last update()", "unscale_() is being called after
 * step()"; ARG for more than 8 optimizers in one iteration or one on another
 * device. */
TAC_API tac_status tac_scaler_unscale(tac_scaler *s, tac_optimizer *o,
                                      tac_queue *queue);
/* The same without writing gradients: they stay scaled in the arena, and
 * clipping and the update divide. Saves 8 bytes a parameter. */
TAC_API tac_status tac_scaler_check(tac_scaler *s, tac_optimizer *o,
                                    tac_queue *queue);
/* Steps unless inf or NaN was found (checks first if nobody has). A group
 * without a trained parameter does nothing. Errors: STATE "step() has already
 * been called since the last update()". */
TAC_API tac_status tac_scaler_step(tac_scaler *s, tac_optimizer *o,
                                   tac_queue *queue);
/* Once an iteration, after all optimizers have stepped: backs off if found_inf
 * of any of them is set, else counts and perhaps grows; makes all optimizers
 * READY, their grad_scale 1. Errors: STATE "No inf checks were recorded prior
 * to update()" if none was stepped or checked. */
TAC_API tac_status tac_scaler_update(tac_scaler *s, tac_queue *queue);
/* The same, but the scale becomes new_scale, clamped to [min_scale,
 * max_scale]; legal without a check before it. Errors: ARG if it is not above 0
 * and finite. */
TAC_API tac_status tac_scaler_set_scale(tac_scaler *s, double new_scale,
                                        tac_queue *queue);

typedef struct tac_scaler_report {
    double scale;
    uint64_t updates, skipped, consecutive;
    uint64_t first_bad; /* in the latest update: element of the gradient arena
                           (of the first optimizer that found one itself);
                           UINT64_MAX: none */
} tac_scaler_report;

/* What is known on the host: the state after the update before last on an
 * asynchronous device, the present one on the CPU. Waits for nothing. Errors:
 * DIVERGED after max_skips in a row, naming the scale, the step and the first
 * tensor and element that were not finite (the optimizers' parameters must
 * still be there); *out is written also then. */
TAC_API tac_status tac_scaler_poll(tac_scaler *s, tac_scaler_report *out);

/* torch's names: "scaler.scale" f32, "scaler.growth_factor" and
 * "scaler.backoff_factor" f64, "scaler.growth_interval" i64,
 * "scaler._growth_tracker" i32, and "scaler.updates" and "scaler.skipped" i64,
 * "scaler.consecutive" i32. What a visitor writes is used as it is; a loaded
 * scale is not clamped. Nothing if disabled, so a loader that finds none of
 * these in a file fails for an enabled scaler. Waits for the default queue.
 * Errors: the visitor's; DATA for values that no scaler can have; the state is
 * then what it was. A tac_state_walk_fn. */
TAC_API tac_status tac_scaler_walk(void *scaler, const tac_state_visitor *v);

TAC_END_DECLS

#endif
