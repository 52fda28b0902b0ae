/* image_set.c: u8 images in memory, normalised as they are gathered.
 *
 * Images stay bytes (a quarter of f32's memory); a table of 256 floats does
 * scaling and normalisation. Cost of a gather: one look-up a pixel. */
#include "image_set.h"

#include <math.h>
#include <stdlib.h>

typedef struct image_set {
    tac_dataset_ops ops; /* with the name of this set */
    uint8_t *pixels, *labels;
    size_t count, sample;
    float value[256];
} image_set;

static tac_status image_gather(void *impl, tac_context *ctx, size_t n,
                               const uint32_t *index, float *x, int32_t *y)
{
    const image_set *s = impl;
    (void)ctx;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t *pixel = s->pixels + index[i] * s->sample;
        for (size_t j = 0; j < s->sample; ++j) *x++ = s->value[pixel[j]];
        y[i] = s->labels[index[i]];
    }
    return TAC_OK;
}

static tac_status image_labels(void *impl, tac_context *ctx, size_t n,
                               const uint32_t *index, int32_t *y)
{
    const image_set *s = impl;
    (void)ctx;
    for (size_t i = 0; i < n; ++i) y[i] = s->labels[index[i]];
    return TAC_OK;
}

static size_t image_bytes(const void *impl)
{
    const image_set *s = impl;
    return s->count * (s->sample + 1);
}

static void image_destroy(void *impl)
{
    image_set *s = impl;
    free(s->pixels);
    free(s->labels);
    free(s);
}

tac_status tac__image_set_create(tac_context *ctx, const char *name,
                                 const tac__image_set *images,
                                 const tac_dataset_info *info,
                                 tac_dataset **out)
{
    image_set *s = malloc(sizeof(*s));
    if (!s) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for data %s", name);
    s->ops =
        (tac_dataset_ops){sizeof(tac_dataset_ops), name,        image_gather,
                          image_destroy,           image_bytes, image_labels};
    s->count = info->count;
    s->pixels = (uint8_t *)images->pixels;
    s->labels = (uint8_t *)images->labels;
    s->sample = info->h * info->w * info->c;
    for (int v = 0; v < 256; ++v)
        s->value[v] = (float)((v / 255.0 - images->mean) / images->std);
    const tac_status status = tac_dataset_create(ctx, &s->ops, s, info, out);
    if (status < 0) free(s);
    return status;
}

void tac__pixel_statistics(const uint8_t *pixels, size_t n, double *mean,
                           double *std)
{
    uint64_t histogram[256] = {0};
    for (size_t i = 0; i < n; ++i) ++histogram[pixels[i]];
    double sum = 0, squares = 0;
    for (int v = 0; v < 256; ++v) {
        sum += (double)histogram[v] * v;
        squares += (double)histogram[v] * v * v;
    }
    const double count = n ? (double)n : 1;
    const double m = sum / count;
    const double variance = squares / count - m * m;
    *mean = m / 255;
    *std = variance > 1e-9 ? sqrt(variance) / 255 : 1;
}
