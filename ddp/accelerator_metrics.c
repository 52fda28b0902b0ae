/* Evaluation by hand, what ranks tell each other, and logging. */
#include "accelerator_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replica_impl.h"
#include "tacit/folder.h"
#include "tacit/half.h"
#include "tacit/json.h"

/* ---- evaluation -----------------------------------------------------------
 */

static tac_status expect_eval(const tac_accelerator *a, const char *call)
{
    if (a->replica && a->eval_loader) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_STATE,
                    "tac_accelerator_%s: prepare had no eval_dataset", call);
}

tac_status tac_accelerator_eval_start(tac_accelerator *a)
{
    TAC_TRY(expect_eval(a, "eval_start"));
    TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, "eval_start",
                                    "step and zero_grad"));
    TAC_TRY(tac_replica_take_metrics(a->replica, &a->kept));
    return tac_loader_start_epoch(a->eval_loader, 0);
}

tac_status tac_accelerator_eval_next(tac_accelerator *a, const tac_batch **out)
{
    tac_metrics of_evaluation;

    TAC_TRY(expect_eval(a, "eval_next"));
    if (!a->evaluating)
        TAC_TRY(
            tac__accelerator_expect(a, TAC__IDLE, "eval_next", "eval_start"));
    TAC_TRY(tac__accelerator_given(a, out, "eval_next", "out"));
    *out = NULL;
    TAC_TRY(tac_loader_next(a->eval_loader, &a->batch));
    *out = a->batch;
    a->evaluating = a->batch != NULL;
    a->stage = a->batch ? TAC__BATCH : TAC__IDLE;
    if (a->batch) return TAC_OK;
    TAC_TRY(tac_replica_take_metrics(a->replica, &of_evaluation));
    return tac__history_restore(a->replica, &a->kept);
}

tac_status tac_accelerator_evaluate(tac_accelerator *a, tac_metrics *out)
{
    TAC_TRY(expect_eval(a, "evaluate"));
    if (a->stage != TAC__STEPPED)
        TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, "evaluate",
                                        "step and zero_grad"));
    TAC_TRY(tac__accelerator_given(a, out, "evaluate", "out"));
    TAC_TRY(tac_replica_evaluate(a->replica, a->eval_loader, out));
    return tac_metrics_reduce(a->comm, out);
}

tac_status tac_accelerator_logits(tac_accelerator *a, float *out)
{
    const tac_device_ops *ops;
    size_t bytes, n;

    TAC_TRY(tac__accelerator_expect(a, TAC__FORWARD, "logits", "forward"));
    TAC_TRY(tac__accelerator_given(a, out, "logits", "out"));
    bytes = tac_tensor_bytes(a->logits);
    n = bytes / tac_dtype_size(a->logits->dtype);
    TAC_TRY(tac__accelerator_room(a, bytes));
    ops = tac_device_ops_of(a->replica->device);
    TAC_TRY(ops->copy(tac_device_impl(a->replica->device), a->gathered,
                      a->logits->data, bytes, TAC_COPY_DEVICE_TO_HOST, NULL));
    TAC_TRY(ops->queue_sync(tac_device_impl(a->replica->device), NULL));
    if (a->logits->dtype == TAC_F16)
        tac_f16_to_f32_n(out, (const void *)a->gathered, n);
    else if (a->logits->dtype == TAC_BF16)
        tac_bf16_to_f32_n(out, (const void *)a->gathered, n);
    else
        memcpy(out, a->gathered, bytes);
    return TAC_OK;
}

/* ---- exchanges ------------------------------------------------------------
 */

static tac_status allgather(tac_accelerator *a, const void *from, size_t bytes,
                            unsigned char *to)
{
    tac_req *req = NULL;

    TAC_TRY(tac_allgather(a->comm, from, to, bytes, TAC_U8, NULL, &req));
    return tac_wait(req, 0);
}

/* Twice so much, and a byte more each, is still a size. */
static tac_status check_bytes(const tac_accelerator *a, size_t bytes,
                              size_t times, const char *call)
{
    if (times == 0 || bytes < (SIZE_MAX / 2 - 1) / times - 1) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_ARG,
                    "tac_accelerator_%s: %zu bytes, %zu times, are more than a "
                    "machine can have",
                    call, bytes, times);
}

tac_status tac_accelerator_gather(tac_accelerator *a, const void *data,
                                  size_t bytes, const void **out)
{
    TAC_TRY(tac__accelerator_given(a, out, "gather", "out"));
    if (bytes) TAC_TRY(tac__accelerator_given(a, data, "gather", "data"));
    TAC_TRY(check_bytes(a, bytes, (size_t)a->world, "gather"));
    TAC_TRY(tac__accelerator_room(a, bytes * (size_t)a->world + 1));
    TAC_TRY(allgather(a, data, bytes, a->gathered));
    *out = a->gathered;
    return TAC_OK;
}

