/* base_context.c: contexts, slots, the log, failures' messages, clocks. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tacit/clock.h"
#include "tacit/context.h"

typedef struct capture {
    int lines;
    tac_log_level level;
    char line[8192];
} capture;

static void keep(void *arg, tac_log_level level, const char *line)
{
    capture *c = arg;
    ++c->lines;
    c->level = level;
    snprintf(c->line, sizeof c->line, "%s", line);
}

static tac_context *make(capture *c, int rank, int world)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    memset(c, 0, sizeof *c);
    config.rank = rank;
    config.world = world;
    config.log = keep;
    config.log_arg = c;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    return ctx;
}

Test(context, defaults)
{
    cpu_set_t set;
    tac_context *ctx = NULL;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
    cr_assert_eq(tac_context_rank(ctx), 0);
    cr_assert_eq(tac_context_world(ctx), 1);
    cr_assert_eq(tac_context_cpus(ctx), CPU_COUNT(&set));
    cr_assert_eq(tac_context_threads(ctx), CPU_COUNT(&set));
    tac_context_destroy(ctx);
    tac_context_destroy(NULL);
}

Test(context, threads_are_shared_by_local_ranks)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    config.local_ranks = 100000;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    cr_assert_eq(tac_context_threads(ctx), 1);
    tac_context_destroy(ctx);
    config.threads = 7;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    cr_assert_eq(tac_context_threads(ctx), 7);
    tac_context_destroy(ctx);
}

static void refuse(const tac_context_config *config)
{
    tac_context *poison = (tac_context *)&poison, *ctx = poison;
    cr_assert_eq(tac_context_create(config, &ctx), TAC_ERR_ARG);
    cr_assert_eq(ctx, poison, "out was written on failure");
}

Test(context, bad_configurations)
{
    const tac_context_config good = TAC_CONTEXT_CONFIG_INIT;
    tac_context_config c = good;
    c.rank = 1;
    refuse(&c);
    c = good;
    c.rank = -1;
    refuse(&c);
    c = good;
    c.world = 0;
    refuse(&c);
    c = good;
    c.local_ranks = 0;
    refuse(&c);
    c = good;
    c.threads = -1;
    refuse(&c);
    c = good;
    c.struct_size = 0;
    refuse(&c);
}

/* A caller of an older version knew only the first fields. */
Test(context, short_structure)
{
    tac_context_config c = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    c.struct_size = offsetof(tac_context_config, threads);
    c.rank = 2;
    c.world = 3;
    c.threads = -5;
    cr_assert_eq(tac_context_create(&c, &ctx), TAC_OK);
    cr_assert_eq(tac_context_rank(ctx), 2);
    cr_assert(tac_context_threads(ctx) >= 1);
    tac_context_destroy(ctx);
}

Test(log, prefix_and_levels)
{
    capture c;
    char host[256] = "", want[512];
    tac_context *ctx = make(&c, 0, 4);
    tac_log(ctx, TAC_LOG_INFO, "%d steps", 3);
    cr_assert_str_eq(c.line, "3 steps");
    tac_log(ctx, TAC_LOG_WARN, "slow");
    cr_assert_str_eq(c.line, "warning: slow");
    cr_assert_eq(c.level, TAC_LOG_WARN);
    tac_log(ctx, TAC_LOG_DEBUG, "not shown");
    cr_assert_eq(c.lines, 2);
    tac_context_destroy(ctx);

    ctx = make(&c, 3, 4);
    gethostname(host, sizeof host - 1);
    tac_log(ctx, TAC_LOG_ERROR, "gone\nwrong\n\n");
    snprintf(want, sizeof want, "[3/4 %s] error: gone wrong", host);
    cr_assert_str_eq(c.line, want);
    tac_context_destroy(ctx);
}

Test(log, long_lines_are_cut)
{
    static char text[10000];
    capture c;
    tac_context *ctx = make(&c, 1, 2);
    memset(text, 'x', sizeof text - 1);
    tac_log(ctx, TAC_LOG_INFO, "%s", text);
    cr_assert_eq(strlen(c.line), 4094);
    /* Two-byte characters: at most one byte less, and none is split. */
    for (size_t i = 0; i < sizeof text - 1; ++i)
        text[i] = (char)(i % 2 ? 0xa9 : 0xc3);
    for (int shift = 0; shift < 2; ++shift) {
        tac_log(ctx, TAC_LOG_INFO, "%.*s%s", shift, "y", text);
        const size_t n = strlen(c.line);
        cr_assert(n >= 4090 && n <= 4094, "%zu", n);
        cr_assert_eq((unsigned char)c.line[n - 1], 0xa9);
    }
    tac_context_destroy(ctx);
}

