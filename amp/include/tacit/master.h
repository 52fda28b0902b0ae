/* tacit/master.h: 16-bit working weights of f32 master parameters.
 *
 * The masters are the parameters themselves (f32, as the optimizer and
 * checkpoints see them). This object keeps a copy of the whole value arena in
 * f16 or bf16 with the same layout, refreshed after each optimizer step: by the
 * optimizer itself where it can (tac_master_follow; 2 bytes a parameter moved),
 * else by one pass (6). 2 bytes are held. Rounded to nearest, or
 * stochastically with a key of (seed, applied steps, tensor, element), so that
 * a refresh gives the same bits on every rank and after a resume. The working
 * weights are no state: they come from the masters and are not saved.
 *
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_MASTER_H
#define TACIT_MASTER_H

#include "tacit/kernels.h"
#include "tacit/optim.h"
#include "tacit/params.h"

TAC_BEGIN_DECLS

typedef struct tac_master tac_master;

typedef struct tac_master_config {
    size_t struct_size;
    tac_dtype low;  /* F16 or BF16 */
    int stochastic; /* rounding; needs `step` */
    uint64_t seed;
    const uint64_t *step; /* device memory: applied steps, of the optimizer's
                             scalars; NULL only without `stochastic` */
    const tac_allocator *alloc; /* NULL: the device's; copied */
} tac_master_config;

#define TAC_MASTER_CONFIG_INIT                                \
    {                                                         \
        sizeof(tac_master_config), TAC_BF16, 0, 0, NULL, NULL \
    }

/* Working weights of `params` (f32, laid out; borrowed). NULL config means
 * defaults. They are zero before the first refresh. Errors: ARG, STATE before
 * layout, NOMEM, UNSUPPORTED. */
TAC_API tac_status tac_master_create(tac_params *params,
                                     const tac_master_config *config,
                                     tac_master **out);
TAC_API void tac_master_destroy(tac_master *m); /* NULL is legal */
/* Rounds all masters; enqueued. After tac_params_init, after loading, and after
 * each optimizer step of which tac_master_follow was not told. */
TAC_API tac_status tac_master_refresh(tac_master *m, tac_queue *queue);
/* From now on o (of the same parameters) updates them: where it can, which is
 * to nearest and not for Adafactor, its steps write the working weights along
 * with the masters. m must live until o's last step. Errors: ARG for an
 * optimizer of other parameters. */
TAC_API tac_status tac_master_follow(tac_master *m, tac_optimizer *o);
/* After each step of the optimizer followed, skipped or not: brings the working
 * weights up to date; nothing is left to do where the step did it. Enqueued.
 * The bits are those of tac_master_refresh. */
TAC_API tac_status tac_master_after_step(tac_master *m, tac_queue *queue);
/* The copy, in device memory: element i belongs to element i of the value
 * arena. */
TAC_API const void *tac_master_weights(const tac_master *m);
TAC_API tac_dtype tac_master_dtype(const tac_master *m);
TAC_API size_t tac_master_bytes(const tac_master *m);

TAC_END_DECLS

#endif
