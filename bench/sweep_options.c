/* The options of localsgd_sweep. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "runs_impl.h"

#define AT(field) offsetof(sweep_options, field)

const tac_option sweep_table[] = {
    {"sync", TAC_OPT_STR, "local,slowmo,diloco", NULL,
     "Methods, as of ddp_train: local, slowmo, diloco, post-local, streaming. "
     "The baselines are always there: averaging gradients in every step, "
     "plain and compressed; accumulating them; one-shot; none.",
     AT(sync), 0, 0, "NAME,...", "What is compared"},
    {"sync-every", TAC_OPT_STR, "1,2,4,8,16,32,64,128", "steps",
     "H of the methods, and micro-steps of the accumulation that sends as "
     "often.",
     AT(sync_every), 0, 0, "H,...", NULL},
    {"compress", TAC_OPT_STR, "none", NULL,
     "Codecs of what the methods send, each for all of them.", AT(compress), 0,
     0, "none|fp16|int8|fp4|topk:F,...", NULL},
    {"baseline-compress", TAC_OPT_STR, "fp16,int8", NULL,
     "Codecs of gradients that are averaged in every step.",
     AT(baseline_compress), 0, 0, "fp16,int8,...", NULL},
    {"lrs", TAC_OPT_STR, "auto", NULL,
     "Learning rates, of which each case gets its best on the validation "
     "samples; auto: half, one and two times the optimizer's own.",
     AT(lrs), 0, 0, "auto|X,...", NULL},
    {"seeds", TAC_OPT_INT, "3", "runs", "Of each case, with seeds 1, 2, ...",
     AT(seeds), 1, 1000, NULL, NULL},

    {"model", TAC_OPT_STR, "mlp", NULL, "As of ddp_train.", AT(model), 0, 0,
     "mlp|cnn|mlp:500,500", "What is trained"},
    {"data", TAC_OPT_STR, "fashion-mnist", NULL, "As of ddp_train.", AT(data),
     0, 0, "fashion-mnist|idx:DIR|synth:N", NULL},
    {"data-dir", TAC_OPT_STR, NULL, NULL, "Where fashion-mnist lies.",
     AT(data_dir), 0, 0, "DIR", NULL},
    {"optimizer", TAC_OPT_ENUM, "adamw", NULL, "Of every rank.", AT(optimizer),
     0, 0, "sgd|adamw|adafactor|adamw8bit", NULL},
    {"shards", TAC_OPT_STR, "iid", NULL, "Which samples a rank sees.",
     AT(shards), 0, 0, "iid|sorted|dirichlet:A", NULL},
    {"precision", TAC_OPT_ENUM, "fp32", NULL, "Type of products.",
     AT(precision), 0, 0, "fp32|fp16|bf16", NULL},
    {"batch", TAC_OPT_INT, "0", "samples",
     "Of a rank and micro-step, for every case; 0: one from 32 to 64 with "
     "which the longest interval divides an epoch, if there is one.",
     AT(batch), 0, 1 << 24, NULL, NULL},
    {"epochs", TAC_OPT_F64, "10", "epochs",
     "Passes over the training samples, for every case.", AT(epochs), 1e-6, 1e6,
     NULL, NULL},
    {"steps", TAC_OPT_INT, "0", "micro-steps", "Instead of --epochs.",
     AT(steps), 0, 1e12, NULL, NULL},
    {"extra", TAC_OPT_STR, NULL, NULL,
     "Further options of ddp_train, for every run. They begin with --, so "
     "write "
     "--extra=\"--warmup-steps 20\".",
     AT(extra), 0, 0, "TEXT", NULL},

    {"ranks", TAC_OPT_INT, "8", "ranks",
     "Threads of a process, or what --launch starts; under mpirun as many as "
     "that started.",
     AT(ranks), 1, 65536, NULL, "How"},
    {"threads", TAC_OPT_INT, "0", "threads", "Of a rank; 0: its share.",
     AT(threads), 0, 1024, NULL, NULL},
    {"emulate", TAC_OPT_STR, NULL, NULL,
     "A network between virtual hosts, as of ddp_train.", AT(emulate), 0, 0,
     "hosts=4,rate=1gbit", NULL},
    {"launch", TAC_OPT_STR, NULL, NULL,
     "Command in front of ddp_train, for processes as ranks; under mpirun "
     "\"mpirun -np N\" is the default.",
     AT(launch), 0, 0, "\"mpirun -np 8\"", NULL},
    {"program", TAC_OPT_STR, NULL, NULL,
     "ddp_train; default: where it was built or installed, or in PATH.",
     AT(program), 0, 0, "FILE", NULL},
    {"timeout", TAC_OPT_INT, "0", "s",
     "A run that takes longer is ended, and told; 0: none.", AT(timeout_s), 0,
     1e9, NULL, NULL},

    {"networks", TAC_OPT_STR, "nvlink,ib-400g,eth-100g,eth-10g,eth-1g,wan-100m",
     NULL, "Networks whose time is modelled, or all.", AT(networks), 0, 0,
     "NAME,...|all", "Output"},
    {"out", TAC_OPT_STR, "localsgd_sweep.out", NULL,
     "Folder of runs and results. Started again with the same one, a sweep "
     "that was stopped goes on.",
     AT(out), 0, 0, "DIR", NULL},
    {"html", TAC_OPT_STR, NULL, NULL, "The page; default: DIR/sweep.html.",
     AT(html), 0, 0, "FILE", NULL},
    {"svg", TAC_OPT_STR, NULL, NULL,
     "Accuracy against H, and bytes against error, as a picture; default: "
     "DIR/sweep.svg.",
     AT(svg), 0, 0, "FILE", NULL},
    {"csv", TAC_OPT_STR, NULL, NULL, "Default: DIR/sweep.csv.", AT(csv), 0, 0,
     "FILE", NULL},
    {"json", TAC_OPT_STR, NULL, NULL,
     "One object a run; default: DIR/sweep.json.", AT(json), 0, 0, "FILE",
     NULL},
    {"quick", TAC_OPT_BOOL, "false", NULL,
     "About three minutes: 1 seed, H of 1, 4, 16 and 64, two learning rates, "
     "fewer epochs, unless those are given.",
     AT(quick), 0, 0, NULL, NULL},
    {"fresh", TAC_OPT_BOOL, "false", NULL,
     "Do not use runs that are in the folder already.", AT(fresh), 0, 0, NULL,
     NULL},
    {"dry-run", TAC_OPT_BOOL, "false", NULL,
     "Say how many runs there would be, how long they would take and what they "
     "would send, from two short runs, and stop.",
     AT(dry_run), 0, 0, NULL, NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL, "Print nothing but failures.",
     AT(quiet), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "Read options from this file.",
     AT(config), 0, 0, "FILE.ini", NULL},
    {0},
};

/* What was given stays. */
static tac_status be_quick(tac_options *t)
{
    static const char *const quick[][2] = {{"sync-every", "1,4,16,64"},
                                           {"seeds", "1"},
                                           {"epochs", "1.5"},
                                           {"lrs", "quick"}};

    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (tac_options_source(t, quick[i][0]) == TAC_SOURCE_DEFAULT)
            TAC_TRY(tac_options_set(t, quick[i][0], quick[i][1],
                                    TAC_SOURCE_DEFAULT, "--quick"));
    return TAC_OK;
}

