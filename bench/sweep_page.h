/* sweep_page.h: the parts of the page, and the means that it is made of.
 *
 *   sweep_model.c           modelled time, of rows and at each evaluation
 *   sweep_pareto.c          the front
 *   sweep_mean.c            means over seeds, and whether two differ
 *   sweep_groups.c          cases that differ in H alone, and how they look
 *   sweep_curves.c          evaluations of a case, means over seeds
 *   sweep_picture.c         builds one plot, point by point
 *   sweep_page.c            the document
 *   sweep_page_style.c      its style sheet and its script
 *   sweep_page_text.c       numbers with units
 *   sweep_page_head.c       what was run
 *   sweep_page_finding.c    what came out, in words
 *   sweep_page_compare.c    accuracy at each H, against accumulation
 *   sweep_page_networks.c   what is fastest on each network
 *   sweep_page_losses.c     loss against steps, bytes, modelled time
 *   sweep_page_accuracy.c   accuracy and consensus distance against H
 *   sweep_page_front.c      bytes against error
 *   sweep_page_checks.c     predicted against measured
 *   sweep_page_rates.c      learning rates tried
 *   sweep_page_table.c      all rows
 *   sweep_page_terms.c      what the columns mean, how to do it again
 *   sweep_svg.c             two of the pictures as a file */
#ifndef TAC_BENCH_SWEEP_PAGE_H
#define TAC_BENCH_SWEEP_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "localsgd_sweep.h"
#include "tacit/page.h"
#include "tacit/svg.h"

/* ---- means over seeds -----------------------------------------------------
 */

/* NaN without any. */
typedef struct sweep_mean {
    size_t n, missing; /* finite; not finite */
    double mean, sd;   /* sd: of the sample; 0 for one */
    double low, high;
    double squares; /* of differences to the mean */
} sweep_mean;

/* offset: of a double in sweep_row. */
double tac__sweep_field(const sweep_row *row, size_t offset);
sweep_mean tac__sweep_mean(const sweep *s, size_t of, size_t offset);
sweep_mean tac__sweep_modelled(const sweep *s, size_t of, int network);
/* On the test images, if any row was tested; else on validation. */
int tac__sweep_tested(const sweep *s);
sweep_mean tac__sweep_accuracy(const sweep *s, size_t of);

typedef enum sweep_verdict {
    SWEEP_UNKNOWN, /* one of them has no accuracy */
    SWEEP_LESS,
    SWEEP_EQUAL,
    SWEEP_MORE
} sweep_verdict;

/* Accuracy of case a against that of b: t-test on the difference of means over
 * seeds, 95 %, two-sided. With a single seed that says nothing, so then 95 % of
 * what the number of images that it was measured on explains. */
sweep_verdict tac__sweep_judge(const sweep *s, size_t a, size_t b);

/* ---- groups ----------------------------------------------------------------
 */

typedef enum sweep_kind {
    SWEEP_LOCAL,
    SWEEP_ACCUMULATE,
    SWEEP_PER_STEP,
    SWEEP_ONESHOT,
    SWEEP_ALONE
} sweep_kind;

sweep_kind tac__sweep_kind(const sweep_case *k);
/* H: of local modes, or of accumulation; 1 of per-step, else 0. */
int64_t tac__sweep_interval(const sweep_case *k);

/* Cases of one method and codec. */
typedef struct sweep_group {
    sweep_kind kind;
    const sweep_case *first;
    char name[96];
    size_t *cases; /* (n), ascending H */
    size_t n;
    int colour, dashed;
    tac_svg_marker marker;
} sweep_group;

typedef struct sweep_curve {
    size_t n;
    double *steps; /* micro-steps of a rank */
    double *loss, *low, *high;
    double *bytes;    /* of one rank */
    double *modelled; /* (networks, n) s */
    double *memory;   /* all of them */
} sweep_curve;

typedef struct sweep_page {
    const sweep *s;
    FILE *f;
    sweep_group *groups;
    size_t n_groups;
    int64_t *intervals; /* (n_intervals) distinct H of all groups, ascending */
    size_t n_intervals;
    sweep_curve *curves; /* (cases) */
    int *front;          /* (cases) */
    size_t per_step;     /* plain per-step baseline; n_cases: none */
} sweep_page;

tac_status tac__sweep_groups(sweep_page *p);
void tac__sweep_groups_free(sweep_page *p);
/* Of a group at H; n_cases: none. */
size_t tac__sweep_at(const sweep_page *p, const sweep_group *g, int64_t every);
const sweep_group *tac__sweep_group_of(const sweep_page *p, size_t of);
/* Accumulation with the same codec, or else plain; NULL: none. */
const sweep_group *tac__sweep_rival(const sweep_page *p, const sweep_group *g);
/* Colour and marker for an H. */
void tac__sweep_interval_look(const sweep_page *p, int64_t every,
                              tac_svg_series *look);

