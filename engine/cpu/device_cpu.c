/* device_cpu.c: the CPU as a device.
 *
 * Its queues are immediate: a call returns when its work is done, so queues
 * and events have nothing to remember and synchronising costs nothing. Memory
 * of 2 MiB and more is aligned for huge pages and asks for them. */
#include "device_impl.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/half/half.h"
#include "cpu/kernel_sets.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

typedef struct cpu_device {
    tac_context *ctx;
    tac_cpu_cache cache;
} cpu_device;

struct tac_stream_handle {
    char unused;
};

struct tac_event {
    char unused;
};

static tac_status cpu_open(tac_context *ctx, int index, void **impl)
{
    if (index != 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "there is one cpu device, index 0; %d was asked for",
                        index);
    cpu_device *d = calloc(1, sizeof *d);
    if (!d) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a device");
    d->ctx = ctx;
    *impl = d;
    return TAC_OK;
}

static void cpu_close(void *impl)
{
    cpu_device *d = impl;
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->cache_destroy)
            sets[i]->cache_destroy(d->cache.slots[sets[i]->slot]);
    tac__half_destroy(d->cache.slots[TAC_CPU_SLOT_HALF]);
    free(d);
}

static tac_status cpu_alloc(void *impl, size_t bytes, void **out)
{
    const cpu_device *d = impl;
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    if (bytes > SIZE_MAX - align) goto fail;
    const size_t whole =
        bytes > 0 ? (bytes + align - 1) / align * align : align;
    void *p = aligned_alloc(align, whole);
    if (!p) goto fail;
    if (align == HUGE_PAGE) madvise(p, whole, MADV_HUGEPAGE); /* a wish */
    *out = p;
    return TAC_OK;

fail:
    return tac_fail(d->ctx, TAC_ERR_NOMEM,
                    "no memory for %zu bytes on the cpu; lower the batch or "
                    "the model size",
                    bytes);
}

static void cpu_free(void *impl, void *p)
{
    (void)impl;
    free(p);
}

static tac_status new_handle(void *impl, void **out)
{
    const cpu_device *d = impl;
    void *handle = calloc(1, 1);
    if (!handle)
        return tac_fail(d->ctx, TAC_ERR_NOMEM, "no memory for a handle");
    *out = handle;
    return TAC_OK;
}

static tac_status cpu_queue_create(void *impl, tac_queue **out)
{
    void *handle = NULL;
    TAC_TRY(new_handle(impl, &handle));
    *out = handle;
    return TAC_OK;
}

static void cpu_queue_destroy(void *impl, tac_queue *q)
{
    (void)impl;
    free(q);
}

static tac_status cpu_queue_sync(void *impl, tac_queue *q)
{
    (void)impl;
    (void)q;
    return TAC_OK;
}

static tac_status cpu_event_create(void *impl, tac_event **out)
{
    void *handle = NULL;
    TAC_TRY(new_handle(impl, &handle));
    *out = handle;
    return TAC_OK;
}

static void cpu_event_destroy(void *impl, tac_event *e)
{
    (void)impl;
    free(e);
}

static tac_status cpu_event_record(void *impl, tac_event *e, tac_queue *q)
{
    (void)impl;
    (void)e;
    (void)q;
    return TAC_OK;
}

static tac_status cpu_event_wait(void *impl, tac_queue *q, tac_event *e)
{
    return cpu_event_record(impl, e, q);
}

static tac_status cpu_event_query(void *impl, tac_event *e, int *done)
{
    (void)impl;
    (void)e;
    *done = 1;
    return TAC_OK;
}

static tac_status cpu_event_sync(void *impl, tac_event *e)
{
    return cpu_event_record(impl, e, NULL);
}

static tac_status cpu_copy(void *impl, void *dst, const void *src, size_t bytes,
                           tac_copy_kind kind, tac_queue *q)
{
    (void)impl;
    (void)kind;
    (void)q;
    if (bytes > 0) memmove(dst, src, bytes);
    return TAC_OK;
}

static tac_status cpu_fill(void *impl, void *dst, int byte, size_t bytes,
                           tac_queue *q)
{
    (void)impl;
    (void)q;
    if (bytes > 0) memset(dst, byte, bytes);
    return TAC_OK;
}

