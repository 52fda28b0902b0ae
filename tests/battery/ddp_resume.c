/* A run that is resumed is the run that was never interrupted: the same
 * parameters, losses, scale and counts, to the bit, from steps of the first
 * epoch and of later ones, for every optimizer, precision and codec that keeps
 * something. Ranks are threads; each run is ddp_train's, without its main. */
#include "tac_check.h"

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "data_files.h"
#include "save.h"
#include "tacit/safetensors.h"
#include "train.h"

enum { STEPS = 20, LINES = 2 * STEPS + 8, TEXT = 4096, ARGS = 48 };

static char dir[64];

/* ---- one run --------------------------------------------------------------
 */

static void no_signals(void)
{
}

static void no_print(const tac_options *o, tac_options_action action)
{
    (void)o;
    (void)action;
}

/* Splits `text` at spaces. */
static int split(char *text, char *argv[ARGS])
{
    int n = 0;

    argv[n++] = (char *)(uintptr_t) "ddp_train";
    for (char *p = strtok(text, " "); p && n < ARGS - 1; p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n] = NULL;
    return n;
}

/* Runs ddp_train with these options; the exit code. `stop`: as if a signal had
 * come before the first step. */
static int run(const char *options, const char *more, int stop)
{
    char text[TEXT], *argv[ARGS];
    volatile sig_atomic_t stopped = stop;
    tac_train_config config;
    const tac_options_config oc = {"ddp_train", "", NULL,
                                   tac_train_config_options(), &config};
    tac_options *o = NULL;
    tac__world w = {.config = &config,
                    .stop = &stopped,
                    .catch_signals = no_signals,
                    .print = no_print,
                    .parse_error = "options",
                    .main = tac__train};
    int code;

    snprintf(text, sizeof text, "%s %s", options, more);
    const int argc = split(text, argv);
    if (!CHECK_OK(tac_options_create(NULL, &oc, &o))) return -1;
    w.options = o;
    w.parsed = tac_options_read_argv(o, argc, argv, &w.action);
    code = tac__world_threads(&w);
    tac_options_destroy(o);
    return code;
}

/* ---- what a run says ------------------------------------------------------
 */

/* The value of a key in a line of JSON, as text; "" if it isn't there. */
static void value_of(const char *line, const char *key, char out[128])
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(line, quoted);
    out[0] = '\0';
    if (!at) return;
    at += strlen(quoted);
    snprintf(out, 128, "%.*s", (int)strcspn(at, ",}"), at);
}

/* What must be equal of a line or a summary: everything but times. */
static void digest(const char *line, char out[TEXT])
{
    static const char *const keys[] = {
        "kind",      "step",          "attempts",
        "steps",     "epoch",         "epochs",
        "loss",      "accuracy",      "learning_rate",
        "grad_norm", "loss_scale",    "skipped_steps",
        "eval_loss", "eval_accuracy", "train_loss",
        "test_loss", "test_accuracy", "samples",
        "syncs",     "params_hash",   "nonfinite_losses"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char value[128];

        value_of(line, keys[i], value);
        if (value[0])
            n += (size_t)snprintf(out + n, TEXT - n, "%s=%s ", keys[i], value);
    }
    out[n] = '\0';
}

typedef struct story {
    char line[LINES][TEXT]; /* of metrics.jsonl */
    int lines;
    char summary[TEXT];
} story;

static void read_story(const char *folder, story *s)
{
    char path[192], line[8192];
    FILE *f;

    *s = (story){.lines = 0};
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f) && s->lines < LINES)
        digest(line, s->line[s->lines++]);
    if (f) fclose(f);
    snprintf(path, sizeof path, "%s/summary.json", folder);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f)) digest(line, s->summary);
    if (f) fclose(f);
}

/* Line by line from the end; `all`: also as many. */
static void compare(const story *a, const story *b, int all, const char *what)
{
    CHECK_MSG(a->summary[0] && !strcmp(a->summary, b->summary),
              "%s: summaries differ:\n  %s\n  %s", what, a->summary,
              b->summary);
    CHECK_MSG(b->lines > 0 && (!all || a->lines == b->lines),
              "%s: %d and %d lines", what, a->lines, b->lines);
    for (int i = 1; i <= b->lines && i <= a->lines; i++)
        CHECK_MSG(!strcmp(a->line[a->lines - i], b->line[b->lines - i]),
                  "%s: lines differ:\n  %s\n  %s", what, a->line[a->lines - i],
                  b->line[b->lines - i]);
}

