/* comm_rank.c: what a rank does whatever started it: codec, verdicts, mode. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm_bench.h"

int tac__bench_exit_code(tac_status s)
{
    switch (s) {
    case TAC_OK: return 0;
    case TAC_ERR_ARG:
    case TAC_ERR_CONFIG:
    case TAC_ERR_DATA:
    case TAC_ERR_UNSUPPORTED: return 2;
    case TAC_ERR_TIMEOUT: return 124;
    default: return 1;
    }
}

/* A file that can't be read at creation is a mistake in the options. */
tac_status tac__bench_creation(tac_status s)
{
    return s == TAC_ERR_IO ? TAC_ERR_CONFIG : s;
}

tac_comm_config tac__bench_comm_config(const tac__comm_options *o)
{
    tac_comm_config c = TAC_COMM_CONFIG_INIT;
    c.transport = o->transport;
    c.timeout_ms = (int)(o->timeout_s * 1000);
    c.deterministic = o->deterministic;
    c.progress = strcmp(o->progress, "thread") ? TAC_PROGRESS_CALLER
                                               : TAC_PROGRESS_THREAD;
    c.emulate = o->emulate;
    c.algorithms = o->algorithms;
    c.tune_file = o->tune_file;
    return c;
}

int64_t tac__bench_patience(const tac__bench_start *s)
{
    return (s->parsed >= 0 ? s->opt->timeout_s : 300) + 2;
}

/* With a broken communicator there is nobody to agree with: whoever knows of it
 * ends the job, and says why. */
tac_status tac__bench_agree(tac__comm_bench *b, tac_status mine)
{
    if (mine < 0 && b->comm && tac_comm_error(b->comm, NULL, 0) < 0)
        return mine;
    double worst = mine < 0 ? -(double)mine : 0;
    b->group.max(b->group.state, &worst, 1);
    return (tac_status)(-worst);
}

int tac__bench_stopped(tac__comm_bench *b)
{
    double stop = b->stop && *b->stop ? 1 : 0;
    b->group.max(b->group.state, &stop, 1);
    return stop > 0;
}

/* What a codec does once it has begun is measured, unless told otherwise. */
tac_status tac__bench_codec(tac__comm_bench *b)
{
    char spec[256];
    const char *given = b->plan->codec;
    if (!given) return TAC_OK;
    tac_codec_destroy(b->codec);
    b->codec = NULL;
    const int begins =
        strncmp(given, "powersgd", 8) == 0 && !strstr(given, "start=");
    snprintf(spec, sizeof spec, "%.200s%s", given, begins ? ",start=0" : "");
    return tac_codec_create(b->ctx, spec, &b->codec);
}

/* A result that can't be kept is better not measured. Leaves no new file. */
static tac_status check_path(tac__comm_bench *b, const char *option,
                             const char *path)
{
    if (!path) return TAC_OK;
    const int there = access(path, F_OK) == 0;
    FILE *f = fopen(path, "a");
    if (!f)
        return tac_fail(b->ctx, TAC_ERR_IO, "--%s: can't write %s: %m", option,
                        path);
    fclose(f);
    if (!there) unlink(path);
    return TAC_OK;
}

static const char *dump_path(const tac__comm_bench *b, char path[1024])
{
    if (!b->opt->dump) return NULL;
    snprintf(path, 1024, "%.1000s.%d.json", b->opt->dump, b->group.rank);
    return path;
}

static tac_status check_paths(tac__comm_bench *b)
{
    char path[1024];
    if (b->group.rank == 0) {
        if (b->opt->json && strcmp(b->opt->json, "-") != 0)
            TAC_TRY(check_path(b, "json", b->opt->json));
        TAC_TRY(check_path(b, "svg", b->opt->svg));
        TAC_TRY(check_path(b, "tune", b->opt->tune));
    }
    return check_path(b, "dump", dump_path(b, path));
}

tac_status tac__bench_rank(const tac__bench_start *s, tac__comm_bench *b)
{
    b->opt = s->opt;
    b->plan = s->plan;
    b->stop = s->stop;
    b->oversubscribed = b->group.here > b->group.cpus;
    b->speaks = b->group.rank == 0 && !s->opt->quiet;
    char path[1024];
    tac_status status = tac__bench_agree(b, check_paths(b));
    if (status < 0) return status;
    status = tac__bench_agree(b, tac__bench_codec(b));
    if (status >= 0) status = s->main(b);
    if (dump_path(b, path)) {
        const tac_status dumped = tac_comm_dump(b->comm, path);
        if (status >= 0) status = dumped;
    }
    tac_codec_destroy(b->codec);
    return status;
}
