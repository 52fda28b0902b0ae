/* device.c: opening a device by name, and what all devices share.
 *
 * "cpu" is built in. Any other name is a plug-in, libtacit_<name>.so, which
 * brings its table of device functions. */
#include "tacit/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_impl.h"
#include "tacit/plugin.h"
#include "tacit/pool.h"

static tac_status load_plugin(tac_context *ctx, const char *name,
                              const tac_device_ops **out)
{
    const tac_plugin *plugin = NULL;
    char file[128];
    const int n = snprintf(file, sizeof file, "libtacit_%s.so", name);
    if (n < 0 || (size_t)n >= sizeof file || strchr(name, '/'))
        return tac_fail(ctx, TAC_ERR_ARG, "\"%s\" is no device name", name);
    TAC_TRY(tac_plugin_load(ctx, file, &plugin));
    if (!plugin->device)
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                        "plug-in %s brings no device; use --device cpu", file);
    *out = plugin->device;
    return TAC_OK;
}

static tac_status find_ops(tac_context *ctx, const char *name,
                           const tac_device_ops **out)
{
    if (strcmp(name, tac__cpu_device.name) != 0)
        return load_plugin(ctx, name, out);
    *out = &tac__cpu_device;
    return TAC_OK;
}

static tac_status fill_table(tac_device *dev, int t, const char *isa)
{
    tac_kernels *table = &dev->tables[t];
    TAC_TRY(dev->ops->kernels(dev->impl, (tac_dtype)t, isa, table));
    tac__step_scalars_apply(table);
    dev->has_table[t] = 1;
    return TAC_OK;
}

/* A dtype without kernels is no failure, but f32 has to be there. */
static tac_status fill_tables(tac_device *dev, const char *isa)
{
    TAC_TRY(fill_table(dev, TAC_F32, isa));
    for (int t = TAC_F64; t < TAC_DTYPE_COUNT; ++t) {
        const tac_status s = fill_table(dev, t, isa);
        if (s < 0 && s != TAC_ERR_UNSUPPORTED) return s;
    }
    dev->cache = dev->ops->kernel_cache(dev->impl);
    return TAC_OK;
}

tac_status tac_device_open(tac_context *ctx, const char *name, const char *isa,
                           tac_device **out)
{
    const tac_device_ops *ops = NULL;
    tac_status s;
    if (!isa) isa = getenv("TACIT_ISA");
    if (isa && !isa[0]) isa = NULL;
    TAC_TRY(find_ops(ctx, name, &ops));
    tac_device *dev = calloc(1, sizeof *dev);
    if (!dev) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a device");
    dev->ctx = ctx;
    dev->ops = ops;
    s = ops->open(ctx, 0, &dev->impl);
    if (s < 0) goto fail_dev;
    s = fill_tables(dev, isa);
    if (s < 0) goto fail_open;
    *out = dev;
    return TAC_OK;

fail_open:
    ops->close(dev->impl);
fail_dev:
    free(dev);
    return s;
}

void tac_device_close(tac_device *dev)
{
    if (!dev) return;
    dev->ops->close(dev->impl);
    free(dev);
}

const char *tac_device_name(const tac_device *dev)
{
    return dev->ops->name;
}

tac_context *tac_device_context(const tac_device *dev)
{
    return dev->ctx;
}

const tac_device_ops *tac_device_ops_of(const tac_device *dev)
{
    return dev->ops;
}

void *tac_device_impl(const tac_device *dev)
{
    return dev->impl;
}

const tac_kernels *tac_device_kernels(const tac_device *dev, tac_dtype dtype)
{
    const int t = (int)dtype;
    if (t < 0 || t >= TAC_DTYPE_COUNT || !dev->has_table[t]) return NULL;
    return &dev->tables[t];
}

size_t tac_device_kernel_bytes(const tac_device *dev)
{
    const tac_device_ops *ops = dev->ops;
    if (ops->struct_size < sizeof *ops || !ops->kernel_bytes) return 0;
    return ops->kernel_bytes(dev->impl);
}

tac_kctx tac_device_kctx(const tac_device *dev, tac_queue *queue)
{
    return (tac_kctx){
        .ctx = dev->ctx,
        .pool = tac_context_pool(dev->ctx),
        .queue = queue,
        .cache = dev->cache,
    };
}

static tac_status allocate(void *arg, size_t bytes, void **out)
{
    const tac_device *dev = arg;
    return dev->ops->alloc(dev->impl, bytes, out);
}

static void release(void *arg, void *p)
{
    const tac_device *dev = arg;
    dev->ops->free(dev->impl, p);
}

tac_allocator tac_device_allocator(tac_device *dev)
{
    return (tac_allocator){.arg = dev, .alloc = allocate, .free = release};
}
