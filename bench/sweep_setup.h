/* Before a sweep: its launcher, its folder, its files. */
#ifndef TAC_BENCH_SWEEP_SETUP_H
#define TAC_BENCH_SWEEP_SETUP_H

#include "localsgd_sweep.h"

/* Under mpirun every rank starts this program. One is enough: it starts
 * its children by the same launcher. */
typedef struct sweep_launcher {
    int rank, size; /* size 0: none */
    const char *command;
} sweep_launcher;
sweep_launcher sweep_find_launcher(void);
/* 1, with a message of one of them: srun has started the sweep several times,
 * which would get into each other's way. */
int sweep_of_many_tasks(const sweep_launcher *l, const char *program);

/* What the sweep only points to. */
typedef struct sweep_setup {
    char *program, *launch, *html, *svg, *csv, *json;
    int folder; /* locked, plus 1; 0: none */
} sweep_setup;

/* Networks, runs, plan, the folder (locked) and paths of files. */
tac_status sweep_set_up(sweep *s, sweep_options *o, const sweep_launcher *l,
                        sweep_setup *out);
void sweep_setup_free(sweep_setup *w); /* legal for a zeroed one */

#endif
