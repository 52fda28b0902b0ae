/* experiment_logistic.c: two classes of images as a logistic regression. */
#include "experiment_logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/data.h"

enum { SIDE = 7 }; /* blocks that an image is cut into, each way */

/* T-shirts and shirts are the pair of Fashion-MNIST that a line tells apart
 * worst, so that the gradients at the minimum are noisy. */
static void choose_labels(logistic *p, const char *data)
{
    const int clothes = strcmp(data, "fashion-mnist") == 0;
    p->first = 0;
    p->second = clothes ? 6 : 1;
}

static size_t blocks(size_t side)
{
    return side < SIDE ? side : SIDE;
}

/* Means of blocks of an image (h, w, c), over the channels too. */
static void pool(const float *image, const tac_dataset_info *info, float *out)
{
    const size_t bh = blocks(info->h), bw = blocks(info->w);
    for (size_t i = 0; i < bh; i++)
        for (size_t j = 0; j < bw; j++) {
            const size_t y0 = i * info->h / bh, y1 = (i + 1) * info->h / bh;
            const size_t x0 = j * info->w / bw, x1 = (j + 1) * info->w / bw;
            double sum = 0;
            for (size_t y = y0; y < y1; y++)
                for (size_t x = x0 * info->c; x < x1 * info->c; x++)
                    sum += (double)image[y * info->w * info->c + x];
            *out++ = (float)(sum / (double)((y1 - y0) * (x1 - x0) * info->c));
        }
}

/* Indices of the samples of a label. */
static tac_status find_label(const logistic *p, const tac_dataset *set,
                             int label, uint32_t *index, size_t *n)
{
    const tac_dataset_info info = tac_dataset_get_info(set);
    float *image = malloc(tac_dataset_sample_size(set) * sizeof *image);
    tac_status s = TAC_OK;
    if (!image) return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for images");
    *n = 0;
    for (uint32_t i = 0; s >= 0 && i < info.count; i++) {
        int32_t y;
        s = tac_dataset_gather(set, p->ctx, 1, &i, image, &y);
        if (s >= 0 && y == label) index[(*n)++] = i;
    }
    free(image);
    return s;
}

static tac_status gather_label(logistic *p, const tac_dataset *set,
                               const uint32_t *index, size_t n)
{
    const tac_dataset_info info = tac_dataset_get_info(set);
    float *image = malloc(tac_dataset_sample_size(set) * sizeof *image);
    tac_status s = TAC_OK;
    if (!image) return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for images");
    for (size_t i = 0; s >= 0 && i < n; i++) {
        int32_t y;
        s = tac_dataset_gather(set, p->ctx, 1, &index[i], image, &y);
        pool(image, &info, p->rows + p->n * p->d);
        p->n++;
    }
    free(image);
    return s;
}

/* Mean 0 and variance 1/d; a pixel that never changes becomes 0. */
static void standardise(logistic *p)
{
    for (size_t j = 0; j + 1 < p->d; j++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < p->n; i++) sum += (double)p->rows[i * p->d + j];
        const double mean = sum / (double)p->n;
        for (size_t i = 0; i < p->n; i++) {
            const double x = (double)p->rows[i * p->d + j] - mean;
            squares += x * x;
        }
        const double sd = sqrt(squares / (double)p->n);
        const double scale = sd > 1e-9 ? 1 / (sd * sqrt((double)p->d)) : 0;
        for (size_t i = 0; i < p->n; i++) {
            float *x = &p->rows[i * p->d + j];
            *x = (float)(((double)*x - mean) * scale);
        }
    }
    for (size_t i = 0; i < p->n; i++)
        p->rows[i * p->d + p->d - 1] = (float)(1 / sqrt((double)p->d));
}

/* Rows become b_i a_i: +1 for the first class. */
static void apply_labels(logistic *p)
{
    for (size_t k = p->n / 2 * p->d; k < p->n * p->d; k++)
        p->rows[k] = -p->rows[k];
}

/* How many of each class: equally many, and a multiple. */
static size_t of_each(size_t first, size_t second, size_t limit,
                      size_t multiple)
{
    size_t n = first < second ? first : second;
    if (limit && limit / 2 < n) n = limit / 2;
    return n / multiple * multiple;
}

static tac_status gather_rows(logistic *p, const tac_dataset *set,
                              const uint32_t *first, const uint32_t *second,
                              size_t n)
{
    if (n == 0)
        return tac_fail(p->ctx, TAC_ERR_DATA,
                        "the data have too few samples of label %d or %d",
                        p->first, p->second);
    p->rows = malloc(2 * n * p->d * sizeof *p->rows);
    if (!p->rows) return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for rows");
    TAC_TRY(gather_label(p, set, first, n));
    TAC_TRY(gather_label(p, set, second, n));
    standardise(p);
    apply_labels(p);
    return TAC_OK;
}

static tac_status read_rows(logistic *p, const tac_dataset *set, size_t limit,
                            size_t multiple)
{
    const tac_dataset_info info = tac_dataset_get_info(set);
    uint32_t *index = malloc(2 * info.count * sizeof *index);
    size_t first, second;
    p->d = blocks(info.h) * blocks(info.w) + 1;
    if (!index) return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for indices");
    tac_status s = find_label(p, set, p->first, index, &first);
    if (s >= 0) s = find_label(p, set, p->second, index + info.count, &second);
    if (s >= 0)
        s = gather_rows(p, set, index, index + info.count,
                        of_each(first, second, limit, multiple));
    free(index);
    return s;
}

static void describe(logistic *p)
{
    size_t right = 0;
    double squares = 0;
    for (size_t i = 0; i < p->n; i++) {
        const float *row = p->rows + i * p->d;
        right += logistic_margin(p, p->best, i) > 0;
        for (size_t j = 0; j < p->d; j++)
            squares += (double)row[j] * (double)row[j];
    }
    p->accuracy = (double)right / (double)p->n;
    p->smooth = squares / (double)p->n / 4 + p->lambda;
}

tac_status logistic_open(tac_context *ctx, const char *data, const char *dir,
                         size_t limit, size_t multiple, double lambda,
                         logistic *out)
{
    tac_data_config config = TAC_DATA_CONFIG_INIT;
    tac_data all;
    config.dir = dir;
    *out = (logistic){.ctx = ctx, .lambda = lambda};
    choose_labels(out, data);
    TAC_TRY(tac_data_open(ctx, data, &config, &all));
    tac_status s = read_rows(out, all.train, limit, multiple);
    tac_data_close(&all);
    if (lambda <= 0) out->lambda = 1 / (double)out->n;
    if (s >= 0) s = logistic_minimise(out);
    if (s < 0)
        logistic_close(out);
    else
        describe(out);
    return s;
}

void logistic_close(logistic *p)
{
    free(p->rows);
    free(p->best);
    *p = (logistic){0};
}
