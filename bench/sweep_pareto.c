/* sweep_pareto.c: which cases nothing beats in both bytes and error. */
#include "sweep_page.h"

typedef struct point {
    double bytes, error;
    int known; /* all of its seeds ended with numbers */
} point;

static point point_of(const sweep *s, size_t of)
{
    const sweep_mean bytes =
        tac__sweep_mean(s, of, offsetof(sweep_row, bytes_counted));
    const sweep_mean accuracy = tac__sweep_accuracy(s, of);
    return (point){bytes.mean, 1 - accuracy.mean,
                   bytes.n > 0 && accuracy.n > 0 && !accuracy.missing};
}

static int beats(const point *a, const point *b)
{
    return a->known && a->bytes <= b->bytes && a->error <= b->error &&
           (a->bytes < b->bytes || a->error < b->error);
}

void sweep_pareto(const sweep *s, int *out)
{
    for (size_t i = 0; i < s->n_cases; i++) {
        const point mine = point_of(s, i);
        out[i] = mine.known;
        for (size_t k = 0; out[i] && k < s->n_cases; k++) {
            const point other = point_of(s, k);
            if (beats(&other, &mine)) out[i] = 0;
        }
    }
}
