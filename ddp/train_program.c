/* ddp_train as a client of the trainer. */
#include "train.h"

#include <stdio.h>
#include <string.h>

#include "trainer_impl.h"

/* A file that can't be read before training is the user's to mend, one that
 * can't be written after it has begun is a failure of the run. Without a
 * checkpoint a run that was stopped can't go on. */
static int exit_code(void *program, tac_status s)
{
    tac__train_program *p = program;
    const int saves = strcmp(p->config->save_every, "0") != 0;

    if (s == TAC_ERR_INTERRUPTED && !saves) return 1;
    if (s == TAC_ERR_IO && atomic_load(&p->begun)) return 1;
    return tac_launch_exit_code(s);
}

tac_launch_config tac__train_launch(const tac_train_config *c)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;

    lc.program = "ddp_train";
    lc.exit_code = exit_code;
    lc.ranks = (int)c->ranks;
    lc.threads = (int)c->threads;
    lc.quiet = c->quiet;
    lc.allow_singleton = c->allow_singleton;
    if (c->trace) lc.trace_events = (size_t)1 << 18;
    lc.comm.transport = c->transport;
    lc.comm.emulate = c->emulate;
    lc.comm.timeout_ms = (int)(c->timeout_s * 1000);
    lc.comm.stall_warn_ms = (int)(c->stall_warn_s * 1000);
    lc.comm.deterministic = c->deterministic;
    lc.comm.progress = strcmp(c->progress, "thread") ? TAC_PROGRESS_CALLER
                                                     : TAC_PROGRESS_THREAD;
    return lc;
}

/* Until here a signal ends the program at once. */
static void begin(void *program, tac_trainer *t, const tac_trainer_state *state,
                  tac_trainer_control *control)
{
    tac__train_program *p = program;

    (void)t, (void)state, (void)control;
    atomic_store(&p->begun, 1);
    if (p->catch_signals && !atomic_flag_test_and_set(&p->caught))
        p->catch_signals();
}

tac_status tac__train(tac_context *ctx, tac_comm *comm, void *program)
{
    tac__train_program *p = program;
    const tac_trainer_callback callback = {.arg = p, .on_train_begin = begin};
    /* Standard output has the JSON alone, if it is wanted there. */
    const char *json = p->config->json;
    FILE *out = json && !strcmp(json, "-") ? stderr : stdout;
    const tac_trainer_config config = {.struct_size = sizeof config,
                                       .config = p->config,
                                       .callbacks = &callback,
                                       .n_callbacks = 1,
                                       .stop = p->stop,
                                       .out = out};
    tac_trainer *t = NULL;
    tac_status s;

    TAC_TRY(tac__trainer_create(ctx, comm, &config, p->options, &t));
    s = tac_trainer_train(t, NULL, NULL);
    tac_trainer_destroy(t);
    return s;
}
