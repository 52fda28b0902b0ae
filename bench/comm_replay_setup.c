/* comm_replay_setup.c: the tensors of a replay as gradients of a reducer, in
 * one piece of plain or symmetric memory. */
#include <stdlib.h>

#include "comm_replay_run.h"

enum { ALIGN = 64 };

static size_t up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

typedef struct extent {
    size_t n[2];
} extent;

static void describe(const tac__replay_run *r, tac_param_desc *d, extent *e)
{
    size_t at = 0;
    for (size_t i = 0; i < r->step.n; i++) {
        const tac__replay_tensor *t = &r->step.tensor[i];
        if (t->rows)
            e[i] = (extent){{t->rows, t->bytes / sizeof(float) / t->rows}};
        d[i] = (tac_param_desc){.name = t->name,
                                .count = t->bytes / sizeof(float),
                                .dtype = TAC_F32,
                                .ndim = t->rows ? 2 : 0,
                                .shape = e[i].n,
                                .grad = r->memory.base + at};
        at += up(t->bytes);
    }
}

static tac_status set_wire(tac__replay_run *r)
{
    const tac__comm_plan *p = r->b->plan;
    if (r->b->codec) return tac_reducer_set_codec(r->reducer, r->b->codec);
    if (p->wire_dtype != TAC_WIRE_SAME)
        return tac_reducer_set_wire(r->reducer, p->wire_dtype);
    return TAC_OK;
}

static tac_status make_reducer(tac__replay_run *r)
{
    tac_reducer_config c = TAC_REDUCER_CONFIG_INIT;
    tac_param_desc *d = calloc(r->step.n, sizeof *d);
    extent *e = calloc(r->step.n, sizeof *e);
    if (!d || !e) {
        free(d);
        free(e);
        return tac_fail(r->b->ctx, TAC_ERR_NOMEM, "no memory for tensors");
    }
    describe(r, d, e);
    c.first_bucket_bytes = (size_t)(r->b->opt->first_bucket_mb * 1048576.0);
    c.bucket_bytes = (size_t)(r->b->opt->bucket_mb * 1048576.0);
    c.arena = r->memory.base;
    c.arena_bytes = r->padded;
    tac_status s =
        tac_reducer_create(r->b->comm, d, r->step.n, &c, &r->reducer);
    free(d);
    free(e);
    if (s >= 0) s = set_wire(r);
    return s;
}

/* --split-embedding T: rows of T tokens a rank, all-gathered, are n T rows in
 * which each rank sends (n - 1) T; an allreduce of n T / 2 rows sends as
 * much. */
static size_t late_bytes(const tac__comm_bench *b)
{
    enum { WIDTH = 768 };
    const size_t rows = (size_t)b->group.size * (size_t)b->opt->split_embedding;
    return (rows + 1) / 2 * WIDTH * sizeof(float);
}

tac_status tac__replay_set_up(tac__replay_run *r)
{
    tac__comm_bench *b = r->b;
    TAC_TRY(tac__bench_agree(
        b, tac__replay_load(b->ctx, b->opt->replay, late_bytes(b), &r->step)));
    for (size_t i = 0; i < r->step.n; i++)
        r->padded += up(r->step.tensor[i].bytes);
    TAC_TRY(tac__arena_open(b, &r->memory, r->padded, b->plan->symmetric));
    tac__arena_fill(&r->memory, TAC_F32, b->group.rank);
    return make_reducer(r);
}

void tac__replay_tear_down(tac__replay_run *r)
{
    tac_reducer_destroy(r->reducer);
    if (r->memory.base) tac__arena_close(&r->memory);
    tac__replay_free(&r->step);
    free(r->total);
}
