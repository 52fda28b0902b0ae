/* The device object and the one device that is built in. */
#ifndef TAC_ENGINE_DEVICE_IMPL_H
#define TAC_ENGINE_DEVICE_IMPL_H

#include "tacit/device.h"
#include "tacit/kernels.h"

/* engine/cpu provides it. */
extern const tac_device_ops tac__cpu_device;

struct tac_device {
    tac_context *ctx;
    const tac_device_ops *ops;
    void *impl;
    void *cache;
    tac_kernels tables[TAC_DTYPE_COUNT];
    int has_table[TAC_DTYPE_COUNT];
};

/* Fills the entries for a step's scalars that a table left NULL with versions
 * for memory that the host can reach. step_scalars.c. */
void tac__step_scalars_apply(tac_kernels *table);

#endif
