/* amp_test.h: what tests of amp/ share: reading and writing a scaler's state
 * by name, a small network that trains, a log that is kept. */
#ifndef TAC_AMP_TEST_H
#define TAC_AMP_TEST_H

#include <math.h>

#include "engine_test.h"
#include "tacit/autocast.h"
#include "tacit/half.h"
#include "tacit/master.h"
#include "tacit/optim.h"
#include "tacit/scaler.h"
#include "tacit/underflow.h"

/* --- state as a table of name, type and bytes --- */

enum { AMP_ITEMS = 64, AMP_ITEM_BYTES = 4096 };

typedef struct amp_item {
    char name[96];
    tac_dtype dtype;
    size_t bytes;
    unsigned char data[AMP_ITEM_BYTES];
} amp_item;

typedef struct amp_store {
    size_t n;
    amp_item items[AMP_ITEMS];
} amp_store;

static inline amp_item *amp_find(amp_store *f, const char *name)
{
    for (size_t i = 0; i < f->n; ++i)
        if (strcmp(f->items[i].name, name) == 0) return &f->items[i];
    return NULL;
}

static inline tac_status amp_save_item(void *arg, const tac_state_item *item)
{
    amp_store *f = arg;
    const size_t bytes =
        tac_state_item_count(item) * tac_dtype_size(item->dtype);

    if (f->n == AMP_ITEMS || bytes > AMP_ITEM_BYTES ||
        amp_find(f, item->name) != NULL)
        return TAC_ERR_INTERNAL;
    amp_item *x = &f->items[f->n++];
    snprintf(x->name, sizeof x->name, "%s", item->name);
    x->dtype = item->dtype;
    x->bytes = bytes;
    memcpy(x->data, item->data, bytes);
    return TAC_OK;
}

/* As a loader of files: what is missing or of another type is an error. */
static inline tac_status amp_load_item(void *arg, const tac_state_item *item)
{
    const amp_item *x = amp_find(arg, item->name);

    if (x == NULL || x->dtype != item->dtype ||
        x->bytes != tac_state_item_count(item) * tac_dtype_size(item->dtype))
        return TAC_ERR_DATA;
    memcpy(item->data, x->data, x->bytes);
    return TAC_OK;
}

static inline tac_status amp_save(tac_state_walk_fn *walk, void *object,
                                  amp_store *f)
{
    const tac_state_visitor v = {amp_save_item, f, NULL};
    return walk(object, &v);
}

static inline tac_status amp_load(tac_state_walk_fn *walk, void *object,
                                  amp_store *f)
{
    const tac_state_visitor v = {amp_load_item, f, NULL};
    return walk(object, &v);
}

static inline double amp_item_value(const amp_item *x)
{
    int32_t i32;
    int64_t i64;
    float f32;
    double f64 = NAN;

    if (x == NULL) return NAN;
    switch (x->dtype) {
    case TAC_F32: memcpy(&f32, x->data, sizeof f32); return (double)f32;
    case TAC_I32: memcpy(&i32, x->data, sizeof i32); return (double)i32;
    case TAC_I64: memcpy(&i64, x->data, sizeof i64); return (double)i64;
    default: memcpy(&f64, x->data, sizeof f64); return f64;
    }
}

/* One number of a scaler's state, "scaler._growth_tracker"; NAN: none. */
static inline double amp_state(tac_scaler *s, const char *name)
{
    static const amp_store empty;
    amp_store *f = malloc(sizeof *f);
    double v = NAN;

    if (f == NULL) return NAN;
    *f = empty;
    if (amp_save(tac_scaler_walk, s, f) >= 0)
        v = amp_item_value(amp_find(f, name));
    free(f);
    return v;
}

static inline double amp_scale(tac_scaler *s)
{
    double v = NAN;
    return tac_scaler_get_scale(s, &v, NULL) < 0 ? NAN : v;
}

static inline float amp_found(const tac_optimizer *o)
{
    return tac_optimizer_scalars(o)->found_inf;
}

/* --- a log that is kept --- */

typedef struct amp_log {
    int warnings, errors;
    char last[4096];
} amp_log;

static inline void amp_keep_log(void *arg, tac_log_level level,
                                const char *line)
{
    amp_log *l = arg;

    l->warnings += level == TAC_LOG_WARN;
    l->errors += level == TAC_LOG_ERROR;
    snprintf(l->last, sizeof l->last, "%s", line);
}

/* A world whose log is kept, with an empty registry. */
static inline eng_world amp_open(amp_log *log, tac_dtype dtype, int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    eng_world w = {NULL, NULL, NULL, NULL};

    memset(log, 0, sizeof *log);
    config.log = amp_keep_log;
    config.log_arg = log;
    config.threads = threads;
    if (tac_context_create(&config, &w.ctx) < 0 ||
        tac_device_open(w.ctx, "cpu", NULL, &w.dev) < 0 ||
        tac_params_create(w.dev, dtype, &w.params) < 0) {
        fprintf(stderr, "no world to test in: %s\n", log->last);
        exit(1);
    }
    return w;
}

static inline void amp_add(eng_world *w, const char *name, int ndim, size_t a,
                           size_t b, unsigned flags)
{
    const size_t shape[2] = {a, b};

    if (tac_params_add(w->params, name, ndim, shape,
                       (tac_init){TAC_INIT_FAN_IN, ndim == 1 ? 4.0 : 0.0},
                       flags, NULL) < 0)
        exit(1);
}

/* An element of an array of any float type. */
static inline double amp_get(tac_dtype t, const void *p, size_t i)
{
    switch (t) {
    case TAC_F64: return ((const double *)p)[i];
    case TAC_F16: return (double)tac_f16_to_f32(((const uint16_t *)p)[i]);
    case TAC_BF16: return (double)tac_bf16_to_f32(((const uint16_t *)p)[i]);
    default: return (double)((const float *)p)[i];
    }
}

#endif
