/* synth.c: made-up images of which every pixel is a pure function of (seed,
 * sample), so that nothing is stored and every rank count sees the same.
 *
 * A class has a prototype: a coarse grid of values in [-1, 1], each spread over
 * a patch, so that both a dense layer and a convolution can learn it. A sample
 * is its class's prototype plus uniform noise of 256 levels: all sums are exact
 * in f32, so the bits don't depend on the machine. Cost: one Philox block for
 * 16 pixels, about 1 us for 28x28. */
#include <limits.h>
#include <stdlib.h>

#include "families.h"
#include "tacit/rng.h"

enum { GRID = 7, DEFAULT_COUNT = 12000, LEAST_COUNT = 12 };

typedef struct synth {
    tac_synth_config config;
    size_t sample;
    float prototype[]; /* (classes,H,W,C) */
} synth;

/* Noise bytes of one sample: block b gives pixels 16b .. 16b+15. */
static void add_noise(const synth *s, uint64_t id, float *x)
{
    const tac_rng_key key = {s->config.seed, TAC_STREAM_SYNTH, id + 1};
    const float unit = s->config.noise / 128;
    for (size_t i = 0; i < s->sample; i += 16) {
        uint32_t word[4];
        tac_rng_block(&key, i / 16, word);
        for (size_t j = 0; j < 16 && i + j < s->sample; ++j) {
            const int level = (int)(word[j / 4] >> (8 * (j % 4)) & 255u);
            x[i + j] += (float)(level - 128) * unit;
        }
    }
}

static tac_status synth_gather(void *impl, tac_context *ctx, size_t n,
                               const uint32_t *index, float *x, int32_t *y)
{
    const synth *s = impl;
    (void)ctx;
    for (size_t i = 0; i < n; ++i, x += s->sample) {
        const uint64_t id = s->config.first + (uint64_t)index[i];
        const size_t class = id % s->config.classes;
        const float *from = s->prototype + class * s->sample;
        for (size_t j = 0; j < s->sample; ++j) x[j] = from[j];
        add_noise(s, id, x);
        y[i] = (int32_t) class;
    }
    return TAC_OK;
}

static tac_status synth_labels(void *impl, tac_context *ctx, size_t n,
                               const uint32_t *index, int32_t *y)
{
    const synth *s = impl;
    (void)ctx;
    for (size_t i = 0; i < n; ++i)
        y[i] = (int32_t)((s->config.first + (uint64_t)index[i]) %
                         s->config.classes);
    return TAC_OK;
}

static const tac_dataset_ops synth_ops = {
    sizeof(tac_dataset_ops), "synth", synth_gather, free, NULL, synth_labels};

/* Cells of all classes and channels come from one sequence, step 0. */
static void make_prototypes(synth *s)
{
    const tac_synth_config *g = &s->config;
    const tac_rng_key key = {g->seed, TAC_STREAM_SYNTH, 0};
    float *p = s->prototype;
    for (size_t k = 0; k < g->classes; ++k)
        for (size_t i = 0; i < g->h; ++i)
            for (size_t j = 0; j < g->w; ++j)
                for (size_t l = 0; l < g->c; ++l) {
                    const size_t row = i * GRID / g->h, col = j * GRID / g->w;
                    const uint64_t cell =
                        ((k * GRID + row) * GRID + col) * g->c + l;
                    const uint32_t u = tac_rng_u32(&key, cell) >> 24;
                    *p++ = ((float)u - 127.5f) / 128;
                }
}

static tac_status check_config(tac_context *ctx, const tac_synth_config *g,
                               size_t *floats)
{
    size_t n = g->h;
    if (__builtin_mul_overflow(n, g->w, &n) ||
        __builtin_mul_overflow(n, g->c, &n) ||
        __builtin_mul_overflow(n, g->classes, &n) || n == 0 ||
        n > SIZE_MAX / 64 || g->classes > INT32_MAX || !(g->noise >= 0))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "data synth: %zu classes of %zux%zux%zu with noise %g: "
                        "all must be at least 1 (noise 0)",
                        g->classes, g->h, g->w, g->c, g->noise);
    *floats = n;
    return TAC_OK;
}

tac_status tac_dataset_synth(tac_context *ctx, const tac_synth_config *config,
                             tac_dataset **out)
{
    if (!config || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_dataset_synth: config and out are needed");
    size_t floats = 0;
    TAC_TRY(check_config(ctx, config, &floats));
    synth *s = malloc(sizeof(*s) + floats * sizeof(float));
    if (!s)
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "no memory for %zu synth prototypes", config->classes);
    s->config = *config;
    s->sample = floats / config->classes;
    make_prototypes(s);
    const tac_dataset_info info = {config->count, config->h, config->w,
                                   config->c, config->classes};
    const tac_status status =
        tac_dataset_create(ctx, &synth_ops, s, &info, out);
    if (status < 0) free(s);
    return status;
}

static tac_status parse_count(tac_context *ctx, const char *arg, size_t *count)
{
    *count = DEFAULT_COUNT;
    if (!arg) return TAC_OK;
    char *end = NULL;
    const unsigned long n = strtoul(arg, &end, 10);
    if (*arg < '0' || *arg > '9' || *end || n < LEAST_COUNT || n > INT_MAX)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "data synth:%s: expected a number of samples from %d "
                        "(fewer leave none for validation) to %d, as in "
                        "synth:12000",
                        arg, LEAST_COUNT, INT_MAX);
    *count = n;
    return TAC_OK;
}

tac_status tac__data_open_synth(tac_context *ctx, const char *arg,
                                const tac_data_config *config, tac_data *out)
{
    tac_synth_config g = TAC_SYNTH_CONFIG_INIT;
    g.seed = config->seed;
    TAC_TRY(parse_count(ctx, arg, &g.count));
    tac_dataset *all = NULL, *test = NULL;
    TAC_TRY(tac_dataset_synth(ctx, &g, &all));
    g.first = g.count;
    g.count /= 6; /* as 10,000 are of 60,000 */
    const tac_status status = tac_dataset_synth(ctx, &g, &test);
    if (status < 0) {
        tac_dataset_destroy(all);
        return status;
    }
    return tac__data_assemble(ctx, all, test, out);
}
