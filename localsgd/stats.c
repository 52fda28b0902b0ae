/* stats.c: what was sent, by comm/'s own count, and figures of deltas. */
#include <math.h>

#include "impl.h"

static tac_comm_op_stats counted(const tac_comm *comm, tac_coll coll)
{
    tac_comm_stats s;
    if (!comm) return (tac_comm_op_stats){0};
    tac_comm_stats_get(comm, &s);
    return s.op[coll];
}

/* tac_localsgd_mean uses the outermost communicator. */
static uint64_t not_ours(const tac_localsgd *l, int level)
{
    return level == l->n_levels - 1 ? l->mean_bytes : 0;
}

uint64_t tac__stats_wire(const tac_localsgd *l, int level)
{
    const tac__level *v = &l->levels[level];
    return v->bytes_wire + counted(v->data, TAC_COLL_ALLREDUCE).bytes_wire -
           not_ours(l, level);
}

uint64_t tac__stats_logical(const tac_localsgd *l, int level)
{
    const tac__level *v = &l->levels[level];
    return v->bytes_logical +
           counted(v->data, TAC_COLL_ALLREDUCE).bytes_logical -
           not_ours(l, level);
}

uint64_t tac__stats_control(const tac_localsgd *l, int level)
{
    const tac__level *v = &l->levels[level];
    return v->bytes_control +
           counted(v->control, TAC_COLL_ALLGATHER).bytes_wire;
}

static double waited(const tac_comm *comm)
{
    tac_comm_stats s;
    if (!comm) return 0;
    tac_comm_stats_get(comm, &s);
    return s.total.wait_s;
}

double tac__stats_wait(const tac_localsgd *l)
{
    double sum = 0;
    for (int i = 0; i < l->n_levels; i++)
        sum += waited(l->levels[i].data) + waited(l->levels[i].control);
    return sum;
}

/* The first three are told with the next card. */
void tac__stats_figures(tac_localsgd *l, double distance2, double dot,
                        double own2, double norm2)
{
    l->figures.distance2 = distance2;
    l->figures.dot = dot;
    l->figures.own2 = own2;
    l->stats.delta_norm = sqrt(norm2);
}

void tac_localsgd_stats_get(const tac_localsgd *l, tac_localsgd_stats *out)
{
    *out = l->stats;
    for (int i = 0; i < l->n_levels; i++) {
        out->bytes_level[i] = tac__stats_wire(l, i);
        out->bytes_wire += out->bytes_level[i];
        out->bytes_logical += tac__stats_logical(l, i);
        out->bytes_control += tac__stats_control(l, i);
    }
    out->wait_s += tac__stats_wait(l);
    /* all that was no other tensor's was parameters' */
    uint64_t others = 0;
    for (int r = 0; r < TAC_TENSOR_ROLES; r++)
        if (r != TAC_ROLE_PARAM) others += out->bytes_role[r];
    out->bytes_role[TAC_ROLE_PARAM] = out->bytes_wire - others;
}

void tac__stats_keep(tac_localsgd *l)
{
    l->stats.wait_s += tac__stats_wait(l);
    tac_localsgd_comm_stats(l, &l->before);
    for (int i = 0; i < l->n_levels; i++) {
        tac__level *v = &l->levels[i];
        const uint64_t logical = tac__stats_logical(l, i);
        const uint64_t wire = tac__stats_wire(l, i);
        v->bytes_control = tac__stats_control(l, i);
        v->bytes_logical = logical;
        v->bytes_wire = wire;
    }
    l->mean_bytes = 0;
}

static void add_total(tac_comm_op_stats *out, const tac_comm *comm)
{
    tac_comm_stats s;
    if (!comm) return;
    tac_comm_stats_get(comm, &s);
    out->calls += s.total.calls;
    out->calls_symmetric += s.total.calls_symmetric;
    out->bytes_logical += s.total.bytes_logical;
    out->bytes_wire += s.total.bytes_wire;
    out->bytes_between_hosts += s.total.bytes_between_hosts;
    out->busy_s += s.total.busy_s;
    out->wait_s += s.total.wait_s;
    out->exposed_s += s.total.exposed_s;
    out->cpu_s += s.total.cpu_s;
}

void tac_localsgd_comm_stats(const tac_localsgd *l, tac_comm_op_stats *out)
{
    *out = l->before;
    for (int i = 0; i < l->n_levels; i++) {
        add_total(out, l->levels[i].data);
        add_total(out, l->levels[i].control);
    }
}