/* A packet pipe keeps the boundaries of write(2): one read is one write. */
Test(log, one_write_a_line)
{
    int ends[2];
    char got[8192];
    tac_context *ctx = NULL;
    const int saved = dup(STDERR_FILENO);
    cr_assert_eq(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
    dup2(ends[1], STDERR_FILENO);
    tac_log(ctx, TAC_LOG_INFO, "first %s", "line");
    tac_log(NULL, TAC_LOG_WARN, "second");
    tac_log(ctx, TAC_LOG_INFO, "%5000d", 1);
    dup2(saved, STDERR_FILENO);
    close(saved);

    cr_assert_eq(read(ends[0], got, sizeof got), 11);
    cr_assert_arr_eq(got, "first line\n", 11);
    cr_assert_eq(read(ends[0], got, sizeof got), 16);
    cr_assert_arr_eq(got, "warning: second\n", 16);
    cr_assert_eq(read(ends[0], got, sizeof got), 4095);
    cr_assert_eq(got[4094], '\n');
    cr_assert_eq(read(ends[0], got, sizeof got), -1);
    cr_assert_eq(errno, EAGAIN);
    tac_context_destroy(ctx);
}

Test(fail, logs_keeps_and_returns)
{
    capture c;
    char text[64] = "poison";
    tac_context *ctx = make(&c, 0, 1);
    cr_assert_eq(tac_context_error(ctx, text, sizeof text), TAC_OK);
    cr_assert_str_eq(text, "");

    errno = ENOENT;
    cr_assert_eq(tac_fail(ctx, TAC_ERR_IO, "no file %d: %m", 5), TAC_ERR_IO);
    cr_assert_eq(errno, ENOENT);
    cr_assert_str_eq(c.line, "error: no file 5: No such file or directory");
    cr_assert_eq(tac_context_error(ctx, text, sizeof text), TAC_ERR_IO);
    cr_assert_str_eq(text, "no file 5: No such file or directory");

    cr_assert_eq(tac_fail_quiet(ctx, TAC_ERR_PEER, "rank 3"), TAC_ERR_PEER);
    cr_assert_eq(c.lines, 1);
    cr_assert_eq(tac_context_error(ctx, text, 3), TAC_ERR_PEER);
    cr_assert_str_eq(text, "ra");
    cr_assert_eq(tac_context_error(ctx, NULL, 0), TAC_ERR_PEER);
    tac_context_destroy(ctx);
    cr_assert_eq(tac_fail_quiet(NULL, TAC_ERR_IO, "x"), TAC_ERR_IO);
}

typedef struct journal {
    int made;
    char order[16];
} journal;

typedef struct entry {
    journal *j;
    char name;
} entry;

static const char key_a, key_b;

static void destroy_entry(void *value)
{
    entry *e = value;
    const size_t n = strlen(e->j->order);
    e->j->order[n] = e->name;
    free(e);
}

static void *make_entry(tac_context *ctx, void *arg)
{
    entry *e = malloc(sizeof *e);
    (void)ctx;
    *e = (entry){arg, 'b'};
    ++e->j->made;
    return e;
}

/* Uses another slot while it is being made. */
static void *make_outer(tac_context *ctx, void *arg)
{
    entry *e = make_entry(ctx, arg);
    e->name = 'a';
    cr_assert_not_null(
        tac_context_slot(ctx, &key_b, make_entry, destroy_entry, arg));
    return e;
}

static void *make_nothing(tac_context *ctx, void *arg)
{
    (void)ctx;
    ++*(int *)arg;
    return NULL;
}

Test(slots, made_once_and_destroyed_in_reverse)
{
    journal j = {0};
    tac_context *ctx = NULL;
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
    void *a = tac_context_slot(ctx, &key_a, make_outer, destroy_entry, &j);
    void *b = tac_context_slot(ctx, &key_b, make_entry, destroy_entry, &j);
    cr_assert(a && b && a != b);
    cr_assert_eq(tac_context_slot(ctx, &key_a, make_outer, NULL, &j), a);
    cr_assert_eq(j.made, 2);
    tac_context_destroy(ctx);
    cr_assert_str_eq(j.order, "ab", "the inner one was made first");
}

Test(slots, failing_make_is_tried_again)
{
    int tries = 0;
    tac_context *ctx = NULL;
    cr_assert_eq(tac_context_create(NULL, &ctx), TAC_OK);
    for (int i = 0; i < 2; ++i)
        cr_assert_null(
            tac_context_slot(ctx, &key_a, make_nothing, NULL, &tries));
    cr_assert_eq(tries, 2);
    tac_context_destroy(ctx);
}

Test(clock, goes_on)
{
    const uint64_t a = tac_clock_ns();
    const double s = tac_clock_s(), cpu = tac_clock_thread_cpu_s();
    tac_clock_sleep_ns(3000000);
    const uint64_t b = tac_clock_ns();
    cr_assert(b - a >= 3000000);
    cr_assert(tac_clock_s() - s >= 0.003);
    cr_assert(tac_clock_thread_cpu_s() >= cpu);
    cr_assert(tac_clock_process_cpu_s() >= cpu);
    cr_assert_float_eq(tac_clock_s(), 1e-9 * (double)tac_clock_ns(), 1.0);
}
