/* Where each rank has a model of its own, a run that is stopped after any
 * attempt of two intervals and resumed is the run that was never stopped: in
 * every local mode, with deltas under way, and without any averaging. The same
 * parameters, losses, figures, synchronisations and bytes, to the bit. And what
 * must not be resumed is refused. Ranks are threads; each run is ddp_train's,
 * without its main. */
#include <math.h>

#include "comm_threads.h"
#include "ddp_story.h"
#include "tacit/safetensors.h"

/* 184 training samples: 6 steps an epoch at 4 x 8, the last one with 24
 * samples. Intervals of 4 end within an epoch and beyond it. */
#define COMMON                                                       \
    "--quiet --threads 1 --ranks 4 --data synth:200 --model mlp:12 " \
    "--batch 8 --dropout 0.2 --steps 10 --log-every 1 --eval-every 3 "

enum { STEPS = 10 };

typedef struct trial {
    const char *what, *options;
} trial;

static const trial trials[] = {
    {"none, skipping alone",
     "--sync none --precision fp16 --init-scale 256 --growth-interval 3 "
     "--inject-inf 4:2"},
    {"local", "--sync local --sync-every 4"},
    {"local, weighted, sgd, two micro-steps",
     "--sync local --sync-every 4 --weighting samples --optimizer sgd "
     "--batch 4 --accumulate 2"},
    {"post-local", "--sync post-local --sync-every 3"},
    {"slowmo, by applied steps, fp16 that skips alone, 8-bit moments",
     "--sync slowmo --sync-every 4 --weighting steps --precision fp16 "
     "--init-scale 256 --growth-interval 3 --inject-inf 3:1 "
     "--optimizer adamw8bit"},
    {"diloco, moments averaged, int8",
     "--sync diloco --sync-every 4 --moments average --compress int8"},
    {"streaming, delayed, topk",
     "--sync streaming --sync-every 4 --fragments 2 --sync-delay 2 "
     "--compress topk:0.2,warmup=1"},
    {"streaming, delayed, fp4, dropping",
     "--sync streaming --sync-every 4 --sync-delay 3 --compress fp4,ef "
     "--drop-deltas 0.3"},
    {"eager", "--sync diloco --sync-every 4 --sync-delay 4 --stale eager "
              "--compress int8"},
    {"one outer step late", "--sync diloco --sync-every 4 --sync-delay 4"},
    {"levels", "--sync local --sync-levels 2:2,4:4 --outer heavy-ball"},
    {"workers of two ranks, bf16, clipped",
     "--sync diloco --sync-every 4 --worker-size 2 --clip-norm 0.5 "
     "--precision bf16 --moments reset"},
    {"workers of two ranks, streaming",
     "--sync streaming --sync-every 4 --sync-delay 2 --worker-size 2"},
    {"ranks without samples at the end of an epoch",
     "--sync local --sync-every 4 --weighting samples --ranks 3 --batch 61"},
    {"oneshot", "--sync oneshot"},
    {"by the learning rate",
     "--sync local --sync-every 2 --sync-schedule qsr:0.004"},
    {"by the loss", "--sync local --sync-every 4 --sync-schedule adacomm"},
};

/* A run that has `folder`; its story. */
static void tell(const trial *t, const char *folder, const char *more, story *s)
{
    char path[128], common[1024], options[512];

    story_folder(path, folder);
    snprintf(common, sizeof common, COMMON "%s", t->options);
    snprintf(options, sizeof options, "--run-dir %s %s", path, more);
    CHECK_MSG(story_run(common, options, 0) == 0, "%s, %s", t->what, more);
    story_read(path, s);
}

static void resume_from(const trial *t, const story *whole, int step)
{
    char path[128], more[256], what[160];
    static story part;

    story_clear("part");
    story_folder(path, "whole");
    snprintf(more, sizeof more, "--resume %s/checkpoints/step-%08d", path,
             step);
    tell(t, "part", more, &part);
    snprintf(what, sizeof what, "%s, from step %d", t->what, step);
    story_compare(whole, &part, 0, what);
    CHECK_MSG(part.lines >= STEPS - step, "%s: %d lines", what, part.lines);
}

/* Under TSan one for each trial, in turn of either interval. */
static void each_attempt(const trial *t, size_t turn)
{
    const int first = TESTS_TSAN ? 3 + 4 * (int)(turn % 2) : 1;
    const int stride = TESTS_TSAN ? STEPS : TESTS_SLOW ? 3 : 1;

    static story whole, unsaved;

    story_clear("whole");
    story_clear("unsaved");
    tell(t, "unsaved", "", &unsaved);
    tell(t, "whole", "--save-every 1", &whole);
    story_compare(&unsaved, &whole, 1, t->what);
    for (int step = first; step <= STEPS; step += stride)
        resume_from(t, &whole, step);
}

/* ---- stopped again and again ----------------------------------------------
 */

/* One attempt a process, in the same folder, as if a signal had come each time:
 * nothing is averaged for it, and metrics.jsonl is that of one process. */
