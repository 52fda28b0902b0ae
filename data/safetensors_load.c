/* safetensors_load.c: a file's tensors into an object's state.
 *
 * Two walks: the first compares names, types and shapes of everything, the
 * second copies. So an object is either loaded or untouched. */
#include "safetensors_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/half.h"

typedef struct load {
    const tac_safetensors *f;
    unsigned flags;
    unsigned char *wanted; /* by number of the file's items */
    size_t missing;
    char first_missing[256];
} load;

/* ---- comparing ----------------------------------------------------------- */

static const char *shape_text(int ndim, const size_t *shape, char out[256])
{
    size_t n = 0;

    out[n++] = '(';
    for (int d = 0; d < ndim; d++)
        n +=
            (size_t)snprintf(out + n, 256 - n, "%s%zu", d ? "," : "", shape[d]);
    snprintf(out + n, 256 - n, ")");
    return out;
}

static int same_shape(const tac_safetensors_item *have,
                      const tac_state_item *want)
{
    if (have->ndim != want->ndim) return 0;
    for (int d = 0; d < want->ndim; d++)
        if (have->shape[d] != want->shape[d]) return 0;
    return 1;
}

static int type_fits(const load *l, const tac_safetensors_item *have,
                     const tac_state_item *want)
{
    if (have->dtype == want->dtype) return 1;
    return (l->flags & TAC_LOAD_CONVERT) && tac_dtype_is_float(have->dtype) &&
           tac_dtype_is_float(want->dtype);
}

static tac_status compare(void *arg, const tac_state_item *want)
{
    load *l = arg;
    const tac_safetensors_item *have = tac_safetensors_find(l->f, want->name);
    char a[256], b[256];

    if (!have) {
        if (l->missing++ == 0)
            snprintf(l->first_missing, sizeof l->first_missing, "%s",
                     want->name);
        return TAC_OK;
    }
    l->wanted[have - l->f->items] = 1;
    if (!type_fits(l, have, want))
        return tac_fail(l->f->ctx, TAC_ERR_DATA,
                        "%s: tensor '%.200s' is %s, but %s is needed, and %s; "
                        "use the settings that the file was written with",
                        l->f->path, want->name, tac_dtype_name(have->dtype),
                        tac_dtype_name(want->dtype),
                        l->flags & TAC_LOAD_CONVERT
                            ? "only floating-point types are converted"
                            : "a state is never converted");
    if (!same_shape(have, want))
        return tac_fail(l->f->ctx, TAC_ERR_DATA,
                        "%s: tensor '%.200s' has shape %s, but %s is needed; "
                        "use the model that the file was written with",
                        l->f->path, want->name,
                        shape_text(have->ndim, have->shape, a),
                        shape_text(want->ndim, want->shape, b));
    return TAC_OK;
}

static tac_status check_complete(const load *l)
{
    if (l->flags & TAC_LOAD_PARTIAL) return TAC_OK;
    if (l->missing)
        return tac_fail(l->f->ctx, TAC_ERR_DATA,
                        "%s lacks tensor '%.200s'%s; use the settings that the "
                        "file was written with",
                        l->f->path, l->first_missing,
                        l->missing > 1 ? " and others" : "");
    for (size_t i = 0; i < l->f->count; i++)
        if (!l->wanted[i])
            return tac_fail(l->f->ctx, TAC_ERR_DATA,
                            "%s has tensor '%.200s', which nothing here has a "
                            "use for; use the settings that the file was "
                            "written with",
                            l->f->path, l->f->items[i].name);
    return TAC_OK;
}

/* ---- copying ------------------------------------------------------------- */

enum { CHUNK = 1024 };

/* A double to the nearest f32 of odd last bit, if it isn't one: rounded once
 * more, to 16 bits, that gives the nearest of the double itself. */
static float round_to_odd(double x)
{
    float f = (float)x;
    uint32_t bits;

    if ((double)f == x || x != x) return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabsf(f) > fabs(x)) bits--; /* towards zero; inf to the largest */
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* n <= CHUNK values at p (of any alignment) as f32. */
static void to_f32(tac_dtype from, const unsigned char *p, size_t n,
                   int narrower, float *out)
{
    uint16_t half[CHUNK];
    double wide[CHUNK];

    switch (from) {
    case TAC_F64:
        memcpy(wide, p, n * sizeof *wide);
        for (size_t i = 0; i < n; i++)
            out[i] = narrower ? round_to_odd(wide[i]) : (float)wide[i];
        return;
    case TAC_F16:
        memcpy(half, p, n * sizeof *half);
        tac_f16_to_f32_n(out, half, n);
        return;
    case TAC_BF16:
        memcpy(half, p, n * sizeof *half);
        tac_bf16_to_f32_n(out, half, n);
        return;
    default: memcpy(out, p, n * sizeof *out); return;
    }
}

static void from_f32(tac_dtype to, const float *x, size_t n, void *out)
{
    double *wide = out;

    switch (to) {
    case TAC_F64:
        for (size_t i = 0; i < n; i++) wide[i] = x[i];
        return;
    case TAC_F16: tac_f32_to_f16_n(out, x, n); return;
    case TAC_BF16: tac_f32_to_bf16_n(out, x, n); return;
    default: memcpy(out, x, n * sizeof *x); return;
    }
}

static void convert(const tac_safetensors_item *have,
                    const tac_state_item *want)
{
    const size_t n = tac_state_item_count(want);
    const unsigned char *from = have->data;
    unsigned char *to = want->data;
    float chunk[CHUNK];

    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t k = n - i < CHUNK ? n - i : CHUNK;

        to_f32(have->dtype, from + i * tac_dtype_size(have->dtype), k,
               tac_dtype_size(want->dtype) < sizeof(float), chunk);
        from_f32(want->dtype, chunk, k, to + i * tac_dtype_size(want->dtype));
    }
}

static tac_status copy(void *arg, const tac_state_item *want)
{
    load *l = arg;
    const tac_safetensors_item *have = tac_safetensors_find(l->f, want->name);

    if (!have || have->bytes == 0) return TAC_OK;
    if (have->dtype == want->dtype)
        memcpy(want->data, have->data, have->bytes);
    else
        convert(have, want);
    return TAC_OK;
}

tac_status tac_safetensors_load(const tac_safetensors *f,
                                tac_state_walk_fn *walk, void *object,
                                unsigned flags)
{
    load l = {.f = f, .flags = flags};
    const tac_state_visitor compare_all = {compare, &l, NULL};
    const tac_state_visitor copy_all = {copy, &l, NULL};
    tac_status s;

    l.wanted = calloc(f->count + 1, 1);
    if (!l.wanted)
        return tac_fail(f->ctx, TAC_ERR_NOMEM, "no memory to load %s", f->path);
    s = walk(object, &compare_all);
    if (s >= 0) s = check_complete(&l);
    free(l.wanted);
    return s < 0 ? s : walk(object, &copy_all);
}
