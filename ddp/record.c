/* What communication sees of a training step: tensors, the order and the times
 * in which their gradients become ready, and how long computing takes.
 *
 * Times are of compute: what the training thread spends in the reducer is taken
 * out, so that a replay with other communication is a fair one. Steps are kept
 * in a ring of 64; the one with the median of compute is written. With several
 * micro-steps a step, the last backward is the one that communicates; those
 * before it count as forward. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>

#include "tacit/clock.h"
#include "tacit/json.h"

enum { KEPT = 64 };

typedef struct ready {
    size_t place;
    double us; /* of backward's compute */
} ready;

typedef struct kept_step {
    double forward_s, backward_s, update_s;
    size_t n;
    ready *event; /* [n] */
} kept_step;

struct tac__record {
    tac_replica *r;
    size_t params, steps;
    uint64_t backward_ns;            /* start of the present backward */
    tac_replica_times first, middle; /* at begin and at backward */
    ready *events;                   /* [KEPT][params] */
    kept_step step[KEPT];
};

tac_status tac__record_create(tac_replica *r, tac__record **out)
{
    const size_t n = tac_params_count(r->params);
    tac__record *rec = calloc(1, sizeof *rec);

    if (rec) rec->events = calloc(KEPT * (n + 1), sizeof *rec->events);
    if (!rec || !rec->events) {
        free(rec);
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for --record");
    }
    rec->r = r;
    rec->params = n;
    for (size_t i = 0; i < KEPT; i++)
        rec->step[i].event = rec->events + i * (n + 1);
    *out = rec;
    return TAC_OK;
}

void tac__record_destroy(tac__record *rec)
{
    if (!rec) return;
    free(rec->events);
    free(rec);
}

static kept_step *present(tac__record *rec)
{
    return &rec->step[rec->steps % KEPT];
}

void tac__record_begin(tac__record *rec)
{
    if (rec) rec->first = rec->r->times;
}

void tac__record_backward(tac__record *rec)
{
    if (!rec) return;
    present(rec)->n = 0;
    rec->middle = rec->r->times;
    rec->backward_ns = tac_clock_ns();
}

void tac__record_ready(tac__record *rec, size_t place, uint64_t now_ns)
{
    if (!rec) return;
    kept_step *s = present(rec);
    double us =
        (double)(now_ns - rec->backward_ns) * 1e-3 - rec->r->hook_s * 1e6;

    if (s->n >= rec->params) return;
    if (s->n && us < s->event[s->n - 1].us) us = s->event[s->n - 1].us;
    s->event[s->n++] = (ready){place, us > 0 ? us : 0};
}

void tac__record_end(tac__record *rec)
{
    if (!rec) return;
    const tac_replica_times *now = &rec->r->times;
    kept_step *s = present(rec);

    s->forward_s = now->forward_s - rec->first.forward_s +
                   rec->middle.backward_s - rec->first.backward_s;
    s->backward_s = now->backward_s - rec->middle.backward_s;
    s->update_s = now->update_s - rec->first.update_s;
    rec->steps++;
}

/* ---- the file ----------------------------------------------------------- */

static double compute_s(const kept_step *s)
{
    return s->forward_s + s->backward_s + s->update_s;
}

static int by_compute(const void *a, const void *b)
{
    const double x = compute_s(*(const kept_step *const *)a);
    const double y = compute_s(*(const kept_step *const *)b);

    return (x > y) - (x < y);
}

/* The first step plans and allocates; it counts only if it is the only one. */
static const kept_step *median_step(const tac__record *rec)
{
    const kept_step *at[KEPT];
    size_t n = 0;

    for (size_t i = rec->steps > KEPT ? rec->steps - KEPT : rec->steps > 1;
         i < rec->steps; i++)
        at[n++] = &rec->step[i % KEPT];
    qsort(at, n, sizeof *at, by_compute);
    return at[n / 2];
}

static void put_header(tac_json *j, const tac__record *rec, const kept_step *s)
{
    tac_json_begin_object(j, NULL);
    tac_json_i64(j, "replay", 1);
    tac_json_str(j, "model", rec->r->config->model);
    tac_json_i64(j, "world", tac_comm_size(rec->r->comm));
    tac_json_f64(j, "forward_us", s->forward_s * 1e6);
    tac_json_f64(j, "backward_us", s->backward_s * 1e6);
    tac_json_f64(j, "update_us", s->update_s * 1e6);
    tac_json_end_object(j);
}

static void put_tensor(tac_json *j, const tac__record *rec, const ready *e)
{
    const size_t *order = tac_params_order(rec->r->params);
    const tac_param *p = tac_params_get(rec->r->params, order[e->place]);

    tac_json_begin_object(j, NULL);
    tac_json_str(j, "name", p->name);
    tac_json_u64(j, "bytes", p->count * sizeof(float));
    tac_json_f64(j, "ready_us", e->us);
    tac_json_begin_array(j, "shape");
    for (int d = 0; d < p->ndim; d++) tac_json_u64(j, NULL, p->shape[d]);
    tac_json_end_array(j);
    tac_json_end_object(j);
}

/* Moves what the writer holds into the file, as one line. */
static int put_line(tac_json *j, FILE *f)
{
    const char *text = tac_json_text(j, NULL);
    const int ok = text && fprintf(f, "%s\n", text) > 0;

    tac_json_reset(j);
    return ok;
}

static int write_step(const tac__record *rec, FILE *f)
{
    const kept_step *s = median_step(rec);
    tac_json *j = tac_json_create();
    int ok = j != NULL;

    if (!j) return 0;
    put_header(j, rec, s);
    ok = put_line(j, f);
    for (size_t i = 0; ok && i < s->n; i++) {
        put_tensor(j, rec, &s->event[i]);
        ok = put_line(j, f);
    }
    tac_json_destroy(j);
    return ok;
}

tac_status tac__record_write(const tac__record *rec, const char *path)
{
    FILE *f;
    int ok;

    if (rec->steps == 0)
        return tac_fail(rec->r->ctx, TAC_ERR_STATE,
                        "--record: no step was trained");
    f = fopen(path, "w");
    ok = f && write_step(rec, f);
    if (f && fclose(f) != 0) ok = 0;
    if (ok) return TAC_OK;
    return tac_fail(rec->r->ctx, TAC_ERR_IO,
                    "cannot write the recording %s: %m; check --record", path);
}
