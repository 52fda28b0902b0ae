/* A CSV file with a line an attempt and a column a rank: seconds of forward,
 * backward and update. What hooks of communication and waiting take is in none
 * of them. An attempt that was dropped took 0.
 *
 * Memory: 8 bytes an attempt of the rank's own; times of the others pass
 * through in pieces of 1024 attempts. */
#include "attempt_times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024 };

struct tac__attempt_times {
    uint64_t first;  /* attempts before the first one here */
    size_t n, room;  /* noted; of `seconds` */
    double computed; /* by the replica, up to the last note */
    double *all;     /* [world][PIECE] of all ranks, while it is written */
    double seconds[];
};

static double computed_s(const tac__run *run)
{
    const tac_replica_times *t = &run->replica->times;

    return t->forward_s + t->backward_s + t->update_s;
}

tac_status tac__attempt_times_open(tac__run *run)
{
    const uint64_t room = run->total_steps;
    struct tac__attempt_times *a = NULL;

    if (!run->config->attempt_times || run->config->dry_run) return TAC_OK;
    if (room < SIZE_MAX / sizeof(double) - 16)
        a = malloc(sizeof *a + (size_t)room * sizeof(double));
    if (a) {
        *a = (struct tac__attempt_times){.room = (size_t)room};
        a->all = malloc((size_t)run->rank->world * PIECE * sizeof *a->all);
    }
    run->attempt_times = a;
    if (a && a->all) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_NOMEM,
                    "no memory for the times of %" PRIu64
                    " attempts; leave out --attempt-times",
                    room);
}

void tac__attempt_times_close(tac__run *run)
{
    if (run->attempt_times) free(run->attempt_times->all);
    free(run->attempt_times);
    run->attempt_times = NULL;
}

void tac__attempt_times_begin(tac__run *run)
{
    struct tac__attempt_times *a = run->attempt_times;

    if (!a) return;
    a->first = run->step;
    a->computed = computed_s(run);
}

void tac__attempt_times_note(tac__run *run)
{
    struct tac__attempt_times *a = run->attempt_times;

    if (!a || a->n == a->room) return;
    a->seconds[a->n++] = computed_s(run) - a->computed;
    a->computed = computed_s(run);
}

/* ---- the file -------------------------------------------------------------
 */

/* `all`: of each rank so many times, rank after rank. */
static void write_lines(FILE *f, uint64_t attempt, const double *all, size_t n,
                        int world)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "%" PRIu64, attempt + i);
        for (int r = 0; r < world; r++)
            fprintf(f, ",%.9g", all[(size_t)r * n + i]);
        fputc('\n', f);
    }
}

/* Piece after piece comes together on all ranks; the first writes, if its file
 * is open. */
static tac_status write_pieces(tac__run *run, FILE *f)
{
    const struct tac__attempt_times *a = run->attempt_times;
    tac_comm *comm = run->rank->comm;

    for (size_t at = 0; at < a->n; at += PIECE) {
        const size_t n = a->n - at < PIECE ? a->n - at : PIECE;
        tac_req *req = NULL;

        TAC_TRY(tac_allgather(comm, a->seconds + at, a->all, n, TAC_F64, NULL,
                              &req));
        TAC_TRY(tac_wait(req, 0));
        if (f) write_lines(f, a->first + at + 1, a->all, n, run->rank->world);
    }
    return TAC_OK;
}

static FILE *begin_file(const tac__run *run)
{
    FILE *f = fopen(run->config->attempt_times, "w");

    if (!f) return NULL;
    fputs("attempt", f);
    for (int r = 0; r < run->rank->world; r++) fprintf(f, ",rank%d", r);
    fputc('\n', f);
    return f;
}

/* Closes the file; was all of it written? */
static tac_status end_file(const tac__run *run, FILE *f, int error)
{
    const int broken = f && ferror(f);

    if (f && fclose(f) == 0 && !broken) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_IO,
                    "cannot write the times of attempts to %s: %s; check "
                    "--attempt-times and the free space",
                    run->config->attempt_times, strerror(f ? errno : error));
}

tac_status tac__attempt_times_write(tac__run *run)
{
    const int writes = run->rank->rank == 0;
    FILE *f = NULL;

    if (!run->attempt_times) return TAC_OK;
    if (writes) f = begin_file(run);
    const int error = errno;
    const tac_status s = write_pieces(run, f);
    const tac_status end = writes ? end_file(run, f, error) : TAC_OK;
    return s < 0 ? s : end;
}
