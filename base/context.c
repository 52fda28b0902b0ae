/* context.c: creating and destroying a context. */
#include "context_impl.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CPUs in the affinity mask. The kernel refuses a mask smaller than its own,
 * so the size doubles until it fits. */
static int count_cpus(void)
{
    for (int cpus = 1024; cpus <= 1024 * 1024; cpus *= 2) {
        const size_t bytes = CPU_ALLOC_SIZE(cpus);
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set) break;
        const int rc = sched_getaffinity(0, bytes, set);
        const int error = errno;
        const int count = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
        if (rc == 0 || error != EINVAL) break;
    }
    return 1;
}

/* A caller built with an older header hands a shorter structure; its missing
 * fields keep their defaults. */
static tac_status read_config(tac_context_config *to,
                              const tac_context_config *from)
{
    if (from) {
        const size_t bytes = from->struct_size;
        if (bytes < sizeof(size_t))
            return tac_fail(NULL, TAC_ERR_ARG,
                            "tac_context_create: struct_size is %zu; start "
                            "from TAC_CONTEXT_CONFIG_INIT",
                            bytes);
        memcpy(to, from, bytes < sizeof *to ? bytes : sizeof *to);
    }
    if (to->world < 1 || to->rank < 0 || to->rank >= to->world)
        return tac_fail(NULL, TAC_ERR_ARG,
                        "tac_context_create: rank %d of %d; ranks count from "
                        "0 to world - 1",
                        to->rank, to->world);
    if (to->threads < 0 || to->local_ranks < 1)
        return tac_fail(NULL, TAC_ERR_ARG,
                        "tac_context_create: %d threads, %d local ranks; give "
                        "threads >= 0 and local_ranks >= 1",
                        to->threads, to->local_ranks);
    return TAC_OK;
}

static void apply_config(tac_context *ctx, const tac_context_config *c)
{
    ctx->rank = c->rank;
    ctx->world = c->world;
    ctx->level = c->level;
    ctx->log = c->log;
    ctx->log_arg = c->log_arg;
    ctx->local_ranks = c->local_ranks;
    ctx->cpus = count_cpus();
    ctx->threads = c->threads > 0 ? c->threads : ctx->cpus / c->local_ranks;
    if (ctx->threads < 1) ctx->threads = 1;
    if (gethostname(ctx->host, sizeof ctx->host - 1) != 0)
        strcpy(ctx->host, "?");
}

static tac_status out_of_memory(const tac_context_config *c)
{
    return tac_fail(NULL, TAC_ERR_NOMEM,
                    "tac_context_create: out of memory for a context with %zu "
                    "trace events; give fewer trace events",
                    c->trace_events);
}

tac_status tac_context_create(const tac_context_config *config,
                              tac_context **out)
{
    tac_context_config c = TAC_CONTEXT_CONFIG_INIT;
    TAC_TRY(read_config(&c, config));

    tac_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) return out_of_memory(&c);
    apply_config(ctx, &c);
    if (pthread_mutex_init(&ctx->error_lock, NULL) != 0) goto fail_context;
    if (tac__slots_init(ctx) != TAC_OK) goto fail_error_lock;
    if (tac__trace_init(&ctx->trace, c.trace_events) != TAC_OK) goto fail_slots;
    *out = ctx;
    return TAC_OK;

fail_slots:
    tac__slots_destroy(ctx);
fail_error_lock:
    pthread_mutex_destroy(&ctx->error_lock);
fail_context:
    free(ctx);
    return out_of_memory(&c);
}

void tac_context_destroy(tac_context *ctx)
{
    if (!ctx) return;
    tac__slots_destroy(ctx); /* first: destructors may still log and trace */
    tac__trace_destroy(&ctx->trace);
    pthread_mutex_destroy(&ctx->error_lock);
    free(ctx);
}

int tac_context_rank(const tac_context *ctx)
{
    return ctx->rank;
}

int tac_context_world(const tac_context *ctx)
{
    return ctx->world;
}

int tac_context_threads(const tac_context *ctx)
{
    return ctx->threads;
}

int tac_context_cpus(const tac_context *ctx)
{
    return ctx->cpus;
}
