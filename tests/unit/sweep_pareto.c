/* sweep_pareto.c: the front and the means that it is made of, against plain
 * second implementations; verdicts against worked examples. */
#include <criterion/criterion.h>

#include "sweep_page.h"
#include "sweep_synthetic.h"
#include "tacit/rng.h"

enum { CASES = 12, SEEDS = 3, ROWS = CASES * SEEDS };

typedef struct grid {
    sweep s;
    sweep_options o;
    sweep_case cases[CASES];
    sweep_row rows[ROWS];
} grid;

/* Coarse values, so that many are equal. */
static void fill(grid *g, uint64_t seed)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, 1};
    *g = (grid){.s = {.o = &g->o,
                      .cases = g->cases,
                      .rows = g->rows,
                      .n_cases = CASES,
                      .n_rows = ROWS}};
    for (uint64_t i = 0; i < ROWS; i++) {
        sweep_row *r = &g->rows[i];
        r->of = i % CASES; /* seeds of a case do not lie side by side */
        r->bytes_counted = floor(4 * tac_rng_uniform(&key, 2 * i)) * 3;
        r->test_accuracy = floor(4 * tac_rng_uniform(&key, 2 * i + 1)) / 4;
        if (tac_rng_uniform(&key, 1000 + i) < 0.03) r->test_accuracy = NAN;
    }
}

/* Sums in row order, nothing clever; 0: a seed is missing. */
static int point(const grid *g, size_t of, double *bytes, double *error)
{
    *bytes = *error = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (g->rows[i].of != of) continue;
        if (isnan(g->rows[i].test_accuracy)) return 0;
        *bytes += g->rows[i].bytes_counted;
        *error -= g->rows[i].test_accuracy;
    }
    return 1;
}

static int is_beaten(const grid *g, size_t of)
{
    double b, e, b2, e2;
    if (!point(g, of, &b, &e)) return 1;
    for (size_t k = 0; k < CASES; k++) {
        if (!point(g, k, &b2, &e2)) continue;
        if ((b2 < b && e2 <= e) || (b2 <= b && e2 < e)) return 1;
    }
    return 0;
}

Test(pareto, agrees_with_trying_all_pairs)
{
    int on = 0, off = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        grid g;
        int front[CASES];
        fill(&g, seed);
        sweep_pareto(&g.s, front);
        for (size_t i = 0; i < CASES; i++) {
            cr_assert_eq(front[i], !is_beaten(&g, i), "seed %d, case %zu",
                         (int)seed, i);
            on += front[i];
            off += !front[i];
        }
    }
    cr_assert(on > 200 && off > 200, "%d, %d", on, off);
}

Test(pareto, along_the_front_more_bytes_mean_less_error)
{
    synthetic *y = syn_make(NULL, 3);
    int front[SYN_CASES];
    sweep_pareto(&y->s, front);
    for (size_t i = 0; i < y->s.n_cases; i++)
        for (size_t k = 0; k < y->s.n_cases; k++) {
            if (!front[i] || !front[k]) continue;
            const double b = tac__sweep_mean(&y->s, i,
                                             offsetof(sweep_row, bytes_counted))
                                 .mean,
                         c = tac__sweep_mean(&y->s, k,
                                             offsetof(sweep_row, bytes_counted))
                                 .mean;
            if (b < c)
                cr_assert_lt(tac__sweep_accuracy(&y->s, i).mean,
                             tac__sweep_accuracy(&y->s, k).mean);
        }
    free(y);
}

Test(pareto, nothing_is_legal)
{
    grid g;
    int front[CASES] = {7};
    fill(&g, 1);
    g.s.n_rows = 0;
    sweep_pareto(&g.s, front);
    for (size_t i = 0; i < CASES; i++) cr_assert_eq(front[i], 0);
    g.s.n_cases = 0;
    front[0] = 7;
    sweep_pareto(&g.s, front);
    cr_assert_eq(front[0], 7);
}

/* ---- means -----------------------------------------------------------------
 */

Test(mean, of_a_case_and_its_spread)
{
    grid g;
    fill(&g, 3);
    const double v[] = {1e9 + 4, 1e9 + 7, 1e9 + 13};
    for (size_t i = 0; i < SEEDS; i++) g.rows[2 + i * CASES].wall_s = v[i];
    const sweep_mean m = tac__sweep_mean(&g.s, 2, offsetof(sweep_row, wall_s));
    cr_assert_eq(m.n, 3);
    cr_assert_eq(m.mean, 1e9 + 8);
    cr_assert_float_eq(m.sd, sqrt(21), 1e-6); /* (16 + 1 + 25) / 2 */
    cr_assert(m.low == v[0] && m.high == v[2]);
}

Test(mean, leaves_out_what_is_no_number)
{
    grid g;
    fill(&g, 4);
    for (size_t i = 0; i < SEEDS; i++)
        g.rows[5 + i * CASES].wall_s = i == 1 ? 2.5 : NAN;
    sweep_mean m = tac__sweep_mean(&g.s, 5, offsetof(sweep_row, wall_s));
    cr_assert(m.n == 1 && m.missing == 2 && m.mean == 2.5 && m.sd == 0);
    g.rows[5 + CASES].wall_s = INFINITY;
    m = tac__sweep_mean(&g.s, 5, offsetof(sweep_row, wall_s));
    cr_assert(m.n == 0 && m.missing == 3 && isnan(m.mean) && isnan(m.sd));
}

/* ---- verdicts --------------------------------------------------------------
 */

static sweep_verdict judge(const double *a, const double *b, size_t n,
                           size_t images)
{
    grid g;
    fill(&g, 5);
    g.s.test_count = images;
    for (size_t i = 0; i < ROWS; i++) {
        const size_t seed = i / CASES;
        g.rows[i].test_accuracy = g.rows[i].eval_accuracy = NAN;
        if (seed < n && g.rows[i].of < 2)
            g.rows[i].test_accuracy = g.rows[i].of ? b[seed] : a[seed];
    }
    return tac__sweep_judge(&g.s, 0, 1);
}

Test(verdict, by_student_s_t)
{
    /* Both sd 0.01, pooled 0.01; the limit is 2.776 * 0.01 * sqrt(2/3) =
     * 0.02267. */
    const double a[] = {0.79, 0.80, 0.81}, near[] = {0.8126, 0.8226, 0.8326},
                 far[] = {0.8127, 0.8227, 0.8327};
    cr_assert_eq(judge(a, near, 3, 0), SWEEP_EQUAL);
    cr_assert_eq(judge(a, far, 3, 0), SWEEP_LESS);
    cr_assert_eq(judge(far, a, 3, 0), SWEEP_MORE);
    cr_assert_eq(judge(a, a, 3, 0), SWEEP_EQUAL);
}

Test(verdict, of_one_seed_is_by_the_number_of_images)
{
    /* 1.96 * sqrt(2 * 0.8 * 0.2 / 10000) = 0.01109,
     * with the mean of both 0.01097. */
    const double a[] = {0.8}, near[] = {0.8109}, far[] = {0.8112};
    cr_assert_eq(judge(a, near, 1, 10000), SWEEP_EQUAL);
    cr_assert_eq(judge(a, far, 1, 10000), SWEEP_LESS);
    cr_assert_eq(judge(far, a, 1, 10000), SWEEP_MORE);
    cr_assert_eq(judge(a, far, 1, 0), SWEEP_EQUAL);
    cr_assert_eq(judge(a, far, 0, 10000), SWEEP_UNKNOWN);
}
