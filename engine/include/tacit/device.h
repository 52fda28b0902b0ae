/* tacit/device.h: the device contract: memory, streams, events, kernels.
 *
 * The CPU is one device; a GPU is another, brought by a plug-in. Work on a
 * stream happens in the order of its submission and, on a GPU, behind the
 * caller's back: nothing in a training step may read a device value on the
 * host. The CPU's streams are immediate: a call returns when its work is done,
 * and an event is complete once recorded. Code written against this contract
 * runs on both.
 *
 * Thread-safety: one thread at a time a device object (one rank, one device
 * object). */
#ifndef TACIT_DEVICE_H
#define TACIT_DEVICE_H

#include <stddef.h>

#include "tacit/context.h"
#include "tacit/dtype.h"

TAC_BEGIN_DECLS

typedef struct tac_device tac_device;
typedef struct tac_stream_handle tac_queue; /* an in-order stream of work */
typedef struct tac_event tac_event;
struct tac_kernels;

typedef enum tac_copy_kind {
    TAC_COPY_HOST_TO_DEVICE,
    TAC_COPY_DEVICE_TO_HOST,
    TAC_COPY_DEVICE_TO_DEVICE
} tac_copy_kind;

/* Where arenas get their memory from, so that the caller can hand in memory
 * that a communicator can read in place. `alloc` returns at least 64-byte
 * aligned memory, which need not be cleared. */
typedef struct tac_allocator {
    void *arg;
    tac_status (*alloc)(void *arg, size_t bytes, void **out);
    void (*free)(void *arg, void *p);
} tac_allocator;

/* What a kind of device provides. All slots are filled; what a device can't do
 * returns TAC_ERR_UNSUPPORTED. */
typedef struct tac_device_ops {
    size_t struct_size;
    const char *name; /* "cpu" */
    const char *doc;

    /* Creates and destroys the private state of a device object. */
    tac_status (*open)(tac_context *ctx, int index, void **impl);
    void (*close)(void *impl);

    /* Memory, 64-byte aligned, not cleared. */
    tac_status (*alloc)(void *impl, size_t bytes, void **out);
    void (*free)(void *impl, void *p);

    /* Streams of work. A NULL queue is the device's default queue. */
    tac_status (*queue_create)(void *impl, tac_queue **out);
    void (*queue_destroy)(void *impl, tac_queue *q);
    tac_status (*queue_sync)(void *impl, tac_queue *q);

    /* Events: recorded into a queue; another queue may wait for one. */
    tac_status (*event_create)(void *impl, tac_event **out);
    void (*event_destroy)(void *impl, tac_event *e);
    tac_status (*event_record)(void *impl, tac_event *e, tac_queue *q);
    tac_status (*event_wait)(void *impl, tac_queue *q, tac_event *e);
    tac_status (*event_query)(void *impl, tac_event *e, int *done);
    tac_status (*event_sync)(void *impl, tac_event *e);

    /* Data. Copies need not be complete before the queue is synchronised. */
    tac_status (*copy)(void *impl, void *dst, const void *src, size_t bytes,
                       tac_copy_kind kind, tac_queue *q);
    tac_status (*fill)(void *impl, void *dst, int byte, size_t bytes,
                       tac_queue *q);

    /* Fills the kernel table of one dtype with the best that the machine
     * offers; UNSUPPORTED if the device has no kernels for it. */
    tac_status (*kernels)(void *impl, tac_dtype dtype, const char *isa,
                          struct tac_kernels *table);
    /* What the device's kernels get as kc->cache; owned by impl, valid after
     * `kernels`. May return NULL. */
    void *(*kernel_cache)(void *impl);
    /* Bytes of scratch that kernels hold between calls; NULL: not known. */
    size_t (*kernel_bytes)(const void *impl);
} tac_device_ops;

/* Opens a device by name: "cpu", or one from a plug-in. `isa` forces the CPU's
 * kernels: "ref", "avx2", "avx512", "onednn" (each includes those before it
 * that the machine has); NULL means the TACIT_ISA variable, else the best.
 * Errors: UNSUPPORTED with what is missing; ARG for an unknown isa. */
TAC_API tac_status tac_device_open(tac_context *ctx, const char *name,
                                   const char *isa, tac_device **out);
TAC_API void tac_device_close(tac_device *dev); /* NULL is legal */

TAC_API const char *tac_device_name(const tac_device *dev);
TAC_API tac_context *tac_device_context(const tac_device *dev);
TAC_API const tac_device_ops *tac_device_ops_of(const tac_device *dev);
TAC_API void *tac_device_impl(const tac_device *dev);
/* The table for a dtype; NULL if the device has none. Owned by the device. */
TAC_API const struct tac_kernels *tac_device_kernels(const tac_device *dev,
                                                     tac_dtype dtype);
/* Bytes of scratch that the device's kernels hold by now, for reports: widened
 * operands, reordered weights, partial sums. It only grows. */
TAC_API size_t tac_device_kernel_bytes(const tac_device *dev);
/* Memory from the device as an allocator table; valid while it is open. */
TAC_API tac_allocator tac_device_allocator(tac_device *dev);

TAC_END_DECLS

#endif
