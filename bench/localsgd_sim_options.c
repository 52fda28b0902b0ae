/* localsgd_sim_options.c: the option table of localsgd_sim. */
#include <stddef.h>

#include "localsgd_sim.h"

#define AT(field) offsetof(tac__sim_options, field)

const tac_option tac__sim_table[] = {
    {"table", TAC_OPT_ENUM, NULL, NULL,
     "Reproduce a published table, beside its values, with --bits, --steps and "
     "--fragment-layers.",
     AT(table), 0, 0, "streaming-diloco|eager", "What"},
    {"targets", TAC_OPT_STR, "50,80,90,95,99", "%",
     "Shares of the time that are to be compute: the bandwidth that each needs "
     "is printed.",
     AT(targets), 0, 0, "50,80,...", NULL},
    {"network", TAC_OPT_STR, NULL, NULL,
     "Print what these networks reach instead: nvlink, ib-400g, eth-100g, "
     "eth-10g, eth-1g, wan-100m.",
     AT(network), 0, 0, "NAME,...|all", NULL},
    {"bandwidth", TAC_OPT_F64, "auto", "Gbit/s",
     "Print what a network of this bandwidth reaches instead.", AT(bandwidth),
     1e-9, 1e9, "auto", NULL},

    {"model", TAC_OPT_STR, NULL, NULL,
     "The model's name in the output; default: its size.", AT(model), 0, 0,
     "NAME", "The model"},
    {"params", TAC_OPT_F64, "1e9", NULL, "Parameters.", AT(params), 1, 1e15,
     NULL, NULL},
    {"layers", TAC_OPT_INT, "24", NULL, "Layers, of equal size.", AT(layers), 1,
     100000, NULL, NULL},
    {"step-seconds", TAC_OPT_F64, "0.1", "s", "Compute of a step.",
     AT(step_seconds), 1e-9, 1e9, NULL, NULL},

    {"method", TAC_OPT_ENUM, "diloco", NULL,
     "dp: every step; local, diloco: everything every --sync-every steps; "
     "streaming: a fragment at a time.",
     AT(method), 0, 0, "dp|local|diloco|streaming", "The method"},
    {"sync-every", TAC_OPT_INT, "100", "steps", "H.", AT(sync_every), 1, 1e12,
     NULL, NULL},
    {"fragment-layers", TAC_OPT_INT, "3", "layers",
     "streaming: layers of a fragment (strided).", AT(fragment_layers), 1,
     100000, NULL, NULL},
    {"overlap", TAC_OPT_INT, "0", "steps",
     "Steps that go on while a result is under way.", AT(overlap), 0, 1e12,
     NULL, NULL},
    {"start", TAC_OPT_INT, "0", "steps",
     "Synchronise every step until then (post-local SGD).", AT(start), 0, 1e12,
     NULL, NULL},
    {"bits", TAC_OPT_F64, "16", "bits",
     "A parameter on the wire: 16 is bf16, 4 is FP4. (13.4 is fitted: it "
     "reproduces the table of Streaming DiLoCo best, and is nothing that "
     "anybody sends.)",
     AT(bits), 1e-6, 1e6, NULL, NULL},
    {"codec", TAC_OPT_STR, NULL, NULL,
     "Instead of --bits: exactly what training sends with this codec (none: "
     "f32).",
     AT(codec), 0, 0, "none|fp16|bf16|int8|fp4|topk:F", NULL},

    {"workers", TAC_OPT_INT, "2", "workers", "That average.", AT(workers), 1,
     1e7, NULL, "The cluster"},
    {"levels", TAC_OPT_STR, NULL, NULL,
     "Hierarchical periods, inner first: workers of a group, and how often it "
     "meets. The last has all workers; --sync-every is not used.",
     AT(levels), 0, 0, "8:10,64:100", NULL},
    {"inner-network", TAC_OPT_STR, "nvlink", NULL,
     "Network of all levels but the outermost.", AT(inner_network), 0, 0,
     "NAME", NULL},
    {"topology", TAC_OPT_ENUM, "once", NULL,
     "What a reduction costs: its bits once (as in the papers), a ring, "
     "halving and doubling.",
     AT(topology), 0, 0, "once|ring|halving", NULL},
    {"sending", TAC_OPT_ENUM, "backward", NULL,
     "Each layer when its backward is done, or everything when the step is "
     "over, as our trainer does.",
     AT(sending), 0, 0, "backward|after-step", NULL},
    {"up-bandwidth", TAC_OPT_F64, "auto", "Gbit/s",
     "Upwards, where links are asymmetric (with --bandwidth).",
     AT(up_bandwidth), 1e-9, 1e9, "auto", NULL},
    {"latency", TAC_OPT_F64, "auto", "s",
     "Of a hop; auto: the network's, or 0.", AT(latency), 0, 1e6, "auto", NULL},
    {"jitter", TAC_OPT_F64, "0", "s",
     "Standard deviation of how late a worker is for a reduction.", AT(jitter),
     0, 1e6, NULL, NULL},
    {"straggler", TAC_OPT_F64, "1", "times",
     "Compute time of slow workers over that of the others.", AT(straggler),
     1e-3, 1e6, NULL, NULL},
    {"straggler-share", TAC_OPT_F64, "0", NULL,
     "Share of slow workers; 0: one.", AT(straggler_share), 0, 1, NULL, NULL},
    {"codec-seconds", TAC_OPT_F64, "0", "s",
     "Encoding and decoding a parameter.", AT(codec_seconds), 0, 1e3, NULL,
     NULL},

    {"steps", TAC_OPT_INT, "0", "steps",
     "That are simulated; 0: 1000, or ten intervals where that is more.",
     AT(steps), 0, 1e9, NULL, "The run"},
    {"finish", TAC_OPT_BOOL, "false", NULL,
     "The last step synchronises everything; else it is a stretch of a longer "
     "run.",
     AT(finish), 0, 0, NULL, NULL},
    {"seed", TAC_OPT_INT, "0", NULL, "Of jitter.", AT(seed), 0, 1e15, NULL,
     NULL},

    {"trace", TAC_OPT_STR, NULL, NULL,
     "Write the first steps as a Chrome trace (with --network or --bandwidth).",
     AT(trace), 0, 0, "FILE", "Output"},
    {"trace-steps", TAC_OPT_INT, "0", "steps",
     "So many; 0: until the first synchronisation has arrived.",
     AT(trace_steps), 0, 1e9, NULL, NULL},
    {"json", TAC_OPT_STR, NULL, NULL, "Write one object a row to this file.",
     AT(json), 0, 0, "FILE", NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL, "Print nothing but failures.",
     AT(quiet), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "Read options from this file.",
     AT(config), 0, 0, "FILE.ini", NULL},
    {0},
};
