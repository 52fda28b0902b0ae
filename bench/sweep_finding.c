/* What a sweep amounts to, in words with figures.
 *
 * What beats what is said by tac__sweep_judge, as on the page. */
#include <math.h>
#include <string.h>

#include "sweep_page.h"

typedef struct score {
    double accuracy, error; /* and its standard error */
    double bytes;
    int known;
} score;

static double samples_error(const sweep *s, double accuracy)
{
    const size_t n = tac__sweep_tested(s) ? s->test_count : s->val_count;

    return n > 0 ? sqrt(accuracy * (1 - accuracy) / (double)n) : 0;
}

static score score_of(const sweep *s, size_t of)
{
    const sweep_mean m = tac__sweep_accuracy(s, of);
    const sweep_mean b =
        tac__sweep_mean(s, of, offsetof(sweep_row, bytes_counted));

    return (score){
        m.mean, m.n > 1 ? m.sd / sqrt((double)m.n) : samples_error(s, m.mean),
        b.mean, m.n > 0 && m.missing == 0};
}

static double error_of_difference(const score *a, const score *b)
{
    return sqrt(a->error * a->error + b->error * b->error);
}

static size_t find(const sweep *s, const char *sync, const char *compress,
                   int64_t every, int64_t accumulate)
{
    for (size_t i = 0; i < s->n_cases; i++) {
        const sweep_case *k = &s->cases[i];

        if (k->every == every && k->accumulate == accumulate &&
            strcmp(k->sync, sync) == 0 && strcmp(k->compress, compress) == 0)
            return i;
    }
    return s->n_cases;
}

static const char *codec(const sweep_case *k)
{
    return strcmp(k->compress, "none") ? k->compress : "";
}

static void put_name(FILE *f, const sweep_case *k)
{
    fprintf(f, "%s%s%s", k->sync, *codec(k) ? " " : "", codec(k));
}

/* Methods, one for each sync and codec: calls `tell` with the first case. */
static void each_method(const sweep *s, FILE *f,
                        void (*tell)(const sweep *, size_t, FILE *))
{
    for (size_t i = 0; i < s->n_cases; i++) {
        const sweep_case *k = &s->cases[i];
        const int again = i > 0 && !strcmp(k[-1].sync, k->sync) &&
                          !strcmp(k[-1].compress, k->compress);

        if (!k->baseline && !again) tell(s, i, f);
    }
}

/* ---- against H = 1 ---------------------------------------------------------
 */

/* The method's shortest interval; cases of a method lie side by side. */
static int of_method(const sweep *s, size_t i, size_t first)
{
    return i < s->n_cases && !s->cases[i].baseline &&
           !strcmp(s->cases[i].sync, s->cases[first].sync) &&
           !strcmp(s->cases[i].compress, s->cases[first].compress);
}

static void tell_intervals(const sweep *s, size_t first, FILE *f)
{
    const score base = score_of(s, first);
    const char *gap = "";

    if (!base.known) return;
    put_name(f, &s->cases[first]);
    fprintf(f, ": %.2f %% at H = %lld; ", 100 * base.accuracy,
            (long long)s->cases[first].every);
    for (size_t i = first + 1; of_method(s, i, first); i++) {
        const score now = score_of(s, i);

        if (!now.known) continue;
        fprintf(f, "%sH = %lld: %+.2f (+-%.2f) points with %.1fx fewer bytes",
                gap, (long long)s->cases[i].every,
                100 * (now.accuracy - base.accuracy),
                100 * error_of_difference(&now, &base), base.bytes / now.bytes);
        gap = ", ";
    }
    fprintf(f, ".\n");
}

/* ---- against accumulation --------------------------------------------------
 */

