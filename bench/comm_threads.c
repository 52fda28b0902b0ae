/* comm_threads.c: ranks as threads of this process, or one rank alone. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm_barrier.h"
#include "comm_bench.h"
#include "comm_watch.h"

/* Shared by all ranks. */
typedef struct crowd {
    const tac__bench_start *start;
    tac_thread_group *group;
    int size, spin, cpus;
    tac__meeting meeting;
    tac__watch watch;
    double **notes; /* [size] */
} crowd;

typedef struct member {
    crowd *crowd;
    pthread_t thread;
    int rank;
    tac_status status;
    char text[1024]; /* of its first failure */
} member;

static void barrier(void *state)
{
    const member *m = state;
    crowd *c = m->crowd;
    tac__watch_begin(&c->watch, m->rank);
    tac__meet(&c->meeting, c->size, c->spin, NULL, NULL);
    tac__watch_end(&c->watch, m->rank);
}

/* Every rank shows its notes; rank 0 combines them in its own; all copy. */
static void combine(void *state, double *x, size_t n, int add)
{
    const member *m = state;
    crowd *c = m->crowd;
    c->notes[m->rank] = x;
    barrier(state);
    for (int r = 1; m->rank == 0 && r < c->size; r++)
        for (size_t i = 0; i < n; i++) {
            const double y = c->notes[r][i];
            if (add)
                x[i] += y;
            else if (y > x[i])
                x[i] = y;
        }
    barrier(state);
    if (m->rank != 0) memcpy(x, c->notes[0], n * sizeof *x);
    barrier(state);
}

static void max_over(void *state, double *x, size_t n)
{
    combine(state, x, n, 0);
}

static void sum_over(void *state, double *x, size_t n)
{
    combine(state, x, n, 1);
}

static tac_status connect_again(void *state, tac_context *ctx,
                                const tac_comm_config *config, tac_comm **out)
{
    const member *m = state;
    return tac_comm_create_threads(ctx, m->crowd->group, m->rank, config, out);
}

static void keep_line(void *arg, tac_log_level level, const char *line)
{
    member *m = arg;
    if (level == TAC_LOG_ERROR) /* the last is the one that ends us */
        snprintf(m->text, sizeof m->text, "%s", line);
    else if (level != TAC_LOG_ERROR && m->rank == 0)
        fprintf(stderr, "%s\n", line);
}

static tac_status create(member *m, tac__comm_bench *b)
{
    const tac__comm_options *o = m->crowd->start->opt;
    const tac_comm_config config = tac__bench_comm_config(o);
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    cc.rank = m->rank;
    cc.world = cc.local_ranks = m->crowd->size;
    cc.threads = 1;
    cc.level = TAC_LOG_WARN;
    cc.log = keep_line;
    cc.log_arg = m;
    TAC_TRY(tac_context_create(&cc, &b->ctx));
    return tac__bench_creation(tac_comm_create_threads(
        b->ctx, m->crowd->group, m->rank, &config, &b->comm));
}

/* After a broken communication the others may wait in a barrier for ever. */
static void give_up(const member *m)
{
    fflush(stdout);
    fprintf(stderr, "comm_bench: %s\n",
            m->text[0] ? m->text : tac_status_text(m->status));
    _exit(tac__bench_exit_code(m->status));
}

static void *run_member(void *arg)
{
    member *m = arg;
    tac__comm_bench b = {.group = {.rank = m->rank,
                                   .size = m->crowd->size,
                                   .here = m->crowd->size,
                                   .cpus = m->crowd->cpus,
                                   .same_clock = 1,
                                   .state = m,
                                   .barrier = barrier,
                                   .max = max_over,
                                   .sum = sum_over,
                                   .connect = connect_again}};
    m->status = create(m, &b);
    /* Creation's verdict is agreed. */
    if (m->status >= 0) {
        m->status = tac__bench_rank(m->crowd->start, &b);
        if (tac_comm_error(b.comm, NULL, 0) < 0) give_up(m);
    }
    tac_comm_destroy(b.comm);
    tac_context_destroy(b.ctx);
    return NULL;
}

static int cpus_here(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

/* Starts ranks 1.., runs rank 0 here, waits for all; the worst status. */
static tac_status run_members(member *members, int size)
{
    for (int r = 1; r < size; r++)
        if (pthread_create(&members[r].thread, NULL, run_member, &members[r]) !=
            0) {
            fprintf(stderr,
                    "comm_bench: can't start thread rank %d of %d; use "
                    "fewer --ranks\n",
                    r, size);
            exit(1); /* the others wait for it */
        }
    run_member(&members[0]);
    tac_status s = members[0].status;
    for (int r = 1; r < size; r++) {
        pthread_join(members[r].thread, NULL);
        if (s >= 0) s = members[r].status;
    }
    return s;
}

static int run_crowd(crowd *c)
{
    member *members = calloc((size_t)c->size, sizeof *members);
    c->notes = calloc((size_t)c->size, sizeof *c->notes);
    tac_status s = TAC_ERR_NOMEM;
    if (members && c->notes) s = tac_thread_group_create(c->size, &c->group);
    tac__watch_open(&c->watch, c->size, 0, tac__bench_patience(c->start));
    if (s >= 0) {
        for (int r = 0; r < c->size; r++)
            members[r] = (member){.crowd = c, .rank = r};
        s = run_members(members, c->size);
    }
    if (s < 0)
        fprintf(stderr, "comm_bench: %s\n",
                members && members[0].text[0] ? members[0].text
                                              : tac_status_text(s));
    tac__watch_close(&c->watch);
    tac_thread_group_destroy(c->group);
    free(c->notes);
    free(members);
    return tac__bench_exit_code(s);
}

int tac__bench_threads(const tac__bench_start *s)
{
    crowd c = {.start = s, .cpus = cpus_here()};
    if (s->parsed < 0) {
        fprintf(stderr, "comm_bench: %s\n", s->message);
        return tac__bench_exit_code(s->parsed);
    }
    if (s->action != TAC_ACTION_RUN) {
        tac__bench_print(s);
        return 0;
    }
    if (strcmp(s->opt->baseline, "none") != 0) {
        fprintf(stderr,
                "comm_bench: --baseline %s needs ranks that are processes: "
                "start comm_bench with mpirun -np N, without --ranks\n",
                s->opt->baseline);
        return 2;
    }
    c.size = s->opt->ranks > 0 ? (int)s->opt->ranks : 1;
    c.spin = c.size <= c.cpus;
    return run_crowd(&c);
}
