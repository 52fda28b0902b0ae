/* A run that is resumed is the run that was never interrupted: the same
 * parameters, losses, scale and counts, to the bit, from steps of the first
 * epoch and of later ones, for every optimizer, precision and codec that keeps
 * something. Ranks are threads; each run is ddp_train's, without its main. */
#include "ddp_damage.h"

enum { STEPS = 20 };

/* ---- the same -------------------------------------------------------------
 */

typedef struct trial {
    const char *what, *options;

} trial;

/* 184 training samples: 12 steps an epoch at 2 x 8. */
#define COMMON                                                                 \
    "--quiet --threads 1 --ranks 2 --data synth:200 --steps 20 --log-every 1 " \
    "--eval-every 7 "

#define PLAIN COMMON "--model mlp:16 --batch 8"

static const trial trials[] = {
    {"adamw, dropout",
     "--model mlp:24,16 --dropout 0.3 --batch 8 --optimizer adamw "
     "--clip-norm 1"},
    {"sgd with momentum, two micro-steps, linear schedule",
     "--model mlp:16 --batch 4 --accumulate 2 --optimizer sgd --dropout 0.2 "
     "--schedule linear --warmup-steps 3"},
    {"fp16 with a scaler that grows and skips, adamw",
     "--model mlp:16 --batch 8 --precision fp16 --growth-interval 4 "
     "--init-scale 1024 --inject-inf 7:1 --dropout 0.1"},
    {"bf16, stochastic rounding, adafactor",
     "--model mlp:16,16 --batch 8 --precision bf16 --rounding stochastic "
     "--optimizer adafactor"},
    {"8-bit moments",
     "--model mlp:16 --batch 8 --optimizer adamw8bit --weight-decay 0.01"},
    {"topk with feedback",
     "--model mlp:16 --batch 8 --compress topk:0.05,min=64,warmup=8"},
    {"powersgd", "--model mlp:16,24 --batch 8 --compress powersgd:2,start=3"},
    {"int8", "--model mlp:16 --batch 8 --compress int8"},
};

static void resume_from(const trial *t, const story *whole, int step)
{
    char options[1024], folder[128], whole_folder[128], what[160];
    static story part;

    story_folder(whole_folder, "whole");
    story_folder(folder, "part");
    story_clear("part");
    snprintf(options, sizeof options,
             "--run-dir %s --resume %s/checkpoints/step-%08d", folder,
             whole_folder, step);
    char common[1024];
    snprintf(common, sizeof common, COMMON "%s", t->options);
    CHECK_EQ(story_run(common, options, 0), 0);
    story_read(folder, &part);
    snprintf(what, sizeof what, "%s, from step %d", t->what, step);
    story_compare(whole, &part, 0, what);
    CHECK_MSG(part.lines >= STEPS - step, "%s: %d lines", what, part.lines);
}

static void try(const trial *t)
{
    char common[1024], options[256], folder[128];
    static story whole;

    story_clear("whole");
    story_folder(folder, "whole");
    snprintf(common, sizeof common, COMMON "%s", t->options);
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", folder);
    CHECK_EQ(story_run(common, options, 0), 0);
    story_read(folder, &whole);
    CHECK_MSG(whole.lines == STEPS + 4, /* 3 evaluations, memory */
              "%s: %d lines", t->what, whole.lines);
    resume_from(t, &whole, 5);
    resume_from(t, &whole, 15);
}

/* Saving itself changes nothing. */
static void test_saving_is_unseen(void)
{
    char options[256], folder[128];
    static story with, without;

    story_folder(folder, "whole");
    story_clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 3", folder);
    CHECK_EQ(story_run(PLAIN, options, 0), 0);
    story_read(folder, &with);
    story_clear("whole");
    snprintf(options, sizeof options, "--run-dir %s", folder);
    CHECK_EQ(story_run(PLAIN, options, 0), 0);
    story_read(folder, &without);
    story_compare(&without, &with, 1, "with and without saving");
}

