/* Checkpoints of local modes that a run must not go on from: of another mode or
 * with other settings, with files that are another's, with counters that can't
 * be. Each is one message on one rank, before anything is changed. */
#include "ddp_damage.h"

#define COMMON                                                       \
    "--quiet --threads 1 --ranks 4 --data synth:200 --model mlp:12 " \
    "--batch 8 --log-every 1 --eval-every 0 --precision fp16 "       \
    "--init-scale 256 --inject-inf 3:1 "
#define STREAMING                                            \
    COMMON "--sync streaming --sync-every 4 --sync-delay 2 " \
           "--compress int8 --steps 10 "
#define AUTO "--resume auto "

static char folder[160];

static void make(const char *base, const char *more)
{
    char options[256];

    story_clear("whole");
    snprintf(options, sizeof options, "%s --save-every 2 %s", folder, more);
    CHECK_EQ(story_run(base, options, 0), 0);
}

static void refused(const char *base, const char *more, const char *text)
{
    char options[512];

    snprintf(options, sizeof options, "%s " AUTO "%s", folder, more);
    damage_refused(base, options, text);
}

static void test_settings(void)
{
    static const struct {
        const char *more, *text;
    } all[] = {
        {"--sync diloco", "--sync is diloco, but"},
        {"--sync diloco", "give --sync streaming"},
        {"--sync grad --sync-every 0 --sync-delay auto", "--sync is grad, but"},
        {"--sync none --sync-every 0 --sync-delay auto --compress none",
         "--sync is none, but"},
        {"--sync-every 5", "give --sync-every 4"},
        {"--sync-every 0", "--sync-every is 16, but"},
        {"--sync-every 0 --sync-levels 2:2,4:4", "--sync-every is 0, but"},
        {"--worker-size 2", "--worker-size is 2, but"},
        {"--outer sgd", "--outer is sgd, but"},
        {"--outer-lr 0.7", "give --outer-lr 0.4"},
        {"--outer-momentum 0", "give --outer-momentum 0.9"},
        {"--sync-delay 1", "give --sync-delay 2"},
        {"--sync-alpha 0", "give --sync-alpha 0.5"},
        {"--fragments 1", "give --fragments 2"},
        {"--weighting steps", "give --weighting uniform"},
        {"--moments reset", "give --moments keep"},
        {"--drop-deltas 0.5", "give --drop-deltas 0"},
        {"--late drop:100", "give --late wait"},
        {"--shards sorted", "give --shards iid"},
        {"--compress fp4", "give --compress int8"},
        {"--sync-start 3", "give --sync-start 0"},
    };

    make(STREAMING, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        refused(STREAMING, all[i].more, all[i].text);
    /* What was left open and is now said is the same. */
    char options[256];
    snprintf(options, sizeof options,
             "%s " AUTO "--fragments 2 --outer-lr 0.4 --sync-start 0", folder);
    CHECK_EQ(story_run(STREAMING, options, 0), 0);
}

/* Half of a run that became longer would be another half. */
static void test_longer(void)
{
    static const char base[] = COMMON "--sync post-local --sync-every 3 ";
    char options[256];

    make(base, "--steps 10");
    refused(base, "--steps 20", "give --sync-start 5");
    snprintf(options, sizeof options, "%s " AUTO "--steps 20 --sync-start 5",
             folder);
    CHECK_EQ(story_run(base, options, 0), 0);
}

static void test_files(void)
{
    char kept[160], path[192], aside[192];

    make(STREAMING, "");
    damage_swap(STREAMING, 6, "rank-00002.safetensors", 4,
                "rank-00002.safetensors",
                "rank-00002.safetensors has run.attempts 4 instead of 6");
    damage_swap(STREAMING, 6, "rank-00002.safetensors", 6,
                "rank-00001.safetensors",
                "rank-00002.safetensors has run.rank 1 instead of 2");
    damage_swap(STREAMING, 6, "model.safetensors", 4, "model.safetensors",
                "model.safetensors has run.attempts 4 instead of 6");
    damage_counter(STREAMING, 6, "rank-00001.safetensors", "optimizer.applied",
                   6);
    damage_counter(STREAMING, 6, "rank-00001.safetensors", "scaler.skipped",
                   -1);
    damage_counter(STREAMING, 6, "rank-00000.safetensors", "scaler.skipped", 1);
    damage_counter(STREAMING, 6, "rank-00003.safetensors", "localsgd.attempts",
                   5);
    damage_counter(STREAMING, 6, "rank-00003.safetensors", "localsgd.skipped",
                   1);
    damage_counter(STREAMING, 6, "state.safetensors", "sampler.position", 8);
    /* The same attempt and rank of another run, which was just alike. */
    damage_file(path, 6, "rank-00003.safetensors");
    story_folder(kept, "other");
    CHECK(rename(path, kept) == 0);
    make(STREAMING, "");
    damage_file(aside, 6, "aside");
    CHECK(rename(path, aside) == 0 && rename(kept, path) == 0);
    damage_refused_from(STREAMING, path,
                        "rank-00003.safetensors has checkpoint.id");
    CHECK(rename(aside, path) == 0);
    damage_cut(6, "rank-00003.safetensors", 40);
    damage_refused_from(STREAMING, path, "rank-00003.safetensors");
    /* What is left of them: --resume auto takes the last, which is whole. */
    snprintf(path, sizeof path, "%s " AUTO, folder);
    CHECK_EQ(story_run(STREAMING, path, 0), 0);
}

int main(void)
{
    char path[128];

    data_make_dir(story_dir);
    story_folder(path, "whole");
    snprintf(folder, sizeof folder, "--run-dir %s", path);
    test_settings();
    test_longer();
    test_files();
    data_remove_dir(story_dir);
    return tac_check_summary();
}
