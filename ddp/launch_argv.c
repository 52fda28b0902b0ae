/* The options of programs that have no option table of their own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/launch.h"
#include "tacit/options.h"

typedef struct settings {
    int64_t ranks, threads;
    const char *transport;
    int allow_singleton;
} settings;

#define AT(field) offsetof(settings, field)

static const tac_option table[] = {
    {"ranks", TAC_OPT_INT, "0", "ranks",
     "ranks as threads of this process; under mpirun or srun the launcher "
     "decides",
     AT(ranks), 0, 256, NULL, "options"},
    {"threads", TAC_OPT_INT, "0", "threads",
     "compute threads of a rank; 0: its share of the CPUs", AT(threads), 0,
     4096, NULL, NULL},
    {"transport", TAC_OPT_ENUM, "auto", NULL, "how ranks exchange data",
     AT(transport), 0, 0, "auto|thread|shm|mpi|ucx", NULL},
    {"allow-singleton", TAC_OPT_BOOL, "false", NULL,
     "go on alone where a launcher has made a job of its own of each task",
     AT(allow_singleton), 0, 0, NULL, NULL},
    {NULL, TAC_OPT_BOOL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL}};

/* Keeps the message; tac_launch prints it. */
static void keep(void *arg, tac_log_level level, const char *line)
{
    tac_launch_config *c = arg;

    if (level == TAC_LOG_ERROR)
        snprintf(c->message, sizeof c->message, "%s",
                 strncmp(line, "error: ", 7) ? line : line + 7);
}

/* Is argv[i] one of ours? 2: with its value behind it. */
static int is_ours(const char *arg)
{
    static const char *const names[] = {"--ranks", "--threads", "--transport"};

    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(names[i]);

        if (strncmp(arg, names[i], n) != 0) continue;
        if (arg[n] == '\0') return 2;
        if (arg[n] == '=') return 1;
    }
    return !strcmp(arg, "--help") || !strcmp(arg, "--allow-singleton");
}

/* Moves ours to `own`; the others close up. Without arguments of the program's
 * own all are ours, mistakes included. */
static int take_out(int *argc, char **argv, int all, char **own)
{
    int n = 0, left = 1;

    own[n++] = argv[0];
    for (int i = 1; i < *argc; i++) {
        const int ours = all ? 1 : is_ours(argv[i]);

        if (!ours) {
            argv[left++] = argv[i];
            continue;
        }
        own[n++] = argv[i];
        if (ours == 2 && i + 1 < *argc) own[n++] = argv[++i];
    }
    *argc = left;
    argv[left] = NULL;
    own[n] = NULL;
    return n;
}

static void print_help(const tac_launch_config *c)
{
    settings s = {0, 0, NULL, 0};
    const tac_options_config oc = {c->program ? c->program
                                              : program_invocation_short_name,
                                   c->usage ? c->usage : "", NULL, table, &s};
    tac_options *o = NULL;

    if (tac_options_create(NULL, &oc, &o) < 0) return;
    tac_options_print_help(o, stdout);
    tac_options_destroy(o);
}

static tac_status read_all(tac_context *ctx, int argc, char **argv,
                           tac_launch_config *c)
{
    static const char *const others[] = {"TACIT_ISA", "TACIT_SKIP_SETUP", NULL};
    settings s = {0, 0, NULL, 0};
    const tac_options_config oc = {"program", "", NULL, table, &s};
    tac_options_action action = TAC_ACTION_RUN;
    tac_options *o = NULL;
    tac_status status = tac_options_create(ctx, &oc, &o);

    if (status >= 0) status = tac_options_read_argv(o, argc, argv, &action);
    if (status >= 0) status = tac_options_read_env(o, others);
    if (status >= 0) {
        c->ranks = (int)s.ranks;
        c->threads = (int)s.threads;
        c->allow_singleton = s.allow_singleton;
        snprintf(c->transport, sizeof c->transport, "%s", s.transport);
        c->comm.transport = c->transport;
        if (action != TAC_ACTION_RUN) c->print = print_help;
    }
    tac_options_destroy(o);
    return status;
}

void tac_launch_argv(int *argc, char **argv, tac_launch_config *c)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    char **own = calloc((size_t)*argc + 2, sizeof *own);
    const int n = own ? take_out(argc, argv, !c->more_arguments, own) : 0;

    cc.log = keep;
    cc.log_arg = c;
    c->refused = own ? tac_context_create(&cc, &ctx) : TAC_ERR_NOMEM;
    if (c->refused >= 0) c->refused = read_all(ctx, n, own, c);
    if (c->refused < 0 && !c->message[0])
        snprintf(c->message, sizeof c->message, "no memory for the options");
    tac_context_destroy(ctx);
    free(own);
}
