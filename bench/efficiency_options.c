/* The options of efficiency. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "efficiency.h"

#define AT(field) offsetof(eff_options, field)

const tac_option eff_table[] = {
    {"model", TAC_OPT_STR, "cnn", NULL, "As of ddp_train.", AT(model), 0, 0,
     "cnn|mlp|mlp:500,500", "What is trained"},
    {"data", TAC_OPT_STR, "fashion-mnist", NULL, "As of ddp_train.", AT(data),
     0, 0, "fashion-mnist|idx:DIR|synth:N", NULL},
    {"data-dir", TAC_OPT_STR, NULL, NULL, "Where fashion-mnist lies.",
     AT(data_dir), 0, 0, "DIR", NULL},
    {"batch", TAC_OPT_INT, "128", "samples",
     "Of a rank and optimizer step, in every row but that for larger batches.",
     AT(batch), 1, 1 << 24, NULL, NULL},
    {"steps", TAC_OPT_INT, "64", "steps",
     "Optimizer steps of the baseline; raised until --sync-every and "
     "--accumulate divide it.",
     AT(steps), 1, 1e12, NULL, NULL},
    {"epochs", TAC_OPT_F64, "0", "epochs", "Instead of --steps.", AT(epochs), 0,
     1e6, NULL, NULL},
    {"seeds", TAC_OPT_INT, "3", "runs", "Of each row, with seeds 1, 2, ...",
     AT(seeds), 1, EFF_SEEDS, NULL, NULL},
    {"lrs", TAC_OPT_STR, "auto", NULL,
     "Learning rates, of which an optimizer gets the one with the least loss "
     "on the validation samples; auto: its own, twice that, and then four "
     "times or half, towards where the loss fell; own: its own.",
     AT(lrs), 0, 0, "auto|own|X,...", NULL},
    {"extra", TAC_OPT_STR, NULL, NULL,
     "Further options of ddp_train, for every run: write "
     "--extra=\"--dropout 0.1\".",
     AT(extra), 0, 0, "TEXT", NULL},

    {"accumulate", TAC_OPT_INT, "4", "micro-batches",
     "That a step's batch is cut into; 1: leave the rows out.", AT(accumulate),
     1, 1 << 20, NULL, "Techniques"},
    {"sync-every", TAC_OPT_INT, "16", "steps", "H of local SGD.",
     AT(sync_every), 1, 1e9, NULL, NULL},
    {"mixed", TAC_OPT_ENUM, "bf16", NULL,
     "Precision of the rows that add one technique to the other; alone, both "
     "are shown.",
     AT(mixed), 0, 0, "fp16|bf16", NULL},
    {"compress", TAC_OPT_STR, "int8", NULL,
     "Codec of gradients, and in local SGD of what is averaged.", AT(compress),
     0, 0, "fp16|int8|fp4|topk:F", NULL},

    {"ranks", TAC_OPT_INT, "2", "ranks",
     "Threads of a process, or what --launch starts; under mpirun as many as "
     "that started.",
     AT(ranks), 1, 65536, NULL, "How"},
    {"threads", TAC_OPT_INT, "0", "threads", "Of a rank; 0: its share.",
     AT(threads), 0, 1024, NULL, NULL},
    {"emulate", TAC_OPT_STR, NULL, NULL,
     "A network between virtual hosts, as of ddp_train: communication then has "
     "its price in the measured times, too.",
     AT(emulate), 0, 0, "hosts=2,rate=100mbit", NULL},
    {"launch", TAC_OPT_STR, NULL, NULL,
     "Command in front of ddp_train, for processes as ranks; {} in it becomes "
     "their number.",
     AT(launch), 0, 0, "\"mpirun -np {}\"", NULL},
    {"program", TAC_OPT_STR, NULL, NULL,
     "ddp_train; default: where it was built or installed, or in PATH.",
     AT(program), 0, 0, "FILE", NULL},
    {"timeout", TAC_OPT_INT, "0", "s",
     "A run that takes longer is ended, and told; 0: none.", AT(timeout_s), 0,
     1e9, NULL, NULL},

    {"networks", TAC_OPT_STR, "eth-10g,eth-1g,wan-100m", NULL,
     "Networks whose time is modelled, or all.", AT(networks), 0, 0,
     "NAME,...|all", "Output"},
    {"out", TAC_OPT_STR, "efficiency.out", NULL,
     "Folder of runs and results. Started again with the same one, what was "
     "stopped goes on.",
     AT(out), 0, 0, "DIR", NULL},
    {"html", TAC_OPT_STR, NULL, NULL, "The page; default: DIR/efficiency.html.",
     AT(html), 0, 0, "FILE", NULL},
    {"svg", TAC_OPT_STR, NULL, NULL,
     "The picture; default: DIR/efficiency.svg.", AT(svg), 0, 0, "FILE", NULL},
    {"csv", TAC_OPT_STR, NULL, NULL, "Default: DIR/efficiency.csv.", AT(csv), 0,
     0, "FILE", NULL},
    {"json", TAC_OPT_STR, NULL, NULL, "Default: DIR/efficiency.json.", AT(json),
     0, 0, "FILE", NULL},
    {"print", TAC_OPT_STR, NULL, NULL,
     "Run nothing; print what an earlier JSON file holds, and write --html, "
     "--svg and --csv from it if they are given.",
     AT(print), 0, 0, "FILE", NULL},
    {"markdown", TAC_OPT_BOOL, "false", NULL,
     "With --print: the table of docs/efficiency.md.", AT(markdown), 0, 0, NULL,
     NULL},
    {"quick", TAC_OPT_BOOL, "false", NULL,
     "About a minute: 1 seed, 32 steps, no search, unless those are given.",
     AT(quick), 0, 0, NULL, NULL},
    {"fresh", TAC_OPT_BOOL, "false", NULL,
     "Do not use runs that are in the folder already.", AT(fresh), 0, 0, NULL,
     NULL},
    {"dry-run", TAC_OPT_BOOL, "false", NULL, "Say what would be run, and stop.",
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
    static const char *const quick[][2] = {
        {"seeds", "1"}, {"steps", "32"}, {"lrs", "own"}};

    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (tac_options_source(t, quick[i][0]) == TAC_SOURCE_DEFAULT)
            TAC_TRY(tac_options_set(t, quick[i][0], quick[i][1],
                                    TAC_SOURCE_DEFAULT, "--quick"));
    return TAC_OK;
}

/* One codec, not none: the row would be the baseline again. */
static tac_status check_codec(tac_context *ctx, const eff_options *o)
{
    char **list = NULL;
    size_t n = 0;

    TAC_TRY(sweep_list_codecs(ctx, "compress", o->compress, &list, &n));
    const int one = n == 1 && strcmp(list[0], "none") != 0;
    free(list);
    if (one && strlen(o->compress) < sizeof(((eff_row *)0)->compress))
        return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--compress %.60s: give one codec, such as int8, fp16, fp4 "
                    "or topk:0.01",
                    o->compress);
}

tac_status eff_options_resolve(tac_context *ctx, tac_options *t, eff_options *o)
{
    if (o->quick) TAC_TRY(be_quick(t));
    if (o->print) return TAC_OK;
    if (!o->out || !*o->out)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--out is empty; give a folder for runs and results");
    if (o->batch % o->accumulate != 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--batch %lld can't be cut into --accumulate %lld "
                        "equal micro-batches; give a multiple",
                        (long long)o->batch, (long long)o->accumulate);
    return check_codec(ctx, o);
}
