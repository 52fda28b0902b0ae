/* engine_test.h: a small world for tests of the engine: a context that keeps
 * quiet, a device with chosen kernels, parameters filled by formula. */
#ifndef TAC_ENGINE_TEST_H
#define TAC_ENGINE_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/arena.h"
#include "tacit/context.h"
#include "tacit/device.h"
#include "tacit/half.h"
#include "tacit/ops.h"
#include "tacit/params.h"
#include "tacit/rng.h"
#include "tacit/tape.h"

static inline void eng_no_log(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

typedef struct eng_world {
    tac_context *ctx;
    tac_device *dev;
    tac_params *params;
    tac_tape *tape;
} eng_world;

/* Device and empty registry; the tape comes after the model. Ends the program
 * on failure: nothing can be tested then. */
static inline eng_world eng_open(const char *isa, tac_dtype dtype, int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    eng_world w = {NULL, NULL, NULL, NULL};

    config.log = eng_no_log;
    config.threads = threads;
    if (tac_context_create(&config, &w.ctx) < 0 ||
        tac_device_open(w.ctx, "cpu", isa, &w.dev) < 0 ||
        tac_params_create(w.dev, dtype, &w.params) < 0) {
        fprintf(stderr, "no world to test in\n");
        exit(1);
    }
    return w;
}

static inline void eng_close(eng_world *w)
{
    tac_tape_destroy(w->tape);
    tac_params_destroy(w->params);
    tac_device_close(w->dev);
    tac_context_destroy(w->ctx);
}

/* The text of the latest failure. */
static inline const char *eng_error(const eng_world *w, char *buf, size_t n)
{
    (void)tac_context_error(w->ctx, buf, n);
    return buf;
}

/* A number in [-1, 1] that is never nearer to 0 than 0.02. */
static inline double eng_value(uint64_t seed, uint64_t id, uint64_t i)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, id};
    const double u = 2.0 * tac_rng_uniform(&key, i) - 1.0;
    return u >= 0 ? 0.02 + 0.98 * u : -0.02 + 0.98 * u;
}

static inline double eng_get(tac_dtype t, const void *p, size_t i)
{
    switch (t) {
    case TAC_F64: return ((const double *)p)[i];
    case TAC_F16: return (double)tac_f16_to_f32(((const uint16_t *)p)[i]);
    case TAC_BF16: return (double)tac_bf16_to_f32(((const uint16_t *)p)[i]);
    default: return (double)((const float *)p)[i];
    }
}

static inline void eng_set(tac_dtype t, void *p, size_t i, double v)
{
    switch (t) {
    case TAC_F64: ((double *)p)[i] = v; break;
    case TAC_F16: ((uint16_t *)p)[i] = tac_f32_to_f16((float)v); break;
    case TAC_BF16: ((uint16_t *)p)[i] = tac_f32_to_bf16((float)v); break;
    default: ((float *)p)[i] = (float)v;
    }
}

static inline void eng_fill(tac_dtype t, void *p, size_t n, uint64_t seed,
                            uint64_t id)
{
    for (size_t i = 0; i < n; ++i) eng_set(t, p, i, eng_value(seed, id, i));
}

/* A malloc that counts, and hands out poisoned memory. */
typedef struct eng_counter {
    size_t allocs, frees, bytes;
} eng_counter;

static inline tac_status eng_count_alloc(void *arg, size_t bytes, void **out)
{
    eng_counter *c = arg;

    if (posix_memalign(out, 64, bytes > 0 ? bytes : 64) != 0)
        return TAC_ERR_NOMEM;
    memset(*out, 0xff, bytes); /* not-a-numbers in all float types */
    c->allocs += 1;
    c->bytes += bytes;
    return TAC_OK;
}

static inline void eng_count_free(void *arg, void *p)
{
    ((eng_counter *)arg)->frees += p != NULL;
    free(p);
}

static inline tac_allocator eng_allocator(eng_counter *c)
{
    return (tac_allocator){c, eng_count_alloc, eng_count_free};
}

#endif
