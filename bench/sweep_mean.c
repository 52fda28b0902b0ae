/* sweep_mean.c: means over the seeds of a case, and whether two of them differ
 * by more than seeds do. */
#include <math.h>

#include "sweep_page.h"

/* ---- means -----------------------------------------------------------------
 */

double tac__sweep_field(const sweep_row *row, size_t offset)
{
    return *(const double *)(const void *)((const char *)row + offset);
}

static void add(sweep_mean *m, double v)
{
    if (!isfinite(v)) {
        m->missing++;
        return;
    }
    if (m->n == 0 || v < m->low) m->low = v;
    if (m->n == 0 || v > m->high) m->high = v;
    m->n++;
    m->mean += v; /* a sum until all are there */
}

static void add_square(sweep_mean *m, double v)
{
    if (isfinite(v)) m->squares += (v - m->mean) * (v - m->mean);
}

/* In two passes: sums of bytes are exact, so equal ones have equal means. */
sweep_mean tac__sweep_mean(const sweep *s, size_t of, size_t offset)
{
    sweep_mean m = {0};
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].of == of) add(&m, tac__sweep_field(&s->rows[i], offset));
    if (m.n == 0) return (sweep_mean){0, m.missing, NAN, NAN, NAN, NAN, NAN};
    m.mean /= (double)m.n;
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].of == of)
            add_square(&m, tac__sweep_field(&s->rows[i], offset));
    m.sd = m.n > 1 ? sqrt(m.squares / (double)(m.n - 1)) : 0;
    return m;
}

sweep_mean tac__sweep_modelled(const sweep *s, size_t of, int network)
{
    return tac__sweep_mean(s, of,
                           offsetof(sweep_row, modelled_s) +
                               (size_t)network * sizeof(double));
}

/* ---- accuracy --------------------------------------------------------------
 */

int tac__sweep_tested(const sweep *s)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (isfinite(s->rows[i].test_accuracy)) return 1;
    return 0;
}

sweep_mean tac__sweep_accuracy(const sweep *s, size_t of)
{
    return tac__sweep_mean(s, of,
                           tac__sweep_tested(s)
                               ? offsetof(sweep_row, test_accuracy)
                               : offsetof(sweep_row, eval_accuracy));
}

/* ---- do they differ? -------------------------------------------------------
 */

/* Student's t, 97.5 %. */
static double quantile(size_t freedom)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262, 2.228};
    const size_t n = sizeof t / sizeof *t;
    if (freedom < 1) return INFINITY;
    if (freedom <= n) return t[freedom - 1];
    return freedom < 30 ? 2.13 : 2.0;
}

/* Half of the interval that the difference lies in by chance. */
static double chance_of_seeds(const sweep_mean *a, const sweep_mean *b)
{
    const size_t freedom = a->n + b->n - 2;
    const double na = (double)a->n, nb = (double)b->n;
    const double pooled = (a->squares + b->squares) / (double)freedom;
    return quantile(freedom) * sqrt(pooled * (1 / na + 1 / nb));
}

static double chance_of_images(const sweep *s, const sweep_mean *a,
                               const sweep_mean *b)
{
    const size_t n = tac__sweep_tested(s) ? s->test_count : s->val_count;
    const double p = (a->mean + b->mean) / 2;
    return n > 0 ? 1.96 * sqrt(fmax(0, 2 * p * (1 - p) / (double)n)) : INFINITY;
}

sweep_verdict tac__sweep_judge(const sweep *s, size_t a, size_t b)
{
    const sweep_mean x = tac__sweep_accuracy(s, a),
                     y = tac__sweep_accuracy(s, b);
    const double difference = x.mean - y.mean;
    if (x.n == 0 || y.n == 0) return SWEEP_UNKNOWN;
    const double chance = x.n > 1 && y.n > 1 ? chance_of_seeds(&x, &y)
                                             : chance_of_images(s, &x, &y);
    if (fabs(difference) <= chance) return SWEEP_EQUAL;
    return difference > 0 ? SWEEP_MORE : SWEEP_LESS;
}