/* A run that is stopped again and again, one step a process, with --resume
 * auto in the same folder: metrics.jsonl is as if nothing had happened. */
static void test_stopped_all_the_time(void)
{
    static const char base[] =
        "--quiet --threads 1 --ranks 2 --data synth:200 --batch 16 --steps 10 "
        "--log-every 3 --eval-every epoch --model mlp:16 --dropout 0.2 "
        "--save-every 4 --precision fp16 --init-scale 64 --growth-interval 3";
    char options[256], folder[128], latest[160], before[32], text[32];
    static story whole, part;
    int code = TAC__EXIT_RESUMABLE, times = 0;

    story_folder(folder, "whole");
    story_clear("whole");
    story_clear("part");
    snprintf(options, sizeof options, "--run-dir %s", folder);
    CHECK_EQ(story_run(base, options, 0), 0);
    story_read(folder, &whole);
    story_folder(folder, "part");
    snprintf(options, sizeof options, "--run-dir %s --resume auto", folder);
    while (code == TAC__EXIT_RESUMABLE && times < 12) {
        times++;
        /* The last one finds nothing left to do but the test. */
        code = story_run(base, options, times < 11);
    }
    CHECK_EQ(code, 0);
    CHECK_EQ(times, 11);
    story_read(folder, &part);
    story_compare(&whole, &part, 1, "stopped at every step");
    snprintf(latest, sizeof latest, "%s/checkpoints/latest", folder);
    FILE *f = fopen(latest, "r");
    snprintf(before, sizeof before, "step-%08d\n", 10);
    if (CHECK(f && fgets(text, sizeof text, f))) CHECK_EQ_STR(text, before);
    if (f) fclose(f);
}

/* Scale and growth tracker come back, and what was known of skips. */
static void test_scaler_is_restored(void)
{
    char options[256], folder[128], path[192];
    tac_safetensors *f = NULL;

    story_folder(folder, "whole");
    story_clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", folder);
    CHECK_EQ(story_run(COMMON
                       "--model mlp:16 --batch 8 --precision fp16 "
                       "--init-scale 256 --growth-interval 4 --inject-inf 3",
                       options, 0),
             0);
    /* 256, 128 after the skip at 3, 2 good steps; then at 10 once doubled. */
    snprintf(path, sizeof path,
             "%s/checkpoints/step-00000005/state.safetensors", folder);
    if (CHECK_OK(tac_safetensors_open(NULL, path, &f))) {
        const tac_safetensors_item *scale =
            tac_safetensors_find(f, "scaler.scale");
        const tac_safetensors_item *tracker =
            tac_safetensors_find(f, "scaler._growth_tracker");
        const tac_safetensors_item *applied =
            tac_safetensors_find(f, "optimizer.applied");

        CHECK(scale && *(const float *)scale->data == 128);
        CHECK(tracker && *(const int32_t *)tracker->data == 2);
        CHECK(applied && *(const int64_t *)applied->data == 4);
    }
    tac_safetensors_close(f);
}

/* ---- refused --------------------------------------------------------------
 */

static void refused(const char *options, const char *text)
{
    damage_refused(PLAIN, options, text);
}

/* A file of step 10 that is another's. */
static void with_wrong_file(int from_step, const char *from, const char *to,
                            const char *text)
{
    damage_swap(PLAIN, 10, to, from_step, from, text);
}

static void with_wrong_counter(const char *name, int64_t value)
{
    damage_counter(PLAIN, 10, "state.safetensors", name, value);
}

