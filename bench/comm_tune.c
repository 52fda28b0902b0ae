/* comm_tune.c: measures the constants of the cost model, writes them as a
 * tuning file, and compares what the model then chooses with the fastest.
 *
 *   local, network   alpha: half a round trip of 4 bytes; beta: what half a
 *                    round trip takes longer a byte from 64 KiB to 4 MiB;
 *                    between rank 0 and its first peer of that kind
 *   shared           alpha: an allreduce of 4 bytes in one phase (flat);
 *                    beta: an allreduce of 16 MiB (sliced), in which 3.5 bytes
 *                    pass through a rank for each of its own
 *   gamma            x += y, a byte of x, in the cache
 *
 * A level that this world does not have keeps its built-in constants: it is
 * left out of the file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "comm_tune.h"
#include "tacit/clock.h"

enum { SMALL = 4, MIDDLE = 1 << 16, LARGE = 1 << 22, ADDED = 1 << 18 };

/* ---- messages --------------------------------------------------------------
 */

static tac_status send_to(tac__tuning *t, int peer, size_t bytes)
{
    tac_req *req = NULL;
    TAC_TRY(tac_send(t->b->comm, t->buffer, bytes, TAC_U8, peer, NULL, &req));
    return tac_wait(req, 0);
}

static tac_status receive_from(tac__tuning *t, int peer, size_t bytes)
{
    tac_req *req = NULL;
    TAC_TRY(tac_recv(t->b->comm, t->buffer + TAC__TUNE_BYTES, bytes, TAC_U8,
                     peer, NULL, &req));
    return tac_wait(req, 0);
}

/* Rank 0 and `peer`; the others only take part in the barriers. */
static tac_status round_trip(tac__tuning *t, int peer, size_t bytes,
                             double *seconds)
{
    const tac__group *g = &t->b->group;
    g->barrier(g->state);
    const double begin = tac_clock_s();
    if (g->rank == 0) {
        TAC_TRY(send_to(t, peer, bytes));
        TAC_TRY(receive_from(t, peer, bytes));
    } else if (g->rank == peer) {
        TAC_TRY(receive_from(t, 0, bytes));
        TAC_TRY(send_to(t, 0, bytes));
    }
    *seconds = tac_clock_s() - begin;
    return TAC_OK;
}

/* Rank 0's median of half a round trip, on all ranks. */
static tac_status half_trip(tac__tuning *t, int peer, size_t bytes,
                            double *seconds)
{
    const tac__group *g = &t->b->group;
    double all[TAC__TUNE_ROUNDS];
    TAC_TRY(round_trip(t, peer, bytes, &all[0]));
    for (int i = 0; i < TAC__TUNE_ROUNDS; i++)
        TAC_TRY(round_trip(t, peer, bytes, &all[i]));
    *seconds = g->rank == 0 ? tac__median(all, TAC__TUNE_ROUNDS) / 2 : 0;
    g->max(g->state, seconds, 1);
    return TAC_OK;
}

/* Does a message from rank 0 to `peer` cross hosts? The statistics know. */
static tac_status crosses(tac__tuning *t, int peer, int *yes)
{
    const tac__group *g = &t->b->group;
    tac_comm_stats before, after;
    double seconds, moved;
    tac_comm_stats_get(t->b->comm, &before);
    TAC_TRY(round_trip(t, peer, SMALL, &seconds));
    tac_comm_stats_get(t->b->comm, &after);
    moved = (double)(after.total.bytes_between_hosts -
                     before.total.bytes_between_hosts);
    g->max(g->state, &moved, 1);
    *yes = moved > 0;
    return TAC_OK;
}

static tac_status measure_level(tac__tuning *t, int peer, tac__level *l)
{
    double small, middle, large;
    TAC_TRY(half_trip(t, peer, SMALL, &small));
    TAC_TRY(half_trip(t, peer, MIDDLE, &middle));
    TAC_TRY(half_trip(t, peer, LARGE, &large));
    l->alpha = small;
    l->beta = (large - middle) / (double)(LARGE - MIDDLE);
    if (l->beta < 0) l->beta = 0;
    return TAC_OK;
}

static tac_status measure_messages(tac__tuning *t)
{
    const int hosts = tac_comm_hosts(t->b->comm);
    for (int peer = 1; peer < t->b->group.size; peer++) {
        int far = 0;
        if (hosts > 1) TAC_TRY(crosses(t, peer, &far));
        tac__level *l = far ? &t->network : &t->local;
        if (isnan(l->alpha)) TAC_TRY(measure_level(t, peer, l));
        if (!isnan(t->local.alpha) && (hosts == 1 || !isnan(t->network.alpha)))
            break;
    }
    return TAC_OK;
}