static void tell_outcome(const sweep *s, size_t first, sweep_verdict outcome,
                         const char *word, FILE *f)
{
    int n = 0;

    fprintf(f, " %s", word);
    for (size_t i = first; of_method(s, i, first); i++) {
        const int64_t h = s->cases[i].every;
        const size_t other = find(s, "grad", "none", 1, h);
        const score a = score_of(s, i);
        const score b = other < s->n_cases ? score_of(s, other) : (score){0};

        if (h == 1 || !a.known || !b.known ||
            tac__sweep_judge(s, i, other) != outcome)
            continue;
        fprintf(f, "%sH = %lld (%+.2f points)", n ? ", " : " at ", (long long)h,
                100 * (a.accuracy - b.accuracy));
        n++;
    }
    if (n == 0) fprintf(f, " nowhere");
}

/* How far bytes are from those of accumulation, at most. */
static double bytes_apart(const sweep *s, size_t first)
{
    double most = 0;

    for (size_t i = first; of_method(s, i, first); i++) {
        const size_t other = find(s, "grad", "none", 1, s->cases[i].every);

        if (s->cases[i].every == 1 || other == s->n_cases) continue;
        const double d =
            fabs(score_of(s, i).bytes / score_of(s, other).bytes - 1);
        if (isfinite(d) && d > most) most = d;
    }
    return most;
}

/* Has it ended at an H that accumulation has, too? */
static int is_comparable(const sweep *s, size_t first)
{
    for (size_t i = first; of_method(s, i, first); i++) {
        const size_t other = find(s, "grad", "none", 1, s->cases[i].every);

        if (s->cases[i].every > 1 && other < s->n_cases &&
            score_of(s, i).known && score_of(s, other).known)
            return 1;
    }
    return 0;
}

static void tell_accumulation(const sweep *s, size_t first, FILE *f)
{
    const double apart = bytes_apart(s, first);

    if (!is_comparable(s, first)) return;
    put_name(f, &s->cases[first]);
    fprintf(f, " against accumulation at the same samples");
    if (apart < 0.005)
        fprintf(f, " and bytes:");
    else
        fprintf(f, " (bytes differ by up to %.0f %%):", 100 * apart);
    tell_outcome(s, first, SWEEP_MORE, "beats it", f);
    fprintf(f, ";");
    tell_outcome(s, first, SWEEP_EQUAL, "equals it", f);
    fprintf(f, ";");
    tell_outcome(s, first, SWEEP_LESS, "loses to it", f);
    fprintf(f, ".\n");
}

/* ---- against averaging gradients in every step -----------------------------
 */

/* The case of a method with the fewest bytes within half a point. */
static size_t cheapest(const sweep *s, const score *base)
{
    size_t best = s->n_cases;
    double least = INFINITY;

    for (size_t i = 0; i < s->n_cases; i++) {
        const score a = score_of(s, i);

        if (s->cases[i].baseline || !a.known || a.bytes >= least ||
            a.accuracy < base->accuracy - 0.005)
            continue;
        best = i;
        least = a.bytes;
    }
    return best;
}

static void tell_cheapest(const sweep *s, FILE *f)
{
    const size_t plain = find(s, "grad", "none", 1, 1);
    const score base = plain < s->n_cases ? score_of(s, plain) : (score){0};
    const size_t best = base.known ? cheapest(s, &base) : s->n_cases;

    if (!base.known) return;
    fprintf(f,
            "Within 0.5 points of averaging gradients in every step "
            "(%.2f %%), with the fewest bytes: ",
            100 * base.accuracy);
    if (best == s->n_cases) {
        fprintf(f, "no method.\n");
        return;
    }
    const score a = score_of(s, best);
    fprintf(f, "%s, %.2f %% with %.1fx fewer.\n", s->cases[best].label,
            100 * a.accuracy, base.bytes / a.bytes);
}

void sweep_finding(const sweep *s, FILE *f)
{
    fprintf(f,
            "Accuracy on the %s samples; +- is a standard error. Equal: the "
            "difference may be chance (95 %%, %s).\n",
            tac__sweep_tested(s) ? "test" : "validation",
            s->o->seeds > 1 ? "t-test over seeds" : "that of so many samples");
    each_method(s, f, tell_intervals);
    each_method(s, f, tell_accumulation);
    tell_cheapest(s, f);
}
