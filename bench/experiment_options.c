/* experiment_options.c: the option table of localsgd_experiments. */
#include <stddef.h>

#include "experiment.h"

#define AT(field) offsetof(exp_options, field)

const tac_option exp_option_table[] = {
    {"quick", TAC_OPT_BOOL, "false", NULL,
     "Fewer steps, learning rates and seeds: under a minute each. Claims are "
     "judged all the same, by less.",
     AT(quick), 0, 0, NULL, "How much"},
    {"seeds", TAC_OPT_INT, "0", "seeds",
     "Runs that differ in initial weights and order of samples; 0: 3, with "
     "--quick 1.",
     AT(seeds), 0, EXP_SEEDS, NULL, NULL},
    {"steps", TAC_OPT_INT, "0", "steps",
     "Of each run of ddp_train; 0: the experiment's own number.", AT(steps), 0,
     1e9, NULL, NULL},

    {"ranks", TAC_OPT_INT, "8", "workers", "Workers; of E1 the most.",
     AT(ranks), 1, 64, NULL, "What is run"},
    {"threads", TAC_OPT_INT, "0", "threads",
     "Compute threads of a rank of ddp_train; 0: its share of the CPUs.",
     AT(threads), 0, 4096, NULL, NULL},
    {"data", TAC_OPT_STR, "fashion-mnist", NULL,
     "As in ddp_train. E1 and E2 take two classes of it.", AT(data), 0, 0,
     "fashion-mnist|idx:DIR|synth[:N]", NULL},
    {"data-dir", TAC_OPT_STR, NULL, NULL, "Folder of the Fashion-MNIST files.",
     AT(data_dir), 0, 0, "DIR", NULL},
    {"model", TAC_OPT_STR, "mlp", NULL, "That ddp_train trains.", AT(model), 0,
     0, "mlp|mlp:500,500|cnn", NULL},
    {"launch", TAC_OPT_STR, NULL, NULL,
     "Command in front of ddp_train, for ranks that are processes; {} in it "
     "becomes their number: \"mpirun -np {}\". Default: threads.",
     AT(launch), 0, 0, "COMMAND", NULL},
    {"program", TAC_OPT_STR, NULL, NULL,
     "ddp_train; default: the one of the same build, or in PATH.", AT(program),
     0, 0, "FILE", NULL},
    {"timeout", TAC_OPT_INT, "600", "s", "Of one run of ddp_train; 0: none.",
     AT(timeout_s), 0, 86400, NULL, NULL},

    {"out", TAC_OPT_STR, "runs/experiments", NULL,
     "Folder of ddp_train's runs. A run that is there already is not done "
     "again.",
     AT(out), 0, 0, "DIR", "Output"},
    {"json", TAC_OPT_STR, NULL, NULL,
     "Write one object an experiment to this file: tables, conditions, "
     "whether they hold.",
     AT(json), 0, 0, "FILE", NULL},
    {"markdown", TAC_OPT_BOOL, "false", NULL,
     "Print the sections of docs/experiments.md.", AT(markdown), 0, 0, NULL,
     NULL},
    {"print", TAC_OPT_STR, NULL, NULL,
     "Run nothing; print what an earlier --json FILE holds.", AT(print), 0, 0,
     "FILE", NULL},
    {"strict", TAC_OPT_BOOL, "false", NULL,
     "End with code 1 if a claim does not hold.", AT(strict), 0, 0, NULL, NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL,
     "Print no progress, only what was found.", AT(quiet), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "Read options from this file.",
     AT(config), 0, 0, "FILE.ini", NULL},
    {0},
};
