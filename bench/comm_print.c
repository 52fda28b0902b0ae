/* comm_print.c: the table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm_bench.h"

const char *tac__size_text(size_t bytes, char text[24])
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    size_t u = 0;
    while (bytes && bytes % 1024 == 0 && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 24, "%zu%s", bytes, units[u]);
    return text;
}

/* What there is, or "-". */
static void cell(double x, int width, int digits)
{
    if (isnan(x))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, digits, x);
}

/* Times: three digits or so. */
static void time_cell(double us)
{
    cell(us, 10, us < 100 ? 2 : us < 10000 ? 1 : 0);
}

static void print_sides(const tac__comm_bench *b)
{
    const tac__comm_options *o = b->opt;
    printf("# wire %s, memory %s, buffers rotate through %lld MiB a side",
           o->wire, o->memory, (long long)o->rotate_mib);
    if (o->algorithm) printf(", algorithm %s", o->algorithm);
    if (o->emulate) printf(", emulate %s", o->emulate);
    putchar('\n');
    if (b->group.baseline_name)
        printf("# baseline: %s, plain memory, interleaved\n",
               b->group.baseline_name);
}

void tac__print_head(const tac__comm_bench *b)
{
    const int hosts = tac_comm_hosts(b->comm);
    printf("# tacit %s comm_bench: %d rank%s on %d host%s, transport %s (%s), "
           "%d CPUs here%s\n",
           TAC_VERSION_STRING, b->group.size, b->group.size == 1 ? "" : "s",
           hosts, hosts == 1 ? "" : "s", tac_comm_transport_name(b->comm),
           tac_comm_transport_why(b->comm), b->group.cpus,
           b->oversubscribed ? ", oversubscribed: ranks wait for a CPU" : "");
    print_sides(b);
    printf("# %6s %11s %4s %-14s %4s %5s %10s %10s %7s %7s %6s %10s %6s",
           "size", "count", "type", "op", "red", "place", "time", "p99",
           "algbw", "busbw", "#wrong", "floor", "off");
    if (b->group.baseline_name) printf(" %10s %6s", "baseline", "ratio");
    printf("  algorithm");
    printf("\n# %6s %11s %4s %-14s %4s %5s %10s %10s %7s %7s %6s %10s %6s",
           "(B)", "(elements)", "", "", "", "", "(us)", "(us)", "(GB/s)",
           "(GB/s)", "", "(us)", "(x)");
    if (b->group.baseline_name) printf(" %10s %6s", "(us)", "(x)");
    putchar('\n');
    fflush(stdout);
}

void tac__print_row(const tac__comm_bench *b, const tac__row *row)
{
    const tac__case *k = &row->k;
    const int reduces =
        k->coll == TAC_COLL_ALLREDUCE || k->coll == TAC_COLL_REDUCE_SCATTER;
    char size[24];
    printf("  %6s %11zu %4s %-14s %4s %5s", tac__size_text(k->bytes, size),
           k->count, tac_dtype_name(k->dtype), tac_coll_name(k->coll),
           reduces ? tac_op_name(k->op) : "-", k->in_place ? "in" : "out");
    time_cell(row->time_us);
    time_cell(row->p99_us);
    cell(row->algbw, 7, 2);
    cell(row->busbw, 7, 2);
    cell(row->wrong, 6, 0);
    time_cell(row->floor_us);
    cell(row->floor_ratio, 6, 2);
    if (b->group.baseline_name) {
        time_cell(row->baseline_us);
        cell(row->ratio, 6, 2);
    }
    printf("  %s\n", row->algorithm);
    fflush(stdout);
}

void tac__print_foot(const tac__comm_bench *b)
{
    if (b->stop && *b->stop)
        printf("# stopped by a signal: the lines above are complete\n");
    fflush(stdout);
}
