/* comm_replay_report.c: what a replay says. */
#include <math.h>
#include <stdio.h>

#include "comm_replay.h"

static double overlap_percent(const tac__replay_result *r)
{
    if (!(r->comm_us > 0)) return 0;
    const double share = 1 - r->exposed_us / r->comm_us;
    return share < 0 ? 0 : share > 1 ? 100 : 100 * share;
}

static size_t all_bytes(const tac__replay_step *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += s->tensor[i].bytes;
    return sum;
}

static double share_of_comm(const tac__replay_result *r, double us)
{
    return r->comm_us > 0 ? 100 * us / r->comm_us : 0;
}

void tac__replay_print(const tac__comm_bench *b, const tac__replay_step *s,
                       const tac__replay_result *r)
{
    const int hosts = tac_comm_hosts(b->comm);
    printf("# tacit %s comm_bench: replay of %s: %zu tensors, %zu bytes, "
           "%zu buckets\n",
           TAC_VERSION_STRING, s->source, s->n, all_bytes(s), r->buckets);
    printf("# %d ranks on %d host%s, transport %s (%s), wire %s, memory %s, "
           "progress %s%s\n",
           b->group.size, hosts, hosts == 1 ? "" : "s",
           tac_comm_transport_name(b->comm), tac_comm_transport_why(b->comm),
           b->opt->wire, b->opt->memory, b->opt->progress,
           b->oversubscribed ? ", oversubscribed" : "");
    printf("steps                  %12zu\n", r->steps);
    printf("total                  %12.3f ms\n", r->total_us * 1e-3);
    printf("compute (%-5s)        %12.3f ms\n", b->opt->compute,
           r->compute_us * 1e-3);
    printf("pure communication     %12.3f ms\n", r->comm_us * 1e-3);
    printf("exposed                %12.3f ms  %6.1f %% of communication\n",
           r->exposed_us * 1e-3, share_of_comm(r, r->exposed_us));
    printf("  lower bound          %12.3f ms  %6.1f %%, from the ready times\n",
           r->bound_us * 1e-3, share_of_comm(r, r->bound_us));
    printf("overlap                %12.1f %%\n", overlap_percent(r));
    printf("bytes of a rank        %12.0f logical, %.0f on the wire\n",
           r->bytes_logical, r->bytes_wire);
    printf("bytes between hosts    %12.0f by all ranks\n",
           r->bytes_between_hosts);
    fflush(stdout);
}

static void write_setting(tac_json *j, const tac__comm_bench *b,
                          const tac__replay_step *s)
{
    tac_json_str(j, "replay", s->source);
    tac_json_u64(j, "tensors", s->n);
    tac_json_u64(j, "bytes", all_bytes(s));
    tac_json_str(j, "wire", b->opt->wire);
    tac_json_str(j, "memory", b->opt->memory);
    tac_json_str(j, "transport", tac_comm_transport_name(b->comm));
    tac_json_str(j, "progress", b->opt->progress);
    tac_json_str(j, "compute", b->opt->compute);
    tac_json_i64(j, "world", b->group.size);
    tac_json_i64(j, "hosts", tac_comm_hosts(b->comm));
    tac_json_bool(j, "oversubscribed", b->oversubscribed);
}

static void write_result(tac_json *j, const tac__replay_result *r)
{
    tac_json_u64(j, "steps", r->steps);
    tac_json_u64(j, "buckets", r->buckets);
    tac_json_f64(j, "total_us", r->total_us);
    tac_json_f64(j, "compute_us", r->compute_us);
    tac_json_f64(j, "comm_us", r->comm_us);
    tac_json_f64(j, "exposed_us", r->exposed_us);
    tac_json_f64(j, "bound_us", r->bound_us);
    tac_json_f64(j, "overlap_percent", overlap_percent(r));
    tac_json_f64(j, "bytes_logical", r->bytes_logical);
    tac_json_f64(j, "bytes_wire", r->bytes_wire);
    tac_json_f64(j, "bytes_between_hosts", r->bytes_between_hosts);
}

tac_status tac__replay_write(tac__comm_bench *b, const tac__replay_step *s,
                             const tac__replay_result *r)
{
    tac_json *j = tac_json_create();
    if (!j) return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for results");
    tac_json_begin_array(j, NULL);
    tac_json_begin_object(j, NULL);
    write_setting(j, b, s);
    write_result(j, r);
    tac_json_end_object(j);
    tac_json_end_array(j);
    const tac_status status = tac_json_write_file(j, b->opt->json);
    tac_json_destroy(j);
    if (status >= 0) return status;
    return tac_fail(b->ctx, status, "can't write %s: %m", b->opt->json);
}