/* Row i of rank r is the i * world + r-th of the batch of all ranks. */
static size_t put_in_order(const tac_accelerator *a, size_t row_bytes,
                           const unsigned char *all, const unsigned char *valid,
                           unsigned char *to)
{
    const size_t count = a->batch->count, world = (size_t)a->world;
    size_t n = 0;

    for (size_t k = 0; k < count * world; k++) {
        const size_t from = k % world * count + k / world;

        if (!valid[from]) continue;
        memcpy(to + n++ * row_bytes, all + from * row_bytes, row_bytes);
    }
    return n;
}

tac_status tac_accelerator_gather_for_metrics(tac_accelerator *a,
                                              const void *rows,
                                              size_t row_bytes,
                                              const void **out, size_t *n)
{
    size_t count, total;
    unsigned char *all, *valid;

    if (!a->batch)
        return tac_fail(a->ctx, TAC_ERR_STATE,
                        "tac_accelerator_gather_for_metrics: there is no "
                        "batch; call eval_next first");
    count = a->batch->count;
    total = count * (size_t)a->world;
    TAC_TRY(tac__accelerator_given(a, out, "gather_for_metrics", "out"));
    TAC_TRY(tac__accelerator_given(a, n, "gather_for_metrics", "n"));
    if (row_bytes && count)
        TAC_TRY(tac__accelerator_given(a, rows, "gather_for_metrics", "rows"));
    TAC_TRY(check_bytes(a, row_bytes, total, "gather_for_metrics"));
    TAC_TRY(tac__accelerator_room(a, total * (2 * row_bytes + 1) + 1));
    all = a->gathered + total * row_bytes;
    valid = all + total * row_bytes;
    TAC_TRY(allgather(a, rows, count * row_bytes, all));
    TAC_TRY(allgather(a, a->batch->valid, count, valid));
    *n = put_in_order(a, row_bytes, all, valid, a->gathered);
    *out = a->gathered;
    return TAC_OK;
}

tac_status tac_accelerator_reduce(tac_accelerator *a, double *values, size_t n,
                                  int mean)
{
    tac_req *req = NULL;

    if (n) TAC_TRY(tac__accelerator_given(a, values, "reduce", "values"));
    TAC_TRY(tac_allreduce(a->comm, values, values, n, TAC_F64, TAC_SUM, NULL,
                          &req));
    TAC_TRY(tac_wait(req, 0));
    for (size_t i = 0; mean && i < n; i++) values[i] /= a->world;
    return TAC_OK;
}

int tac_accelerator_is_main_process(const tac_accelerator *a)
{
    return a->rank == 0;
}

tac_status tac_accelerator_wait_for_everyone(tac_accelerator *a)
{
    return tac__accelerator_agree(a, TAC_OK);
}

/* ---- logging --------------------------------------------------------------
 */

static tac_status open_log(tac_accelerator *a)
{
    char path[4096];

    if (a->log || !a->project_dir) return TAC_OK;
    if (tac_make_folders(a->project_dir) == 0 &&
        snprintf(path, sizeof path, "%s/metrics.jsonl", a->project_dir) <
            (int)sizeof path)
        a->log = fopen(path, "a");
    if (a->log) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_IO,
                    "can't write %s/metrics.jsonl: %s; choose a project_dir "
                    "that you may write to",
                    a->project_dir, strerror(errno));
}

static tac_status write_line(tac_accelerator *a, uint64_t step,
                             const tac_checkpoint_metric *values, size_t n)
{
    tac_json *j = tac_json_create();
    const char *text;
    int ok;

    tac_json_begin_object(j, NULL);
    tac_json_u64(j, "step", step);
    for (size_t i = 0; i < n; i++)
        tac_json_f64(j, values[i].name, values[i].value);
    tac_json_end_object(j);
    text = tac_json_text(j, NULL);
    ok = text && fprintf(a->log, "%s\n", text) > 0 && fflush(a->log) == 0;
    tac_json_destroy(j);
    if (ok) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_IO, "can't write %s/metrics.jsonl: %s",
                    a->project_dir, strerror(errno));
}

tac_status tac_accelerator_log(tac_accelerator *a,
                               const tac_checkpoint_metric *values, size_t n)
{
    const uint64_t step = tac_accelerator_steps(a);

    if (n) TAC_TRY(tac__accelerator_given(a, values, "log", "values"));
    if (a->rank != 0) return TAC_OK;
    if (a->out) {
        fprintf(a->out, "step %llu", (unsigned long long)step);
        for (size_t i = 0; i < n; i++)
            fprintf(a->out, "  %s %.6g", values[i].name, values[i].value);
        fprintf(a->out, "\n");
    }
    TAC_TRY(open_log(a));
    return a->log ? write_line(a, step, values, n) : TAC_OK;
}
