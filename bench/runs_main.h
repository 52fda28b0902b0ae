/* What programs that are made of runs have in common around them. */
#ifndef TAC_BENCH_RUNS_MAIN_H
#define TAC_BENCH_RUNS_MAIN_H

#include "tacit/context.h"
#include "tacit/options.h"

/* Command line, environment, and the file that --config names. */
tac_status runs_read_options(tac_context *ctx, tac_options *o, int argc,
                             char **argv, tac_options_action *action);
/* Help, version or configuration, if that is what was asked for; 0: run. */
int runs_act(const char *program, const tac_options *o,
             tac_options_action action);
/* 0 ok, 1 a run failed, 2 usage, configuration or data, 75 interrupted. */
int runs_exit_code(tac_status s);
/* Calls it once at SIGINT or SIGTERM. */
void runs_catch_signals(void (*handler)(int));

#endif
