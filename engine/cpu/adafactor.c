/* adafactor.c: Adafactor over one tensor, as Hugging Face defines it.
 *
 * A matrix takes three passes, because its update is scaled by the norm of
 * itself, which needs the finished factors: (1) row and column means of the
 * squared gradient, and the norm of the values; (2) the norm of the update; (3)
 * the update: 24 bytes a parameter in f32. A vector takes two. One matrix is
 * shared among threads by rows, of many each is one thread's; sums of parts
 * are added in their order, so results depend on the number of threads alone.
 * Reference: Shazeer & Stern, "Adafactor: Adaptive Learning Rates with
 * Sublinear Memory Cost", ICML 2018. */
#include "cpu/adafactor.h"

#include <math.h>
#include <string.h>

#include "tacit/pool.h"

enum { GRAIN = 16384, LINE = 64 };

typedef struct job {
    const tac__adafactor_loops *loops;
    const tac_adafactor_args *a;
    size_t batch, rows, cols, stride; /* stride: doubles of one cols array */
    size_t a_size;
    char *p, *row, *col, *m;
    const char *g;
    double factor; /* clip_coef / grad_scale */
    double beta;   /* of the second moment at this step */
    tac__adafactor_step step;
    double mean;              /* of row, of the only matrix */
    double *values, *updates; /* sums of squares, by part */
    double *col_factor;       /* used as an array of A */
    double *col_sum;          /* by part */
} job;

static size_t up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Arrays of `cols` that the parts need at once. */
static size_t col_arrays(const tac_adafactor_shape *d, int threads)
{
    const size_t shared = d->batch > 1 ? d->batch : d->rows;
    return shared < (size_t)threads ? shared : (size_t)threads;
}

size_t tac_adafactor_work(const tac_adafactor_shape *d, int threads)
{
    const size_t sums = 2 * up((size_t)threads * sizeof(double), LINE);
    const size_t cols = up(d->cols * sizeof(double), LINE);

    if (d->rows == 0) return sums;
    return sums + 2 * col_arrays(d, threads) * cols;
}

static double get(const job *j, const char *x, size_t i)
{
    return j->a_size == sizeof(double)
               ? ((const double *)(const void *)x)[i]
               : (double)((const float *)(const void *)x)[i];
}

static void set(const job *j, char *x, size_t i, double v)
{
    if (j->a_size == sizeof(double))
        ((double *)(void *)x)[i] = v;
    else
        ((float *)(void *)x)[i] = (float)v;
}

static double inverse_root(double v)
{
    return v > 0 ? 1 / sqrt(v) : 0;
}

static const char *g_at(const job *j, size_t i)
{
    return j->g + i * j->a_size;
}

static char *m_at(const job *j, size_t i)
{
    return j->m ? j->m + i * j->a_size : NULL;
}

static char *p_at(const job *j, size_t i)
{
    return j->p + i * j->a_size;
}

/* ------------------------------------------------------------- matrices */

/* Pass 1 over rows [begin, end) of matrix b: their means are final at once,
 * columns are summed into col_sum. Returns the values' sum of squares. */
static double matrix_stats(const job *j, size_t b, size_t begin, size_t end,
                           double *col_sum)
{
    double squares = 0;

    memset(col_sum, 0, j->cols * sizeof *col_sum);
    for (size_t r = b * j->rows + begin; r < b * j->rows + end; ++r) {
        const double sum = j->loops->row_stats(j->cols, g_at(j, r * j->cols),
                                               j->factor, j->a->eps1, col_sum);
        squares += j->loops->sum_squares(j->cols, p_at(j, r * j->cols));
        set(j, j->row, r,
            j->beta * get(j, j->row, r) +
                (1 - j->beta) * (sum / (double)j->cols));
    }
    return squares;
}

static void matrix_columns(const job *j, size_t b, const double *col_sum)
{
    for (size_t c = 0; c < j->cols; ++c) {
        const size_t at = b * j->cols + c;
        set(j, j->col, at,
            j->beta * get(j, j->col, at) +
                (1 - j->beta) * (col_sum[c] / (double)j->rows));
    }
}

