/* Logits of a whole dataset, in its order, on every rank; and what a program
 * measures with them. Costs the memory of all logits twice and one exchange. */
#include "trainer_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replica_impl.h"
#include "save.h"
#include "tacit/half.h"

/* What a rank has computed, in the order of its samples. */
typedef struct share {
    size_t rows, classes; /* rows: the same on all ranks */
    float *logits;        /* (rows,classes) */
    int32_t *labels;      /* (rows) */
    void *raw;            /* a batch as the device has it */
} share;

static tac_status share_open(tac__run *run, const tac__part *part, share *s)
{
    const size_t rows = tac_sampler_length(part->sampler);
    const size_t classes = tac_model_config_of(run->replica->model)->classes;

    *s = (share){.rows = rows, .classes = classes};
    s->logits = calloc(rows * classes + 1, sizeof *s->logits);
    s->labels = calloc(rows + 1, sizeof *s->labels);
    s->raw = malloc(rows * classes * sizeof(float) + 1);
    if (s->logits && s->labels && s->raw) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_NOMEM,
                    "no memory for %zu x %zu logits", rows, classes);
}

static void share_close(share *s)
{
    free(s->logits);
    free(s->labels);
    free(s->raw);
}

static tac_status keep(tac_replica *r, const tac_tensor *logits, share *s,
                       size_t at, size_t rows)
{
    const tac_device_ops *ops = tac_device_ops_of(r->device);
    const size_t n = rows * s->classes;
    float *to = s->logits + at * s->classes;

    TAC_TRY(ops->copy(tac_device_impl(r->device), s->raw, logits->data,
                      tac_tensor_bytes(logits), TAC_COPY_DEVICE_TO_HOST, NULL));
    TAC_TRY(ops->queue_sync(tac_device_impl(r->device), NULL));
    if (logits->dtype == TAC_F16)
        tac_f16_to_f32_n(to, s->raw, n);
    else if (logits->dtype == TAC_BF16)
        tac_bf16_to_f32_n(to, s->raw, n);
    else
        memcpy(to, s->raw, n * sizeof *to);
    return TAC_OK;
}

static tac_status run_through(tac__run *run, tac__part *part, share *s)
{
    const tac_batch *batch;
    size_t at = 0;

    TAC_TRY(tac_loader_start_epoch(part->loader, 0));
    for (;;) {
        tac_tensor *logits;
        tac_xent xent;

        TAC_TRY(tac_loader_next(part->loader, &batch));
        if (!batch) return TAC_OK;
        TAC_TRY(tac_replica_forward_eval(run->replica, batch, &logits, &xent));
        TAC_TRY(tac__history_end_step(run->replica, NULL));
        TAC_TRY(keep(run->replica, logits, s, at, batch->count));
        memcpy(s->labels + at, batch->y, batch->count * sizeof *batch->y);
        at += batch->count;
    }
}

/* Training's sums stay as they are. */
static tac_status compute(tac__run *run, tac__part *part, share *s,
                          tac_metrics *m)
{
    tac_metrics kept;

    TAC_TRY(tac_replica_take_metrics(run->replica, &kept));
    TAC_TRY(run_through(run, part, s));
    TAC_TRY(tac_replica_take_metrics(run->replica, m));
    return tac__history_restore(run->replica, &kept);
}

/* Sample k of rank r is the dataset's k * ranks + r; what is beyond its end was
 * there before. */
static void put_in_order(const share *s, const float *logits,
                         const int32_t *labels, int ranks, size_t n,
                         float *to_logits, int32_t *to_labels)
{
    for (size_t i = 0; i < n; i++) {
        const size_t r = i % (size_t)ranks, k = i / (size_t)ranks;
        const size_t from = r * s->rows + k;

        memcpy(to_logits + i * s->classes, logits + from * s->classes,
               s->classes * sizeof *logits);
        to_labels[i] = labels[from];
    }
}