tac_status tac__sweep_curves(sweep_page *p);
void tac__sweep_curves_free(sweep_page *p);

/* Modelled seconds at each evaluation of a row: out (networks, n_evals), NaN
 * without a model. */
tac_status tac__sweep_model_evals(const sweep *s, const sweep_row *row,
                                  double *out);

/* ---- pictures ---------------------------------------------------------------
 */

typedef struct picture_point {
    double x, y, low, high;
    char note[120];
} picture_point;

typedef struct picture_line {
    char name[96];
    size_t first; /* of its points; they end where the next line begins */
    tac_svg_series look;
} picture_line;

/* Running out of memory makes it incomplete; draw tells. */
typedef struct picture {
    sweep_page *page;
    tac_svg_panel panel; /* titles, axes, marks: set by the caller */
    picture_line *lines;
    size_t n_lines, cap_lines;
    picture_point *points;
    size_t n_points, cap_points;
    tac_svg_mark marks[16]; /* room for the panel's */
    int failed;
} picture;

/* Begins a line; look: colour, dashes, marker, style. NULL name: not in the
 * legend. */
void tac__picture_line(picture *k, const char *name,
                       const tac_svg_series *look);
/* low, high: NaN for none. note: printf's. */
void tac__picture_point(picture *k, double x, double y, double low, double high,
                        const char *note, ...) TAC_PRINTF(6, 7);
/* Draws, with `label` as accessible name. */
tac_status tac__picture_draw(picture *k, const char *label);
/* Some as a file of their own, one below the other; at most four. */
tac_status tac__picture_write(picture *const *pictures, size_t n,
                              const char *path);
/* A list of the lines' names beside their looks. */
void tac__picture_legend(const picture *k);
void tac__picture_free(picture *k);

/* ---- text -------------------------------------------------------------------
 */

enum { SWEEP_TEXT = TAC_PAGE_TEXT };

/* Mean and, with more than one seed, sample standard deviation: "89.12 ± 0.10
 * %". */
const char *tac__sweep_share_mean(const sweep_mean *m, char buf[SWEEP_TEXT]);
/* "+0.12 points", of shares. */
const char *tac__sweep_points(double v, char buf[SWEEP_TEXT]);
/* "100 Mbit/s, 20 ms". */
const char *tac__sweep_link(const tac_sim_network *net, char buf[SWEEP_TEXT]);
/* Text with what HTML would read as markup replaced. */
void tac__page_text(sweep_page *p, const char *text);
/* printf, replaced likewise as a whole. */
void tac__page_print(sweep_page *p, const char *format, ...) TAC_PRINTF(2, 3);
/* As it is. */
void tac__page_html(sweep_page *p, const char *html);
/* <figure> with heading and explanation; the caller adds panels. */
void tac__page_figure(sweep_page *p, const char *id, const char *heading,
                      const char *explanation);
void tac__page_figure_end(sweep_page *p);

/* ---- sections
 * ---------------------------------------------------------------- */

/* On network k, the case of the group that is fastest of those at most half a
 * point below per-step (or below the best, where there is no per-step);
 * n_cases: none. group NULL: of all but those without averaging. */
size_t tac__sweep_fastest(const sweep_page *p, const sweep_group *g, int k);
/* At most half a point below. */
int tac__sweep_good_enough(const sweep_page *p, size_t of);
/* What half a point is counted from. */
double tac__sweep_standard(const sweep_page *p);

/* Groups, curves and the front; freed also after a failure. */
tac_status tac__page_prepare(sweep_page *p, const sweep *s);
void tac__page_free(sweep_page *p);

const char *tac__page_script(void);
void tac__page_head(sweep_page *p);
void tac__page_finding(sweep_page *p);
void tac__page_compare(sweep_page *p);
void tac__page_networks(sweep_page *p);
tac_status tac__page_losses(sweep_page *p);
tac_status tac__page_accuracy(sweep_page *p);
tac_status tac__picture_accuracy(picture *k);
tac_status tac__page_consensus(sweep_page *p);
tac_status tac__page_front(sweep_page *p);
tac_status tac__picture_front(picture *k);
tac_status tac__page_checks(sweep_page *p);
tac_status tac__page_rates(sweep_page *p);
void tac__page_table(sweep_page *p);
void tac__page_terms(sweep_page *p);

#endif