/* ---- shared memory, additions ----------------------------------------------
 */

static tac_status measure_shared(tac__tuning *t)
{
    double small, large;
    TAC_TRY(tac__tune_time(t, "flat", SMALL, TAC__TUNE_ROUNDS, &small));
    TAC_TRY(tac__tune_time(t, "sliced", TAC__TUNE_BYTES, 5, &large));
    if (isnan(small) || isnan(large)) return TAC_OK;
    t->shared.alpha = small;
    t->shared.beta = (large - 2 * small) / (3.5 * TAC__TUNE_BYTES);
    if (t->shared.beta < 0) t->shared.beta = 0;
    return TAC_OK;
}

static tac_status add_once(void *arg)
{
    tac__tuning *t = arg;
    float *x = (float *)(void *)t->buffer;
    const float *y = (const float *)(const void *)(t->buffer + TAC__TUNE_BYTES);
    for (size_t i = 0; i < ADDED / sizeof(float); i++) x[i] += y[i];
    return TAC_OK;
}

static tac_status measure_gamma(tac__tuning *t)
{
    double seconds = 0;
    TAC_TRY(tac__time(add_once, t, 0.02, &seconds));
    t->gamma = seconds / ADDED;
    t->b->group.max(t->b->group.state, &t->gamma, 1);
    return TAC_OK;
}

/* ---- the file --------------------------------------------------------------
 */

static void put_level(FILE *f, const tac__tuning *t, const tac__level *l)
{
    if (isnan(l->alpha)) return;
    fprintf(f, "%s.alpha %.3e\n%s.beta %.3e\n%s.gamma %.3e\n", l->name,
            l->alpha, l->name, l->beta, l->name, t->gamma);
}

static tac_status write_file(const tac__tuning *t)
{
    const char *path = t->b->opt->tune;
    if (t->b->group.rank != 0) return TAC_OK;
    FILE *f = fopen(path, "w");
    if (!f) return tac_fail(t->b->ctx, TAC_ERR_IO, "can't write %s: %m", path);
    fprintf(f,
            "tacit-tune 1\n# transport %s, %d ranks on %d hosts; seconds, "
            "seconds a byte\n",
            tac_comm_transport_name(t->b->comm), t->b->group.size,
            tac_comm_hosts(t->b->comm));
    put_level(f, t, &t->shared);
    put_level(f, t, &t->local);
    put_level(f, t, &t->network);
    const int bad = ferror(f);
    if (fclose(f) == 0 && !bad) return TAC_OK;
    return tac_fail(t->b->ctx, TAC_ERR_IO, "can't write %s: %m", path);
}

static void print_level(const tac__level *l)
{
    if (isnan(l->alpha))
        printf("  %-8s not in this world: built-in constants stay\n", l->name);
    else
        printf("  %-8s alpha %8.2f us   beta %8.4f ns/byte\n", l->name,
               l->alpha * 1e6, l->beta * 1e9);
}

static void print_constants(const tac__tuning *t)
{
    if (!t->b->speaks) return;
    printf("# tacit %s comm_bench: constants of the cost model, %d ranks on %d "
           "hosts, transport %s%s\n",
           TAC_VERSION_STRING, t->b->group.size, tac_comm_hosts(t->b->comm),
           tac_comm_transport_name(t->b->comm),
           t->b->oversubscribed ? ", oversubscribed" : "");
    print_level(&t->shared);
    print_level(&t->local);
    print_level(&t->network);
    printf("  %-8s gamma %8.4f ns/byte\n  written to %s\n", "adding",
           t->gamma * 1e9, t->b->opt->tune);
    fflush(stdout);
}

/* ---- all -------------------------------------------------------------------
 */

static tac_status measure_all(tac__tuning *t)
{
    memset(t->buffer, 0, 2 * (size_t)TAC__TUNE_BYTES);
    TAC_TRY(measure_gamma(t));
    TAC_TRY(measure_shared(t));
    TAC_TRY(measure_messages(t));
    TAC_TRY(tac__bench_agree(t->b, write_file(t)));
    print_constants(t);
    return tac__tune_compare(t);
}

tac_status tac__tune(tac__comm_bench *b)
{
    tac__tuning t = {.b = b,
                     .shared = {"shared", NAN, NAN},
                     .local = {"local", NAN, NAN},
                     .network = {"network", NAN, NAN}};
    t.buffer = malloc(2 * (size_t)TAC__TUNE_BYTES);
    tac_status s =
        t.buffer ? TAC_OK
                 : tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for messages");
    s = tac__bench_agree(b, s);
    if (s >= 0) s = measure_all(&t);
    free(t.buffer);
    return s;
}