/* ---- folders --------------------------------------------------------------
 */

static void folder_of(char out[128], const char *name)
{
    snprintf(out, 128, "%.60s/%.40s", dir, name);
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void clear(const char *name)
{
    char path[128];

    folder_of(path, name);
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- the same -------------------------------------------------------------
 */

typedef struct trial {
    const char *what, *options;

} trial;

/* 184 training samples: 12 steps an epoch at 2 x 8. */
#define COMMON                                                                 \
    "--quiet --threads 1 --ranks 2 --data synth:200 --steps 20 --log-every 1 " \
    "--eval-every 7 "

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

    folder_of(whole_folder, "whole");
    folder_of(folder, "part");
    clear("part");
    snprintf(options, sizeof options,
             "--run-dir %s --resume %s/checkpoints/step-%08d", folder,
             whole_folder, step);
    char common[1024];
    snprintf(common, sizeof common, COMMON "%s", t->options);
    CHECK_EQ(run(common, options, 0), 0);
    read_story(folder, &part);
    snprintf(what, sizeof what, "%s, from step %d", t->what, step);
    compare(whole, &part, 0, what);
    CHECK_MSG(part.lines >= STEPS - step, "%s: %d lines", what, part.lines);
}

static void try(const trial *t)
{
    char common[1024], options[256], folder[128];
    static story whole;

    clear("whole");
    folder_of(folder, "whole");
    snprintf(common, sizeof common, COMMON "%s", t->options);
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", folder);
    CHECK_EQ(run(common, options, 0), 0);
    read_story(folder, &whole);
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

    folder_of(folder, "whole");
    clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 3", folder);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8", options, 0), 0);
    read_story(folder, &with);
    clear("whole");
    snprintf(options, sizeof options, "--run-dir %s", folder);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8", options, 0), 0);
    read_story(folder, &without);
    compare(&without, &with, 1, "with and without saving");
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

    folder_of(folder, "whole");
    clear("whole");
    clear("part");
    snprintf(options, sizeof options, "--run-dir %s", folder);
    CHECK_EQ(run(base, options, 0), 0);
    read_story(folder, &whole);
    folder_of(folder, "part");
    snprintf(options, sizeof options, "--run-dir %s --resume auto", folder);
    while (code == TAC__EXIT_RESUMABLE && times < 12) {
        times++;
        /* The last one finds nothing left to do but the test. */
        code = run(base, options, times < 11);
    }
    CHECK_EQ(code, 0);
    CHECK_EQ(times, 11);
    read_story(folder, &part);
    compare(&whole, &part, 1, "stopped at every step");
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

    folder_of(folder, "whole");
    clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", folder);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8 --precision fp16 "
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

/* Runs with stderr in a file, which must have `text` once. */
static void refused(const char *options, const char *text)
{
    char path[128], line[8192];
    int times = 0;

    folder_of(path, "stderr");
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    FILE *f = freopen(path, "w", stderr);
    const int code = run(COMMON "--model mlp:16 --batch 8", options, 0);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK(f);
    CHECK_MSG(code == 2, "%s: exit code %d", options, code);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, text)) times++;
    if (f) fclose(f);
    CHECK_MSG(times == 1, "%s: %d lines with \"%s\"", options, times, text);
}

static void checkpoint_file(char path[192], int step, const char *name)
{
    folder_of(path, "whole");
    snprintf(path + strlen(path), 192 - strlen(path),
             "/checkpoints/step-%08d/%.60s", step, name);
}

/* Runs with `from` (of step `from_step`) in the place of `to` in step 10. */
static void with_wrong_file(int from_step, const char *from, const char *to,
                            const char *text)
{
    char place[192], aside[192], other[192], options[256];

    checkpoint_file(place, 10, to);
    checkpoint_file(aside, 10, "aside");
    checkpoint_file(other, from_step, from);
    CHECK(rename(place, aside) == 0 && link(other, place) == 0);
    snprintf(options, sizeof options, "--resume %.*s",
             (int)(strrchr(place, '/') - place), place);
    refused(options, text);
    CHECK(rename(aside, place) == 0);
}