static void test_stopped_all_the_time(const trial *t)
{
    static story whole, part;
    char path[128], common[1024], options[256];
    int code = TAC__EXIT_RESUMABLE, times = 0;

    story_clear("whole");
    story_clear("part");
    tell(t, "whole", "", &whole);
    story_folder(path, "part");
    snprintf(common, sizeof common, COMMON "%s", t->options);
    snprintf(options, sizeof options,
             "--run-dir %s --save-every 7 --resume auto", path);
    while (code == TAC__EXIT_RESUMABLE && times < STEPS + 2) {
        times++;
        code = story_run(common, options, times <= STEPS);
    }
    CHECK_EQ(code, 0);
    CHECK_EQ(times, STEPS + 1);
    story_read(path, &part);
    story_compare(&whole, &part, 1, t->what);
}

/* A run that has reached its target ends early, is saved there, and is then no
 * longer one that can go on. */
static void test_target(void)
{
    static const trial t = {"target",
                            "--sync diloco --sync-every 4 --sync-delay 2 "
                            "--target-accuracy 0.1 --save-every 2"};
    static story whole, part;
    char path[128], more[256];

    story_clear("whole");
    story_clear("part");
    tell(&t, "whole", "", &whole);
    CHECK_MSG(strstr(whole.summary, "attempts=3 ") != NULL, "%s",
              whole.summary);
    story_folder(path, "whole");
    for (int step = 2; step <= 3; step++) {
        snprintf(more, sizeof more, "--resume %s/checkpoints/step-%08d", path,
                 step);
        tell(&t, "part", more, &part);
        story_compare(&whole, &part, 0, "target");
    }
}

/* ---- what others find -----------------------------------------------------
 */

enum { RANKS = 4 };

static tac_safetensors *open_file(int step, const char *name)
{
    char path[192];
    tac_safetensors *f = NULL;

    story_folder(path, "whole");
    snprintf(path + strlen(path), sizeof path - strlen(path),
             "/checkpoints/step-%08d/%s", step, name);
    CHECK_OK(tac_safetensors_open(NULL, path, &f));
    return f;
}

/* The largest distance between the model and the mean of the ranks' own, and
 * how far the ranks are apart. */
static void measure(int step, double *error, double *apart)
{
    tac_safetensors *model = open_file(step, "model.safetensors");
    tac_safetensors *rank[RANKS];

    *error = *apart = 0;
    for (int r = 0; r < RANKS; r++) {
        char name[32];

        snprintf(name, sizeof name, "rank-%05d.safetensors", r);
        rank[r] = open_file(step, name);
    }
    CHECK_EQ_U64(tac_safetensors_count(model), 4);
    for (size_t i = 0; i < tac_safetensors_count(model); i++) {
        const tac_safetensors_item *m = tac_safetensors_get(model, i);

        for (size_t e = 0; e < m->bytes / sizeof(float); e++) {
            double sum = 0, x[RANKS];

            for (int r = 0; r < RANKS; r++) {
                const tac_safetensors_item *own =
                    tac_safetensors_find(rank[r], m->name);

                if (!CHECK(own && own->bytes == m->bytes)) return;
                sum += x[r] = ((const float *)own->data)[e];
                *apart = fmax(*apart, fabs(x[r] - x[0]));
            }
            *error =
                fmax(*error, fabs(((const float *)m->data)[e] - sum / RANKS));
        }
    }
    tac_safetensors_close(model);
    for (int r = 0; r < RANKS; r++) tac_safetensors_close(rank[r]);
}

/* model.safetensors is the averaged model; where ranks are equal, to the bit.
 */
static void test_model_is_mean(const char *options, int equal_at)
{
    const trial t = {"mean", options};
    static story s;
    double error, apart;

    story_clear("whole");
    tell(&t, "whole", "--save-every 1", &s);
    measure(6, &error, &apart);
    CHECK_MSG(apart > 1e-4 && error < 1e-7, "%s: %g of %g", options, error,
              apart);
    if (equal_at == 0) return;
    measure(equal_at, &error, &apart);
    CHECK_MSG(apart == 0 && error == 0, "%s: %g of %g", options, error, apart);
}

/* A run that was at its end goes on to a later one as if that had always been
 * its end, if an interval ended there, too; from before its end in any case. */
static void test_extended(int from)
{
    static const trial eight = {"8 steps", "--sync slowmo --sync-every 4 "
                                           "--schedule constant --steps 8"},
                       more = {"12 steps", "--sync slowmo --sync-every 4 "
                                           "--schedule constant --steps 12"};
    static story first, part, straight;
    char path[128], options[256];

    story_clear("whole");
    story_clear("part");
    story_clear("straight");
    tell(&eight, "whole", "--save-every 1", &first);
    story_folder(path, "whole");
    snprintf(options, sizeof options, "--resume %s/checkpoints/step-%08d", path,
             from);
    tell(&more, "part", options, &part);
    tell(&more, "straight", "", &straight);
    CHECK_MSG(!strcmp(part.summary, straight.summary),
              "from step %d:\n  %s\n  %s", from, straight.summary,
              part.summary);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";

    data_make_dir(story_dir);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        if (strstr(trials[i].what, only)) each_attempt(&trials[i], i);
    test_stopped_all_the_time(&trials[0]);
    test_stopped_all_the_time(&trials[7]);
    test_stopped_all_the_time(&trials[12]);
    test_target();
    test_model_is_mean("--sync diloco --sync-every 5", 5);
    test_model_is_mean("--sync streaming --sync-every 4 --worker-size 2", 10);
    test_model_is_mean("--sync none", 0);
    test_extended(7);
    test_extended(8);
    data_remove_dir(story_dir);
    return tac_check_summary();
}