static void test_mixed_up(void)
{
    char options[256], path[192];

    with_wrong_file(5, "model.safetensors", "model.safetensors",
                    "model.safetensors has run.attempts 5 instead of 10");
    with_wrong_file(5, "state.safetensors", "state.safetensors",
                    "state.safetensors has run.attempts 5 instead of 10");
    with_wrong_file(10, "rank-00000.safetensors", "rank-00001.safetensors",
                    "rank-00001.safetensors has run.rank 0 instead of 1");
    with_wrong_counter("run.step", 3);
    with_wrong_counter("run.attempts", -1);
    with_wrong_counter("run.epoch", 7);
    with_wrong_counter("optimizer.applied", 11);
    with_wrong_counter("sampler.epoch", INT64_MAX);
    with_wrong_counter("sampler.position", 8);
    with_wrong_counter("sampler.seed", 1);
    with_wrong_counter("run.samples", INT64_MAX);
    /* Without one of its files it is not taken: the one before it is. */
    damage_file(path, 10, "rank-00001.safetensors");
    CHECK(unlink(path) == 0);
    snprintf(options, sizeof options, "--resume %.*s",
             (int)(strstr(path, "/checkpoints") - path), path);
    CHECK_EQ(story_run(PLAIN, options, 0), 0);
}

static void test_refused(void)
{
    char whole[128], options[1024];

    story_folder(whole, "whole");
    story_clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", whole);
    CHECK_EQ(story_run(PLAIN, options, 0), 0);
    test_mixed_up();
    refused("--resume /no/such/run", "Can't find a valid checkpoint at "
                                     "/no/such/run");
    snprintf(options, sizeof options, "--resume %s", story_dir);
    refused(options, "No valid checkpoint found in output directory");
#define FROM "--resume %s/checkpoints/step-00000005 "
    snprintf(options, sizeof options, FROM "--batch 4", whole);
    refused(options, "a step has 8 samples");
    refused(options, "give --batch 8");
    snprintf(options, sizeof options, FROM "--model mlp:17", whole);
    refused(options, "was saved with mlp:16");
    snprintf(options, sizeof options, FROM "--optimizer sgd", whole);
    refused(options, "--optimizer is sgd");
    snprintf(options, sizeof options, FROM "--seed 43", whole);
    refused(options, "--seed is 43");
    snprintf(options, sizeof options, FROM "--precision bf16", whole);
    refused(options, "--precision is bf16");
    snprintf(options, sizeof options, FROM "--compress topk:0.1", whole);
    refused(options, "--compress is topk:0.1");
    snprintf(options, sizeof options, FROM "--data synth:300", whole);
    refused(options, "--data is synth:300");
    snprintf(options, sizeof options, FROM "--ranks 3", whole);
    refused(options, "a step has 24 samples (3 ranks x --batch 8");
    refused(options, "whose product divides it");
    snprintf(options, sizeof options, FROM "--sync none", whole);
    refused(options, "--sync is none, but");
    refused(options, "was saved with grad: give --sync grad");
    refused("--save-every 5", "needs a folder to save into");
    refused("--resume auto", "give --run-dir");
    snprintf(options, sizeof options, "--run-dir %s/x --save-every often",
             story_dir);
    refused(options, "--save-every often is neither");
    snprintf(options, sizeof options, "--run-dir %s/x --save-every 00",
             story_dir);
    refused(options, "--save-every 00 is neither");
    snprintf(options, sizeof options, FROM, whole);
    damage_cut(5, "rank-00001.safetensors", 40);
    refused(options, "rank-00001.safetensors");
    damage_cut(5, "model.safetensors", 400);
    refused(options, "model.safetensors");
    damage_cut(5, "state.safetensors", 7);
    refused(options, "state.safetensors");
    damage_cut(5, "checkpoint.json", 9);
    refused(options, "checkpoint.json");
    /* What lies in the folder still does. */
    snprintf(options, sizeof options, "--run-dir %s --resume auto", whole);
    CHECK_EQ(story_run(COMMON "--model mlp:16 --batch 8 ", options, 0), 0);
}

int main(void)
{
    data_make_dir(story_dir);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) try(&trials[i]);
    test_saving_is_unseen();
    test_stopped_all_the_time();
    test_scaler_is_restored();
    test_refused();
    data_remove_dir(story_dir);
    return tac_check_summary();
}