/* Where the data of a tensor begin in the file; -1: they are not there. */
static long place_of(const char *path, const char *name)
{
    tac_safetensors *f = NULL;
    long at = -1;

    if (!CHECK_OK(tac_safetensors_open(NULL, path, &f))) return -1;
    const tac_safetensors_item *item = tac_safetensors_find(f, name);
    const tac_safetensors_item *last =
        tac_safetensors_get(f, tac_safetensors_count(f) - 1);
    FILE *file = fopen(path, "r");

    if (CHECK(item && file) && fseek(file, 0, SEEK_END) == 0)
        at = ftell(file) -
             (long)((const char *)last->data - (const char *)item->data +
                    (ptrdiff_t)last->bytes);
    if (file) fclose(file);
    tac_safetensors_close(f);
    return at;
}

/* Puts another number into the file; the one that was there. */
static int64_t swap_number(const char *path, long at, int64_t value)
{
    int64_t before = 0;
    FILE *f = fopen(path, "r+");

    CHECK(f && fseek(f, at, SEEK_SET) == 0 &&
          fread(&before, sizeof before, 1, f) == 1 &&
          fseek(f, at, SEEK_SET) == 0 &&
          fwrite(&value, sizeof value, 1, f) == 1);
    if (f) fclose(f);
    return before;
}

/* A counter of step 10 that can't be. */
static void with_wrong_counter(const char *name, int64_t value)
{
    char path[192], options[256], text[80];

    checkpoint_file(path, 10, "state.safetensors");
    const long at = place_of(path, name);
    if (at < 0) return;
    const int64_t right = swap_number(path, at, value);
    snprintf(options, sizeof options, "--resume %.*s",
             (int)(strrchr(path, '/') - path), path);
    snprintf(text, sizeof text, "%.30s is %lld, but after 10 attempts", name,
             (long long)value);
    refused(options, text);
    swap_number(path, at, right);
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
    checkpoint_file(path, 10, "rank-00001.safetensors");
    CHECK(unlink(path) == 0);
    snprintf(options, sizeof options, "--resume %.*s",
             (int)(strstr(path, "/checkpoints") - path), path);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8", options, 0), 0);
}

static void damage(const char *name, long at)
{
    char path[192];

    folder_of(path, "whole");
    snprintf(path + strlen(path), sizeof path - strlen(path),
             "/checkpoints/step-00000005/%.60s", name);
    CHECK_MSG(truncate(path, at) == 0, "%s", path);
}

static void test_refused(void)
{
    char whole[128], options[1024];

    folder_of(whole, "whole");
    clear("whole");
    snprintf(options, sizeof options, "--run-dir %s --save-every 5", whole);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8", options, 0), 0);
    test_mixed_up();
    refused("--resume /no/such/run", "Can't find a valid checkpoint at "
                                     "/no/such/run");
    snprintf(options, sizeof options, "--resume %s", dir);
    refused(options, "No valid checkpoint found in output directory");
#define FROM "--resume %s/checkpoints/step-00000005 "
    snprintf(options, sizeof options, FROM "--batch 4", whole);
    refused(options, "--batch is 4, but");
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
    refused(options, "was saved by 2 ranks, and there are 3 now");
    snprintf(options, sizeof options, FROM "--sync none", whole);
    refused(options, "leave out --sync none");
    refused("--save-every 5", "needs a folder to save into");
    refused("--resume auto", "give --run-dir");
    snprintf(options, sizeof options, "--run-dir %s/x --save-every often", dir);
    refused(options, "--save-every often is neither");
    snprintf(options, sizeof options, "--run-dir %s/x --save-every 00", dir);
    refused(options, "--save-every 00 is neither");
    snprintf(options, sizeof options, FROM, whole);
    damage("rank-00001.safetensors", 40);
    refused(options, "rank-00001.safetensors");
    damage("model.safetensors", 400);
    refused(options, "model.safetensors");
    damage("state.safetensors", 7);
    refused(options, "state.safetensors");
    damage("checkpoint.json", 9);
    refused(options, "checkpoint.json");
    /* What lies in the folder still does. */
    snprintf(options, sizeof options, "--run-dir %s --resume auto", whole);
    CHECK_EQ(run(COMMON "--model mlp:16 --batch 8 ", options, 0), 0);
}

int main(void)
{
    data_make_dir(dir);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) try(&trials[i]);
    test_saving_is_unseen();
    test_stopped_all_the_time();
    test_scaler_is_restored();
    test_refused();
    data_remove_dir(dir);
    return tac_check_summary();
}
