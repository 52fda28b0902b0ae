/* model.c: the model object: finding a family by name and passing calls on. */
#include "model_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Edits (insert, delete, replace) from a[0..n) to b; only for short names. */
static size_t edit_distance(const char *a, size_t n, const char *b)
{
    enum { MAX = 32 };
    size_t row[MAX + 1];
    const size_t m = strlen(b);
    if (n > MAX || m > MAX) return MAX;
    for (size_t j = 0; j <= m; ++j) row[j] = j;
    for (size_t i = 1; i <= n; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; ++j) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

static tac_status unknown_model(tac_context *ctx, const char *spec,
                                size_t length)
{
    const tac_model_family *nearest = tac_model_families();
    char known[512] = "";
    for (const tac_model_family *f = tac_model_families(); f->name; ++f) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
                 f->form);
        if (edit_distance(spec, length, f->name) <
            edit_distance(spec, length, nearest->name))
            nearest = f;
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "unknown model '%s': did you mean %s? known are %s", spec,
                    nearest->name, known);
}

static tac_status find_ops(tac_model *m, const char **arg)
{
    const char *colon = strchr(m->spec, ':');
    const size_t length = colon ? (size_t)(colon - m->spec) : strlen(m->spec);
    const tac_model_family *f = tac_model_families();
    for (size_t i = 0; f[i].name; ++i) {
        if (strlen(f[i].name) != length || memcmp(f[i].name, m->spec, length))
            continue;
        m->ops = tac__model_ops_at(i);
        *arg = colon ? colon + 1 : NULL;
        return TAC_OK;
    }
    return unknown_model(m->ctx, m->spec, length);
}

tac_status tac__model_check_config(tac_context *ctx, const tac_model_config *c)
{
    const size_t shape[] = {c->h, c->w, c->c, c->classes};
    size_t product = 0;
    if (!tac_shape_count(4, shape, &product) || product == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "model: samples of %zux%zux%zu in %zu classes: each "
                        "must be at least 1",
                        c->h, c->w, c->c, c->classes);
    if (!(c->dropout >= 0 && c->dropout < 1))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "model: dropout %g must be at least 0 and below 1",
                        c->dropout);
    return TAC_OK;
}

tac_status tac_model_create(tac_params *params, const char *spec,
                            const tac_model_config *config, tac_model **out)
{
    static const tac_model_config defaults = TAC_MODEL_CONFIG_INIT;
    tac_context *ctx =
        params ? tac_device_context(tac_params_device(params)) : NULL;
    if (!params || !spec || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_model_create: params, spec and out are needed");
    if (!config) config = &defaults;
    TAC_TRY(tac__model_check_config(ctx, config));
    tac_model *m = calloc(1, sizeof(*m));
    if (m) m->spec = strdup(spec);
    if (!m || !m->spec) {
        free(m);
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a model");
    }
    m->ctx = ctx;
    m->params = params;
    m->config = *config;
    const char *arg = NULL;
    tac_status status = find_ops(m, &arg);
    if (status >= 0) status = m->ops->build(m, arg);
    if (status < 0) {
        tac_model_destroy(m);
        return status;
    }
    *out = m;
    return TAC_OK;
}

void tac_model_destroy(tac_model *m)
{
    if (!m) return;
    if (m->impl && m->ops->destroy) m->ops->destroy(m->impl);
    free(m->spec);
    free(m);
}

/* Models that see an image as so many features. */
static int takes_flat(const tac_model *m)
{
    return m->ops == &tac__model_mlp || m->ops == &tac__model_linear ||
           m->ops == &m->own;
}

/* x must be (n,H,W,C), or flat with as many features. */
static tac_status check_input(const tac_model *m, const tac_tensor *x)
{
    const tac_model_config *c = &m->config;
    if (x->ndim == 4 && x->shape[1] == c->h && x->shape[2] == c->w &&
        x->shape[3] == c->c)
        return TAC_OK;
    if (x->ndim == 2 && x->shape[1] == c->h * c->w * c->c && takes_flat(m))
        return TAC_OK;
    char shape[96], flat[32] = "";
    if (takes_flat(m))
        snprintf(flat, sizeof(flat), " or (n,%zu)", c->h * c->w * c->c);
    return tac_fail(m->ctx, TAC_ERR_ARG,
                    "model %s: input is %s, expected (n,%zu,%zu,%zu)%s",
                    m->spec, tac_tensor_shape_text(x, shape, sizeof(shape)),
                    c->h, c->w, c->c, flat);
}

static tac_status check_logits(const tac_model *m, const tac_tensor *x,
                               const tac_tensor *y)
{
    char shape[96];

    if (y && y->ndim == 2 && y->shape[0] == x->shape[0] &&
        y->shape[1] == m->config.classes)
        return TAC_OK;
    return tac_fail(m->ctx, TAC_ERR_ARG,
                    "model %s: its logits are %s, expected (%zu,%zu): one for "
                    "each sample and class",
                    m->spec,
                    y ? tac_tensor_shape_text(y, shape, sizeof(shape))
                      : "not there",
                    x->shape[0], m->config.classes);
}

tac_status tac_model_forward(const tac_model *m, tac_tape *tape, tac_tensor *x,
                             tac_tensor **logits)
{
    TAC_TRY(check_input(m, x));
    *logits = NULL;
    TAC_TRY(m->ops->forward(m->impl, tape, x, logits));
    return m->ops == &m->own ? check_logits(m, x, *logits) : TAC_OK;
}

const char *tac_model_spec(const tac_model *m)
{
    return m->spec;
}

const tac_model_config *tac_model_config_of(const tac_model *m)
{
    return &m->config;
}

uint64_t tac_model_flop_forward(const tac_model *m)
{
    return m->ops == &m->own ? m->flop_forward : 2 * m->macs;
}

uint64_t tac_model_flop_per_sample(const tac_model *m)
{
    return m->ops == &m->own ? m->flop_step : 6 * m->macs - 2 * m->first_macs;
}
