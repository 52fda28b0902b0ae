/* comm_json.c: one object a row, in one array. */
#include <math.h>
#include <stdio.h>

#include "comm_bench.h"

static void write_case(tac_json *j, const tac__comm_bench *b, const tac__row *r)
{
    const tac__case *k = &r->k;
    tac_json_str(j, "op", tac_coll_name(k->coll));
    tac_json_str(j, "redop", tac_op_name(k->op));
    tac_json_str(j, "dtype", tac_dtype_name(k->dtype));
    tac_json_str(j, "wire", b->opt->wire);
    tac_json_str(j, "memory", b->opt->memory);
    tac_json_bool(j, "in_place", k->in_place);
    tac_json_str(j, "transport", tac_comm_transport_name(b->comm));
    tac_json_str(j, "algorithm", r->algorithm);
    tac_json_i64(j, "world", b->group.size);
    tac_json_i64(j, "hosts", tac_comm_hosts(b->comm));
    tac_json_i64(j, "cpus", b->group.cpus);
    tac_json_bool(j, "oversubscribed", b->oversubscribed);
    tac_json_u64(j, "bytes", k->bytes);
    tac_json_u64(j, "count", k->count);
}

static void write_times(tac_json *j, const tac__comm_bench *b,
                        const tac__row *r)
{
    tac_json_u64(j, "iterations", r->iters);
    tac_json_f64(j, "time_us", r->time_us);
    tac_json_f64(j, "p99_us", r->p99_us);
    tac_json_f64(j, "algbw_gbs", r->algbw);
    tac_json_f64(j, "busbw_gbs", r->busbw);
    tac_json_f64(j, "wrong", r->wrong);
    tac_json_str(j, "baseline", b->group.baseline_name);
    tac_json_f64(j, "baseline_us", r->baseline_us);
    tac_json_f64(j, "baseline_p99_us", r->baseline_p99_us);
    tac_json_f64(j, "ratio", r->ratio);
    tac_json_f64(j, "floor_us", r->floor_us);
    tac_json_f64(j, "floor_ratio", r->floor_ratio);
    tac_json_f64(j, "bytes_wire", r->bytes_wire);
    tac_json_f64(j, "bytes_between_hosts", r->bytes_between_hosts);
}

static void write_all(tac_json *j, const tac__comm_bench *b)
{
    tac_json_begin_array(j, NULL);
    for (size_t i = 0; i < b->n_rows; i++) {
        tac_json_begin_object(j, NULL);
        write_case(j, b, &b->rows[i]);
        write_times(j, b, &b->rows[i]);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
}

tac_status tac__write_rows(tac__comm_bench *b)
{
    tac_json *j = tac_json_create();
    if (!j) return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for results");
    write_all(j, b);
    const tac_status s = tac_json_write_file(j, b->opt->json);
    tac_json_destroy(j);
    if (s >= 0) return s;
    return tac_fail(b->ctx, s, "can't write %s: %m", b->opt->json);
}
