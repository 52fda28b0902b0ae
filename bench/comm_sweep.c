/* comm_sweep.c: every operation, type, reduction, size and placement, one
 * after the other. */
#include <math.h>
#include <stdlib.h>

#include "comm_bench.h"

/* Whole elements, and as many for each rank where the operation cuts. */
static tac__case make_case(const tac__comm_bench *b, tac_coll coll,
                           tac_dtype dtype, tac_op op, size_t size,
                           int in_place)
{
    const size_t esize = tac_dtype_size(dtype), n = (size_t)b->group.size;
    tac__case k = {coll, dtype, op, in_place, 0, 0, 0};
    k.count = b->plan->in_elements ? size : size / esize;
    if (coll == TAC_COLL_REDUCE_SCATTER || coll == TAC_COLL_ALLGATHER) {
        k.part = b->plan->in_elements ? size : k.count / n;
        k.count = k.part * n;
    }
    k.bytes = k.count * esize;
    return k;
}

/* Calls fn for each case until it fails or returns 1 (enough). */
typedef tac_status case_fn(tac__comm_bench *b, const tac__case *k, void *arg);

static tac_status each_place(tac__comm_bench *b, tac__case k, case_fn *fn,
                             void *arg)
{
    if (k.coll == TAC_COLL_BROADCAST) {
        k.in_place = 1;
        return fn(b, &k, arg);
    }
    for (int in = 0; in < 2; in++) {
        if (!(b->plan->places & (in ? TAC__IN_PLACE : TAC__OUT_OF_PLACE)))
            continue;
        k.in_place = in;
        const tac_status s = fn(b, &k, arg);
        if (s != TAC_OK) return s;
    }
    return TAC_OK;
}

static tac_status each_case(tac__comm_bench *b, case_fn *fn, void *arg)
{
    const tac__comm_plan *p = b->plan;
    for (size_t c = 0; c < p->n_colls; c++)
        for (size_t d = 0; d < p->n_dtypes; d++)
            for (size_t o = 0; o < p->n_ops; o++) {
                const int reduces = p->colls[c] == TAC_COLL_ALLREDUCE ||
                                    p->colls[c] == TAC_COLL_REDUCE_SCATTER;
                if (!reduces && o > 0) continue;
                for (size_t i = 0; i < p->n_sizes; i++) {
                    const tac_status s =
                        each_place(b,
                                   make_case(b, p->colls[c], p->dtypes[d],
                                             p->ops[o], p->sizes[i], 0),
                                   fn, arg);
                    if (s != TAC_OK) return s;
                }
            }
    return TAC_OK;
}

static tac_status widest(tac__comm_bench *b, const tac__case *k, void *arg)
{
    size_t *most = arg;
    const size_t bytes = tac__arena_set_bytes(k, b->group.size);
    if (bytes > *most) *most = bytes;
    return TAC_OK;
}

static tac_status open_arenas(tac__comm_bench *b)
{
    size_t bytes = ((size_t)b->opt->rotate_mib << 20) / (size_t)b->group.size,
           most = 0;
    TAC_TRY(each_case(b, widest, &most));
    if (bytes < most) bytes = most;
    TAC_TRY(tac__arena_open(b, &b->ours, bytes, b->plan->symmetric));
    if (!b->group.baseline) return TAC_OK;
    return tac__arena_open(b, &b->theirs, bytes, 0);
}

static tac_status keep(tac__comm_bench *b, const tac__row *row)
{
    if (b->group.rank != 0) return TAC_OK;
    if (b->n_rows == b->room_rows) {
        const size_t room = b->room_rows ? 2 * b->room_rows : 64;
        tac__row *rows = realloc(b->rows, room * sizeof *rows);
        if (!rows)
            return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for results");
        b->rows = rows;
        b->room_rows = room;
    }
    b->rows[b->n_rows++] = *row;
    if (b->speaks) tac__print_row(b, row);
    return b->opt->json ? tac__write_rows(b) : TAC_OK;
}

typedef struct progress {
    tac_dtype filled;
    double wrong;
} progress;

static tac_status one_case(tac__comm_bench *b, const tac__case *k, void *arg)
{
    progress *p = arg;
    tac__row row = {.k = *k, .wrong = NAN};
    if (tac__bench_stopped(b)) return TAC_INPROGRESS;
    if (p->filled != k->dtype) {
        tac__arena_fill(&b->ours, k->dtype, b->group.rank);
        if (b->theirs.base)
            tac__arena_fill(&b->theirs, k->dtype, b->group.rank);
        p->filled = k->dtype;
    }
    TAC_TRY(tac__bench_agree(b, tac__bench_codec(b)));
    if (b->opt->check) TAC_TRY(tac__check(b, k, &row.wrong));
    if (row.wrong > 0) p->wrong += row.wrong;
    TAC_TRY(tac__measure(b, k, &row));
    if (b->group.rank == 0) tac__last_algorithm(b, k->coll, row.algorithm);
    return tac__bench_agree(b, keep(b, &row));
}

tac_status tac__sweep(tac__comm_bench *b)
{
    progress p = {TAC_DTYPE_COUNT, 0};
    tac_status s = open_arenas(b);
    if (s >= 0) {
        if (b->speaks) tac__print_head(b);
        s = each_case(b, one_case, &p);
        if (b->speaks) tac__print_foot(b);
        if (b->group.rank == 0 && b->opt->svg && b->n_rows && s >= 0)
            s = tac__write_picture(b);
        s = tac__bench_agree(b, s);
    }
    tac__arena_close(&b->theirs);
    tac__arena_close(&b->ours);
    free(b->rows);
    if (s < 0) return s;
    if (s == TAC_INPROGRESS || (b->stop && *b->stop))
        return TAC_ERR_INTERRUPTED;
    if (p.wrong > 0)
        return tac_fail(b->ctx, TAC_ERR_INTERNAL,
                        "%.0f elements are wrong; see the table", p.wrong);
    return TAC_OK;
}