/* What the sweep decides for each run can't be decided for all. */
static tac_status check_extra(tac_context *ctx, const char *extra)
{
    static const char *const ours[] = {
        "sync",  "sync-every", "accumulate", "compress",      "lr",
        "seed",  "steps",      "epochs",     "eval-every",    "log-every",
        "model", "data",       "data-dir",   "optimizer",     "shards",
        "batch", "precision",  "emulate",    "global-batch",  "run-dir",
        "ranks", "threads",    "quiet",      "attempt-times", "skip-compute",
        "json",  "resume",     "dry-run",    "save-every",    "target-accuracy",
        NULL};

    for (const char *at = extra; at && (at = strstr(at, "--")); at += 2) {
        const size_t n = strcspn(at + 2, " \t=");

        if (at > extra && at[-1] != ' ' && at[-1] != '\t') continue;
        for (const char *const *key = ours; *key; key++)
            if (strlen(*key) == n && strncmp(at + 2, *key, n) == 0)
                return tac_fail(ctx, TAC_ERR_CONFIG,
                                "--extra: the sweep itself decides --%s of its "
                                "runs; leave it out there",
                                *key);
    }
    return TAC_OK;
}

tac_status sweep_options_resolve(tac_context *ctx, tac_options *t,
                                 sweep_options *o)
{
    if (o->quick) TAC_TRY(be_quick(t));
    if (!o->out || !*o->out)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--out is empty; give a folder for runs and results");
    return check_extra(ctx, o->extra);
}