/* The columns' factors of the update; returns the mean of the rows'. */
static double matrix_factors(const job *j, size_t b, double *col_factor)
{
    double sum = 0;

    for (size_t c = 0; c < j->cols; ++c)
        set(j, (char *)col_factor, c,
            inverse_root(get(j, j->col, b * j->cols + c)));
    for (size_t r = 0; r < j->rows; ++r) sum += get(j, j->row, b * j->rows + r);
    return sum / (double)j->rows;
}

static double row_factor(const job *j, size_t r, double mean)
{
    return mean > 0 ? inverse_root(get(j, j->row, r) / mean) : 0;
}

static double matrix_norm(const job *j, size_t b, size_t begin, size_t end,
                          double mean, const double *col_factor)
{
    double sum = 0;

    for (size_t r = b * j->rows + begin; r < b * j->rows + end; ++r)
        sum +=
            j->loops->row_norm(j->cols, g_at(j, r * j->cols),
                               j->factor * row_factor(j, r, mean), col_factor);
    return sum;
}

static void matrix_update(const job *j, size_t b, size_t begin, size_t end,
                          double mean, const double *col_factor)
{
    for (size_t r = b * j->rows + begin; r < b * j->rows + end; ++r) {
        const size_t at = r * j->cols;
        tac__adafactor_step step = j->step;
        step.factor *= row_factor(j, r, mean);
        j->loops->row_update(j->cols, &step, p_at(j, at), g_at(j, at),
                             col_factor, m_at(j, at));
    }
}

/* One matrix: parts are ranges of its rows. */

static void rows_stats(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    j->values[part] =
        matrix_stats(j, 0, begin, end, j->col_sum + (size_t)part * j->stride);
}

static void rows_norm(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    j->updates[part] = matrix_norm(j, 0, begin, end, j->mean, j->col_factor);
}

static void rows_update(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    (void)part;
    matrix_update(j, 0, begin, end, j->mean, j->col_factor);
}

/* Many matrices: parts are ranges of them. */

static void batch_stats(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    double *col_sum = j->col_sum + (size_t)part * j->stride;

    j->values[part] = 0;
    for (size_t b = begin; b < end; ++b) {
        j->values[part] += matrix_stats(j, b, 0, j->rows, col_sum);
        matrix_columns(j, b, col_sum);
    }
}

static void batch_norm(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    double *col_factor = j->col_factor + (size_t)part * j->stride;

    j->updates[part] = 0;
    for (size_t b = begin; b < end; ++b) {
        const double mean = matrix_factors(j, b, col_factor);
        j->updates[part] += matrix_norm(j, b, 0, j->rows, mean, col_factor);
    }
}

static void batch_update(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    double *col_factor = j->col_factor + (size_t)part * j->stride;

    for (size_t b = begin; b < end; ++b) {
        const double mean = matrix_factors(j, b, col_factor);
        matrix_update(j, b, 0, j->rows, mean, col_factor);
    }
}

/* -------------------------------------------------------------- vectors */

static void vector_stats(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    const size_t n = end - begin;

    j->updates[part] =
        j->loops->vector_stats(n, g_at(j, begin), j->factor, j->a->eps1,
                               j->beta, j->col + begin * j->a_size);
    j->values[part] = j->loops->sum_squares(n, p_at(j, begin));
}

static void vector_update(void *arg, size_t begin, size_t end, int part)
{
    const job *j = arg;
    (void)part;
    j->loops->vector_update(end - begin, &j->step, p_at(j, begin),
                            g_at(j, begin), j->col + begin * j->a_size,
                            m_at(j, begin));
}

/* ------------------------------------------------------------- the whole */

static double total(const double *parts, int n)
{
    double sum = 0;

    for (int i = 0; i < n; ++i) sum += parts[i];
    return sum;
}

/* The rate before the values' size enters. */
static double relative_rate(const tac_adafactor_args *a,
                            const tac_step_scalars *s)
{
    const double t = (double)s->applied + 1;
    const double lr = s->lr * a->lr_scale;

    if (!a->relative_step) return lr;
    return lr * fmin(a->warmup_init ? 1e-6 * t : 1e-2, 1 / sqrt(t));
}

