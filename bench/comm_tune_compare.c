/* comm_tune_compare.c: what the cost model chooses against what is fastest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_stats.h"
#include "comm_tune.h"
#include "tacit/clock.h"

/* Median over rounds of the slowest rank; UNSUPPORTED leaves NaN. */
tac_status tac__tune_time(tac__tuning *t, const char *algorithm, size_t bytes,
                          int rounds, double *seconds)
{
    const tac__group *g = &t->b->group;
    tac__comm_options o = *t->b->opt;
    tac__comm_bench b = *t->b;
    const size_t n = bytes / sizeof(float);
    const tac__case k = {TAC_COLL_ALLREDUCE, TAC_F32, TAC_SUM, 0, bytes, n, 0};
    const tac__set set = {t->buffer, t->buffer + TAC__TUNE_BYTES, bytes, bytes};
    double all[TAC__TUNE_ROUNDS];
    o.algorithm = algorithm;
    b.opt = &o;
    *seconds = NAN;
    const tac_status s = tac__ours_run(&b, &k, &set);
    if (s == TAC_ERR_UNSUPPORTED || s == TAC_ERR_ARG) return TAC_OK;
    TAC_TRY(s);
    for (int i = 0; i < rounds; i++) {
        g->barrier(g->state);
        const double begin = tac_clock_s();
        TAC_TRY(tac__ours_run(&b, &k, &set));
        all[i] = tac_clock_s() - begin;
    }
    g->max(g->state, all, (size_t)rounds);
    *seconds = tac__median(all, (size_t)rounds);
    return TAC_OK;
}

/* The fastest algorithm by name, and the time of `chosen`. */
static tac_status find_best(tac__tuning *t, size_t bytes, const char *chosen,
                            const char **best, double *best_s, double *chosen_s)
{
    tac_algorithm_info a;
    *best = NULL;
    *best_s = *chosen_s = NAN;
    for (size_t i = 0; tac_algorithm_list(i, &a) >= 0; i++) {
        double seconds;
        if (a.coll != TAC_COLL_ALLREDUCE || strcmp(a.name, "codec") == 0)
            continue;
        TAC_TRY(tac__tune_time(t, a.name, bytes, 7, &seconds));
        if (strcmp(a.name, chosen) == 0) *chosen_s = seconds;
        if (isnan(seconds) || *best_s <= seconds) continue;
        *best_s = seconds;
        *best = a.name;
    }
    return TAC_OK;
}

static tac_status compare_size(tac__tuning *t, size_t bytes)
{
    char chosen[TAC__ALGORITHM] = "", size[24];
    const char *best;
    double auto_s, best_s, chosen_s;
    TAC_TRY(tac__tune_time(t, NULL, bytes, 7, &auto_s));
    if (t->b->group.rank == 0)
        tac__last_algorithm(t->b, TAC_COLL_ALLREDUCE, chosen);
    TAC_TRY(find_best(t, bytes, chosen, &best, &best_s, &chosen_s));
    if (!t->b->speaks) return TAC_OK;
    printf("  %6s  %-22s %12.1f  %-22s %12.1f %7.2f\n",
           tac__size_text(bytes, size), chosen,
           (isnan(chosen_s) ? auto_s : chosen_s) * 1e6, best ? best : "-",
           best_s * 1e6, (isnan(chosen_s) ? auto_s : chosen_s) / best_s);
    fflush(stdout);
    return TAC_OK;
}

static tac_status compare(tac__tuning *t)
{
    if (t->b->speaks)
        printf("# %5s  %-22s %12s  %-22s %12s %7s\n", "size", "the model takes",
               "time (us)", "fastest", "time (us)", "ratio");
    for (size_t bytes = 256; bytes <= TAC__TUNE_BYTES; bytes *= 4) {
        if (tac__bench_stopped(t->b)) return TAC_ERR_INTERRUPTED;
        TAC_TRY(compare_size(t, bytes));
    }
    return TAC_OK;
}

/* With a communicator that has read the file. */
tac_status tac__tune_compare(tac__tuning *t)
{
    tac_comm_config config = tac__bench_comm_config(t->b->opt);
    tac_comm *tuned = NULL, *before = t->b->comm;
    config.tune_file = t->b->opt->tune;
    TAC_TRY(t->b->group.connect(t->b->group.state, t->b->ctx, &config, &tuned));
    t->b->comm = tuned;
    const tac_status s = compare(t);
    t->b->comm = before;
    if (s >= 0 || tac_comm_error(tuned, NULL, 0) >= 0) tac_comm_destroy(tuned);
    return s;
}