static tac_status exchange(tac__run *run, const share *s, float *logits,
                           int32_t *labels)
{
    tac_req *req = NULL;

    TAC_TRY(tac_allgather(run->rank->comm, s->logits, logits,
                          s->rows * s->classes, TAC_F32, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    TAC_TRY(tac_allgather(run->rank->comm, s->labels, labels, s->rows, TAC_I32,
                          NULL, &req));
    return tac_wait(req, 0);
}

static tac_status gather(tac__run *run, const tac__part *part, const share *s,
                         float **logits, int32_t **labels)
{
    const int ranks = run->rank->world;
    const size_t n = tac_sampler_count(part->sampler);
    const size_t all = s->rows * (size_t)ranks;
    float *x = malloc((all + n + 1) * s->classes * sizeof *x);
    int32_t *y = malloc((all + n + 1) * sizeof *y);
    tac_status status =
        x && y ? TAC_OK
               : tac_fail(run->rank->ctx, TAC_ERR_NOMEM,
                          "no memory for %zu x %zu logits", n, s->classes);

    if (status >= 0) status = exchange(run, s, x, y);
    if (status >= 0) {
        *logits = malloc((n * s->classes + 1) * sizeof *x);
        *labels = malloc((n + 1) * sizeof *y);
        if (*logits && *labels)
            put_in_order(s, x, y, ranks, n, *logits, *labels);
        else
            status = tac_fail(run->rank->ctx, TAC_ERR_NOMEM,
                              "no memory for %zu x %zu logits", n, s->classes);
    }
    free(x);
    free(y);
    return status;
}

tac_status tac__run_predict_all(tac__run *run, tac__part *part, tac_metrics *m,
                                float **logits, int32_t **labels)
{
    share s;
    tac_status status = share_open(run, part, &s);

    *logits = NULL;
    *labels = NULL;
    if (status >= 0) status = compute(run, part, &s, m);
    if (status >= 0) status = gather(run, part, &s, logits, labels);
    share_close(&s);
    if (status >= 0) return status;
    free(*logits);
    free(*labels);
    *logits = NULL;
    *labels = NULL;
    return status;
}

/* ---- compute_metrics ------------------------------------------------------
 */

typedef struct told {
    int64_t n;
    tac_metric values[TAC_TRAINER_METRICS];
} told;

static tac_status check(tac__run *run, const told *t, size_t n)
{
    if (n > TAC_TRAINER_METRICS)
        return tac_fail(run->rank->ctx, TAC_ERR_ARG,
                        "compute_metrics gave %zu values; at most %d are kept",
                        n, TAC_TRAINER_METRICS);
    for (size_t i = 0; i < n; i++) {
        const char *name = t->values[i].name;

        if (!name[0] || !strcmp(name, "loss"))
            return tac_fail(run->rank->ctx, TAC_ERR_ARG,
                            "value %zu of compute_metrics is called '%s': give "
                            "it a name, other than loss",
                            i, name);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(t->values[k].name, name))
                return tac_fail(run->rank->ctx, TAC_ERR_ARG,
                                "values %zu and %zu of compute_metrics are "
                                "both called '%s': give each its own name",
                                k, i, name);
    }
    return TAC_OK;
}

static tac_status ask(tac__run *run, const tac_eval_prediction *p, told *t)
{
    const tac_trainer_config *c = &run->trainer->config;
    size_t n = 0;

    memset(t, 0, sizeof *t);
    if (run->rank->rank != 0) return TAC_OK;
    TAC_TRY(
        c->compute_metrics(c->metrics_arg, run->rank->ctx, p, t->values, &n));
    for (size_t i = 0; i < TAC_TRAINER_METRICS; i++)
        t->values[i].name[sizeof t->values[i].name - 1] = '\0';
    TAC_TRY(check(run, t, n));
    t->n = (int64_t)n;
    return TAC_OK;
}

static tac_status agreed_ask(tac__run *run, const tac_eval_prediction *p,
                             told *t)
{
    tac__capture *c = run->rank->capture;
    const int armed = c->armed;
    tac_status s;

    c->armed = 1;
    s = tac__run_agree(run, ask(run, p, t));
    c->armed = armed;
    run->agreed = s < 0;
    return s;
}

static tac_status measure(tac__run *run, const tac_eval_prediction *p)
{
    told t;
    tac_req *req = NULL;

    TAC_TRY(agreed_ask(run, p, &t));
    TAC_TRY(
        tac_broadcast(run->rank->comm, &t, sizeof t, TAC_U8, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    memcpy(run->own_values, t.values, sizeof t.values);
    run->own = run->own_values;
    run->n_own = (size_t)t.n;
    return TAC_OK;
}

tac_status tac__run_measure(tac__run *run, tac__part *part, tac_metrics *m)
{
    tac_trainer *t = run->trainer;
    tac_eval_prediction p;

    free(t->logits);
    free(t->labels);
    t->logits = NULL;
    t->labels = NULL;
    TAC_TRY(tac__run_predict_all(run, part, m, &t->logits, &t->labels));
    p = (tac_eval_prediction){
        t->logits, t->labels, tac_sampler_count(part->sampler),
        tac_model_config_of(run->replica->model)->classes};
    return run->own_metrics ? measure(run, &p) : TAC_OK;
}

double tac__run_own(const tac__run *run, const char *name, double otherwise)
{
    for (size_t i = 0; i < run->n_own; i++)
        if (!strcmp(run->own[i].name, name)) return run->own[i].value;
    return otherwise;
}
