/* comm_bench: how fast the communication layer is, and whether it is right.
 *
 * Ranks are threads of this process (--ranks), processes under mpirun, or one
 * alone. docs/comm_bench.md is the manual: columns, floors, rules. */
#include "comm_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/options_ini.h"

static const char summary[] =
    "Measures collectives over a range of sizes, side by side with MPI's if "
    "asked (--baseline mpi), or replays the gradients of a training step "
    "through the bucket reducer (--replay), or measures the constants of the "
    "cost model (--tune).";

static const char epilogue[] =
    "Examples:\n"
    "  mpirun -np 2 comm_bench --baseline mpi\n"
    "  mpirun -np 8 comm_bench --memory symmetric --json out.json\n"
    "  comm_bench --ranks 4 --op all --dtype all --counts 0,1,3,17,4096\n"
    "  mpirun -np 8 comm_bench --replay gpt2-124M --compute-ms comm\n"
    "\n"
    "time is the median over iterations of the slowest rank, in place and out\n"
    "of place; algbw = size / time; busbw = algbw x 2(n-1)/n for allreduce,\n"
    "(n-1)/n for reduce_scatter and allgather, 1 for broadcast; GB = 1e9.\n"
    "floor: the time in which all ranks, at once, only copy their input to\n"
    "their output (in place: read and write it once), measured in the same\n"
    "run on the same buffers; off = time / floor.\n"
    "\n"
    "Exit codes: 0 ok, 1 run-time failure or wrong results, 2 usage or\n"
    "configuration, 124 stalled.\n";

/* The one thing that a handler may touch. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
    stop_requested = number;
}

/* The first lets the present measurement end; a second ends the program. */
static void catch_signals(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* Keeps the first failure, so that one rank can tell it once. */
typedef struct told {
    char text[1024];
} told;

static void keep_line(void *arg, tac_log_level level, const char *line)
{
    told *t = arg;
    if (level == TAC_LOG_ERROR && !t->text[0])
        snprintf(t->text, sizeof t->text, "%s", line);
    else if (level != TAC_LOG_ERROR)
        fprintf(stderr, "%s\n", line);
}

static tac_status read_options(tac_context *ctx, tac_options *o, int argc,
                               char **argv, tac_options_action *action)
{
    static const char *const others[] = {"TACIT_ISA", "TACIT_LOG",
                                         "TACIT_SKIP_SETUP", NULL};
    const char *config = tac_options_peek_argv(argc, argv, "config");
    TAC_TRY(tac_options_read_argv(o, argc, argv, action));
    TAC_TRY(tac_options_read_env(o, others));
    if (!config) config = getenv("TACIT_CONFIG");
    if (config && *config) return tac_options_read_ini(ctx, o, config);
    return TAC_OK;
}

/* Tasks of the Slurm step that this process is one of; 0: none. */
static int step_tasks(void)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");

    return tasks && getenv("SLURM_PROCID") ? atoi(tasks) : 0;
}

/* The size of a job that a launcher started this process in; 0: none. */
static int launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        NULL};
    for (int i = 0; names[i]; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return getenv("PMIX_RANK") ? step_tasks() : 0;
}

/* Of several that a launcher has started, one speaks. */
static int is_first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID", NULL};
    for (int i = 0; names[i]; i++)
        if (getenv(names[i])) return atoi(getenv(names[i])) == 0;
    return 1;
}

/* N jobs of one that look like one of N: srun without PMI support. */
static int refuse_singleton(const tac__bench_start *s)
{
    const int tasks = step_tasks();

    if (tasks <= 1 || launched() > 0 || s->opt->allow_singleton) return 0;
    if (is_first())
        fprintf(stderr,
                "comm_bench: started as one of %d tasks, but nothing connects "
                "them; use srun --mpi=pmix, or mpirun; if %d separate jobs are "
                "wanted: --allow-singleton\n",
                tasks, tasks);
    return 2;
}

static int run(tac__bench_start *s)
{
    if (refuse_singleton(s)) return 2;
    s->told = launched();
    s->first = is_first();
#ifdef TAC_HAVE_MPI
    /* Alone, MPI is a baseline for one rank. */
    if (launched() ||
        (s->parsed >= 0 && s->opt->ranks == 0 &&
         strcmp(s->opt->baseline, "mpi") == 0 && s->action == TAC_ACTION_RUN))
        return tac__bench_mpi(s);
#else
    if (launched() > 1) {
        fprintf(stderr, "comm_bench: started by a launcher, but built without "
                        "MPI; use --ranks N without one\n");
        return 2;
    }
#endif
    return tac__bench_threads(s);
}

static tac_status mode(tac__comm_bench *b)
{
    if (b->opt->tune) return tac__tune(b);
    if (b->opt->replay) return tac__replay(b);
    return tac__sweep(b);
}

void tac__bench_print(const tac__bench_start *s)
{
    if (s->action == TAC_ACTION_HELP)
        tac_options_print_help(s->options, stdout);
    else if (s->action == TAC_ACTION_VERSION)
        printf("comm_bench (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(s->options, stdout);
}

int main(int argc, char **argv)
{
    tac__comm_options opt;
    tac__comm_plan plan = {0};
    told message = {""};
    const tac_options_config config = {"comm_bench", summary, epilogue,
                                       tac__comm_table, &opt};
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_options *o = NULL;
    tac__bench_start s = {.opt = &opt,
                          .plan = &plan,
                          .message = message.text,
                          .stop = &stop_requested,
                          .main = mode};
    cc.log = keep_line;
    cc.log_arg = &message;
    cc.level = TAC_LOG_WARN;
    if (tac_context_create(&cc, &ctx) < 0) return 1;
    s.parsed = tac_options_create(ctx, &config, &o);
    s.options = o;
    if (s.parsed >= 0) s.parsed = read_options(ctx, o, argc, argv, &s.action);
    if (s.parsed >= 0 && s.action == TAC_ACTION_RUN)
        s.parsed = tac__comm_plan_make(ctx, &opt, &plan);
    catch_signals();
    const int code = run(&s);
    tac__comm_plan_free(&plan);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    return tac_options_end("comm_bench", code);
}