/* From the sums of squares over n elements. */
static void set_step(job *j, const tac_step_scalars *s, double n, double values,
                     double updates)
{
    const tac_adafactor_args *a = j->a;
    const double rms = sqrt(updates / n) / a->clip_threshold;
    double alpha = relative_rate(a, s);

    if (a->scale_parameter) alpha *= fmax(a->eps2, sqrt(values / n));
    j->step.factor = j->factor * alpha / fmax(1, rms);
    j->step.keep = 1 - a->weight_decay * alpha;
    j->step.beta1 = a->beta1;
}

static void matrix(const tac_kctx *kc, job *j, const tac_step_scalars *s)
{
    const double n = (double)j->rows * (double)j->cols;
    const size_t grain = GRAIN / j->cols + 1;
    int parts = tac_pool_for(kc->pool, j->rows, grain, rows_stats, j);

    for (int i = 1; i < parts; ++i)
        for (size_t c = 0; c < j->cols; ++c)
            j->col_sum[c] += j->col_sum[(size_t)i * j->stride + c];
    matrix_columns(j, 0, j->col_sum);
    j->mean = matrix_factors(j, 0, j->col_factor);
    const double values = total(j->values, parts);
    parts = tac_pool_for(kc->pool, j->rows, grain, rows_norm, j);
    set_step(j, s, n, values, total(j->updates, parts));
    tac_pool_for(kc->pool, j->rows, grain, rows_update, j);
}

static void matrices(const tac_kctx *kc, job *j, const tac_step_scalars *s)
{
    const double n = (double)j->batch * (double)j->rows * (double)j->cols;
    const size_t grain = GRAIN / (j->rows * j->cols) + 1;
    int parts = tac_pool_for(kc->pool, j->batch, grain, batch_stats, j);
    const double values = total(j->values, parts);

    parts = tac_pool_for(kc->pool, j->batch, grain, batch_norm, j);
    set_step(j, s, n, values, total(j->updates, parts));
    tac_pool_for(kc->pool, j->batch, grain, batch_update, j);
}

static void vector(const tac_kctx *kc, job *j, const tac_step_scalars *s)
{
    const int parts = tac_pool_for(kc->pool, j->cols, GRAIN, vector_stats, j);

    set_step(j, s, (double)j->cols, total(j->values, parts),
             total(j->updates, parts));
    tac_pool_for(kc->pool, j->cols, GRAIN, vector_update, j);
}

static void share_work(job *j, const tac_adafactor_shape *d, int threads,
                       void *work)
{
    const size_t sums = up((size_t)threads * sizeof(double), LINE);

    j->values = work;
    j->updates = j->values + sums / sizeof(double);
    j->col_factor = j->updates + sums / sizeof(double);
    j->col_sum = j->col_factor + col_arrays(d, threads) * j->stride;
}

tac_status tac__adafactor(const tac_kctx *kc, const tac__adafactor_loops *loops,
                          const tac_adafactor_shape *d,
                          const tac_adafactor_args *a,
                          const tac_step_scalars *s, void *p, const void *g,
                          void *row, void *col, void *exp_avg, void *work)
{
    job j = {
        .loops = loops,
        .a = a,
        .batch = d->batch,
        .rows = d->rows,
        .cols = d->cols,
        .stride = up(d->cols * sizeof(double), LINE) / sizeof(double),
        .a_size = tac_dtype_size(loops->a),
        .p = p,
        .g = g,
        .row = row,
        .col = col,
        .m = exp_avg,
        .factor = s->clip_coef / (double)s->grad_scale,
        .beta = 1 - pow((double)s->applied + 1, a->decay_rate),
    };

    if (s->found_inf != 0 || d->batch == 0 || d->cols == 0) return TAC_OK;
    share_work(&j, d, kc->pool ? tac_pool_size(kc->pool) : 1, work);
    if (d->rows == 0)
        vector(kc, &j, s);
    else if (d->batch == 1)
        matrix(kc, &j, s);
    else
        matrices(kc, &j, s);
    return TAC_OK;
}