/* Position of `isa` in the list of sets; the last if isa is NULL. */
static tac_status find_last_set(tac_context *ctx, const char *isa, size_t *out)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char names[128] = "";
    size_t i;
    for (i = 0; sets[i]; ++i) {
        if (isa && strcmp(isa, sets[i]->name) == 0) break;
        strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, sets[i]->name, sizeof names - strlen(names) - 1);
    }
    if (isa && !sets[i])
        return tac_fail(ctx, TAC_ERR_ARG,
                        "unknown cpu kernels \"%s\"; choose one of %s", isa,
                        names);
    *out = isa ? i : i - 1;
    return TAC_OK;
}

static tac_status make_cache(cpu_device *d, const tac_kernel_set *set)
{
    if (!set->cache_create || d->cache.slots[set->slot]) return TAC_OK;
    return set->cache_create(d->ctx, &d->cache.slots[set->slot]);
}

/* A set that has nothing for the dtype is not named. */
static tac_status apply_set(cpu_device *d, const tac_kernel_set *set,
                            tac_kernels *table)
{
    const tac_kernels before = *table;
    char names[2 * sizeof table->names];
    TAC_TRY(make_cache(d, set));
    set->apply(table);
    if (memcmp(&before, table, sizeof before) == 0) return TAC_OK;
    snprintf(names, sizeof names, "%s%s%s", table->names,
             table->names[0] ? "+" : "", set->name);
    memcpy(table->names, names, sizeof table->names - 1);
    return TAC_OK;
}

/* Applies the sets up to the one that `isa` names, which has to be available.
 */
static tac_status apply_sets(cpu_device *d, const char *isa, tac_kernels *table)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    size_t last = 0;
    TAC_TRY(find_last_set(d->ctx, isa, &last));
    for (size_t i = 0; i <= last; ++i) {
        if (sets[i]->available(why, sizeof why))
            TAC_TRY(apply_set(d, sets[i], table));
        else if (isa && i == last)
            return tac_fail(d->ctx, TAC_ERR_UNSUPPORTED,
                            "cpu kernels \"%s\" can't be used: %s; choose "
                            "others, or none for the best that there are",
                            isa, why);
    }
    return TAC_OK;
}

/* The 16-bit kernels over the f32 table of the same sets. */
static tac_status apply_half(cpu_device *d, const char *isa, tac_kernels *table)
{
    tac_kernels base = {.struct_size = sizeof base, .dtype = TAC_F32};
    char names[2 * sizeof table->names];
    void **state = &d->cache.slots[TAC_CPU_SLOT_HALF];
    TAC_TRY(apply_sets(d, isa, &base));
    if (!*state) TAC_TRY(tac__half_create(d->ctx, &base, state));
    tac__half_apply(table);
    snprintf(names, sizeof names, "half(%s)", base.names);
    memcpy(table->names, names, sizeof table->names - 1);
    return TAC_OK;
}

static tac_status cpu_kernels(void *impl, tac_dtype dtype, const char *isa,
                              tac_kernels *table)
{
    cpu_device *d = impl;
    tac_kernels t = {.struct_size = sizeof t, .dtype = dtype};
    if (!tac_dtype_is_float(dtype)) return TAC_ERR_UNSUPPORTED;
    if (dtype == TAC_F16 || dtype == TAC_BF16) TAC_TRY(apply_half(d, isa, &t));
    TAC_TRY(apply_sets(d, isa, &t));
    *table = t;
    return TAC_OK;
}

static void *cpu_kernel_cache(void *impl)
{
    cpu_device *d = impl;
    return &d->cache;
}

static size_t cpu_kernel_bytes(const void *impl)
{
    const cpu_device *d = impl;
    return tac__half_bytes(d->cache.slots[TAC_CPU_SLOT_HALF]) +
           tac__cache_bytes(&d->cache);
}

const tac_device_ops tac__cpu_device = {
    .struct_size = sizeof(tac_device_ops),
    .name = "cpu",
    .doc = "the processor's own cores and memory",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .queue_create = cpu_queue_create,
    .queue_destroy = cpu_queue_destroy,
    .queue_sync = cpu_queue_sync,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_query = cpu_event_query,
    .event_sync = cpu_event_sync,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .kernels = cpu_kernels,
    .kernel_cache = cpu_kernel_cache,
    .kernel_bytes = cpu_kernel_bytes,
};
