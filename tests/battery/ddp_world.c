/* A run that goes on with another number of ranks, or with its steps cut
 * otherwise, ends where the undisturbed one does, up to rounding: each step has
 * the same samples, dropout masks and counts. Where that can't be it is
 * refused. The best checkpoint is kept, and loaded in the end. */
#include "ddp_damage.h"

#include "tacit/checkpoint.h"

/* 184 training samples, so that an epoch ends within a step of 16. */
#define COMMON                                                       \
    "--quiet --threads 1 --data synth:200 --steps 20 --log-every 1 " \
    "--eval-every 7 --model mlp:16 "
#define HERE COMMON "--ranks 2 --batch 8 --optimizer sgd "

static void path_of(char path[256], const char *run, int step)
{
    char folder[128];

    story_folder(folder, run);
    snprintf(path, 256, "%s/checkpoints/step-%08d/model.safetensors", folder,
             step);
}

/* The largest difference of any parameter; NAN: they can't be compared. */
static double distance(const char *run, const char *other, int step)
{
    tac_safetensors *a = NULL, *b = NULL;
    char path[256];
    double most = NAN;

    path_of(path, run, step);
    const int have_a = CHECK_OK(tac_safetensors_open(NULL, path, &a));
    path_of(path, other, step);
    const int have_b = CHECK_OK(tac_safetensors_open(NULL, path, &b));
    for (size_t i = 0; have_a && have_b && i < tac_safetensors_count(a); i++) {
        const tac_safetensors_item *x = tac_safetensors_get(a, i);
        const tac_safetensors_item *y = tac_safetensors_find(b, x->name);
        const float *p = x->data, *q = y ? y->data : NULL;

        if (i == 0) most = 0;
        if (!q) most = NAN;
        for (size_t k = 0; q && k < x->bytes / sizeof *p; k++)
            most = fmax(most, fabs((double)p[k] - (double)q[k]));
    }
    tac_safetensors_close(a);
    tac_safetensors_close(b);
    return most;
}

/* Counts are the same; losses are those of the same samples. */
static void check_lines(const story *a, const story *b, const char *what)
{
    CHECK_MSG(b->lines > 0 && b->lines < a->lines, "%s: %d lines", what,
              b->lines);
    for (int i = 1; i < b->lines; i++) {
        char x[128], y[128];
        const char *p = a->line[a->lines - i], *q = b->line[b->lines - i];

        CHECK_MSG(strncmp(p, q, strcspn(p, "l")) == 0, "%s: %s\n%s", what, p,
                  q);
        const char *u = strstr(p, "loss="), *v = strstr(q, "loss=");
        if (!u || !v) continue;
        snprintf(x, sizeof x, "%.100s", u + 5);
        snprintf(y, sizeof y, "%.100s", v + 5);
        CHECK_MSG(fabs(atof(x) - atof(y)) < 2e-3, "%s: loss %s and %s", what, x,
                  y);
    }
}

typedef struct trial {
    const char *saved, *options; /* at first; always */
    const char *resumed;         /* now */
    double tolerance;
} trial;

static const trial trials[] = {
    {"--ranks 2 --batch 8", "--optimizer sgd --dropout 0.2",
     "--ranks 1 --batch 16", 1e-5},
    {"--ranks 2 --batch 8", "--optimizer sgd --dropout 0.2",
     "--ranks 4 --global-batch 16", 1e-5},
    {"--ranks 1 --batch 16", "--optimizer sgd --dropout 0.2",
     "--ranks 8 --batch 2", 1e-5},
    {"--ranks 4 --batch 4", "--optimizer adamw --clip-norm 1",
     "--ranks 2 --batch 4 --accumulate 2", 1e-4},
    {"--ranks 2 --batch 8",
     "--optimizer adamw8bit --precision fp16 --init-scale 1024 "
     "--growth-interval 4 --inject-inf 3",
     "--ranks 4 --batch 4", 1e-2},
    {"--ranks 2 --batch 8", "--optimizer sgd --compress fp16",
     "--ranks 4 --batch 4", 1e-3},
    /* With an average after every step, and steps that are sums of gradients,
     * it is the same in local modes. */
    {"--ranks 2 --batch 8",
     "--optimizer sgd --momentum 0 --sync local --sync-every 1",
     "--ranks 4 --batch 4", 1e-4},
};

static void try(const trial *t, int step)
{
    char common[1024], options[512], whole_folder[128], folder[128], what[300];
    static story whole, part;

    story_folder(whole_folder, "whole");
    story_folder(folder, "part");
    story_clear("part");
    snprintf(what, sizeof what, "%s, %s -> %s, from %d", t->options, t->saved,
             t->resumed, step);
    snprintf(common, sizeof common, COMMON "%s %s", t->options, t->resumed);
    snprintf(options, sizeof options,
             "--run-dir %s --save-every 5 --resume %s/checkpoints/step-%08d",
             folder, whole_folder, step);
    CHECK_MSG(story_run(common, options, 0) == 0, "%s", what);
    story_read(whole_folder, &whole);
    story_read(folder, &part);
    check_lines(&whole, &part, what);
    const double d = distance("whole", "part", 20);
    CHECK_MSG(d > 0 && d <= t->tolerance, "%s: parameters differ by %g", what,
              d);
}

static void test_the_same(void)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const trial *t = &trials[i];
        char common[1024], options[256], folder[128];

        story_folder(folder, "whole");
        story_clear("whole");
        snprintf(common, sizeof common, COMMON "%s %s", t->options, t->saved);
        snprintf(options, sizeof options, "--run-dir %s --save-every 4",
                 folder);
        CHECK_EQ(story_run(common, options, 0), 0);
        try(t, 4);
        try(t, 12); /* where an epoch ends */
    }
}

/* There and back again; what ranks have sent is not forgotten. */
static void test_there_and_back(void)
{
    char options[512], folder[128], sent[128], path[192], line[8192] = "";

    story_clear("whole");
    story_folder(folder, "whole");
#define GO "--run-dir %s --save-every 4 --resume auto "
    snprintf(options, sizeof options, GO "--ranks 4 --batch 4 --steps 4",
             folder);
    CHECK_EQ(story_run(HERE, options, 0), 0);
    snprintf(options, sizeof options, GO "--ranks 1 --batch 16 --steps 8",
             folder);
    CHECK_EQ(story_run(HERE, options, 0), 0);
    snprintf(options, sizeof options, GO "--ranks 2 --batch 8 --steps 12",
             folder);
    CHECK_EQ(story_run(HERE, options, 0), 0);
    snprintf(path, sizeof path, "%s/summary.json", folder);
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(line, sizeof line, f));
    if (f) fclose(f);
    story_value(line, "bytes_predicted", sent);
    CHECK_EQ_STR(sent, "null");
    story_value(line, "bytes_sync_wire", sent);
    /* 784 x 16 + 16 + 16 x 10 + 10 parameters, each tensor a multiple of 64
     * bytes: 4 steps of 4 ranks, 4 of one that sends nothing, 4 of 2. */
    CHECK_EQ(atoll(sent), 12736LL * 4 * (4 * 4 + 4 * 2));
}

static void refused(const char *saved, const char *options, int step,
                    const char *resumed, const char *text)
{
    char common[512], more[512], folder[128];

    story_folder(folder, "whole");
    story_clear("whole");
    snprintf(common, sizeof common, COMMON "%s %s", options, saved);
    snprintf(more, sizeof more, "--run-dir %s --save-every 5", folder);
    CHECK_EQ(story_run(common, more, 0), 0);
    snprintf(common, sizeof common, COMMON "%s %s", options, resumed);
    snprintf(more, sizeof more, "--resume %s/checkpoints/step-%08d", folder,
             step);
    damage_refused(common, more, text);
}

static void test_refused(void)
{
    refused("--ranks 2 --batch 8", "--compress int8", 5, "--ranks 4 --batch 4",
            "still owes is each rank's own: start 2 ranks");
    refused("--ranks 2 --batch 8", "", 5, "--ranks 2 --batch 4",
            "a step has 8 samples (2 ranks x --batch 4 x --accumulate 1)");
    refused("--ranks 2 --batch 8", "", 5, "--ranks 4 --batch 8",
            "was saved with 16: give --batch 4");
    refused("--ranks 2 --batch 8", "--shards sorted", 5, "--ranks 4 --batch 4",
            "with these --shards each rank has samples of its own");
    refused("--ranks 2 --batch 8", "--sync none", 5, "--ranks 1 --batch 16",
            "with --sync none each rank has a model of its own");
    refused("--ranks 2 --batch 8", "--sync local --sync-every 4", 5,
            "--ranks 4 --batch 4", "it lies between two averages");
    refused("--ranks 4 --batch 4",
            "--sync local --sync-every 5 --worker-size "
            "2",
            5, "--ranks 2 --batch 8", "ranks form groups");
    /* Where the average that is due has not arrived. */
    refused("--ranks 2 --batch 8",
            "--sync diloco --sync-every 5 --sync-delay 3", 5,
            "--ranks 4 --batch 4", "it lies between two averages");
}

/* Right after an average any number goes on. */
static void test_local(void)
{
    static const char *const modes[] = {"--sync local --sync-every 5",
                                        "--sync diloco --sync-every 5",
                                        "--sync slowmo --sync-every 10"};
    static const char *const now[] = {"--ranks 4 --batch 4",
                                      "--ranks 1 --batch 16"};
    char common[512], more[512], folder[128], whole_folder[128];
    static story s;

    story_folder(whole_folder, "whole");
    story_folder(folder, "part");
    for (int i = 0; i < 3; i++) {
        story_clear("whole");
        snprintf(common, sizeof common, COMMON "%s --ranks 2 --batch 8",
                 modes[i]);
        snprintf(more, sizeof more, "--run-dir %s --save-every 10",
                 whole_folder);
        CHECK_EQ(story_run(common, more, 0), 0);
        for (int k = 0; k < 2; k++) {
            story_clear("part");
            snprintf(common, sizeof common, COMMON "%s %s", modes[i], now[k]);
            snprintf(more, sizeof more,
                     "--run-dir %s --resume %s/checkpoints/step-%08d", folder,
                     whole_folder, 10);
            CHECK_MSG(story_run(common, more, 0) == 0, "%s", common);
            story_read(folder, &s);
            CHECK_MSG(strstr(s.summary, "attempts=20 "), "%s", s.summary);
        }
    }
}

/* ---- the best -------------------------------------------------------------
 */

static int count_of(const char *folder)
{
    char path[192];
    int n = 0;

    for (int step = 0; step <= 20; step++) {
        snprintf(path, sizeof path, "%s/checkpoints/step-%08d", folder, step);
        n += access(path, F_OK) == 0;
    }
    return n;
}

/* With a learning rate that spoils the model after a while the best is not the
 * last, stays, and is what the run ends with. */
static void test_best(void)
{
    static const char spoiled[] =
        COMMON "--ranks 2 --batch 8 --optimizer sgd --lr 0.6 --schedule linear "
               "--warmup-steps 20 --eval-every 2 --save-every 2 ";
    char more[512], folder[128], path[192], line[8192] = "", loss[128];
    char *best = NULL, *of_all = NULL;
    tac_checkpoint_info info = {0};

    story_folder(folder, "whole");
    story_clear("whole");
    snprintf(more, sizeof more, "--run-dir %s --save-total-limit 2 --load-best",
             folder);
    CHECK_EQ(story_run(spoiled, more, 0), 0);
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    CHECK_OK(tac_checkpoint_find_best(NULL, path, "loss", &best));
    CHECK_EQ(count_of(folder), 2);
    char *file = best ? tac_checkpoint_path(best, "checkpoint.json") : NULL;
    CHECK(file && tac_checkpoint_read_info(NULL, file, &info) == TAC_OK);
    CHECK_MSG(info.step < 20, "the last is the best: nothing was tested");
    snprintf(path, sizeof path, "%s/summary.json", folder);
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(line, sizeof line, f));
    if (f) fclose(f);
    story_value(line, "eval_loss", loss);
    CHECK_EQ_F64(atof(loss), tac_checkpoint_metric_of(&info, "loss"));
    /* The same among all. */
    story_clear("part");
    story_folder(folder, "part");
    snprintf(more, sizeof more, "--run-dir %s", folder);
    CHECK_EQ(story_run(spoiled, more, 0), 0);
    CHECK_EQ(count_of(folder), 10);
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    CHECK_OK(tac_checkpoint_find_best(NULL, path, "loss", &of_all));
    if (CHECK(best && of_all))
        CHECK_EQ_STR(strrchr(best, '/'), strrchr(of_all, '/'));
    free(file);
    free(best);
    free(of_all);
}

static void test_best_refused(void)
{
    char folder[128], more[256];

    story_folder(folder, "part");
    snprintf(more, sizeof more, "--run-dir %s --save-every 5 --load-best",
             folder);
    damage_refused(HERE, more, "give both the same");
    damage_refused(HERE, "--load-best", "needs checkpoints");
    damage_refused(HERE, "--save-total-limit 3", "needs checkpoints");
    snprintf(more, sizeof more, "--run-dir %s --save-every 5 --best-metric f1",
             folder);
    damage_refused(HERE, more, "f1 is neither loss nor accuracy");
}

int main(void)
{
    data_make_dir(story_dir);
    test_the_same();
    test_there_and_back();
    test_refused();
    test_local();
    test_best();
    test_best_refused();
    data_remove_dir(story_dir);
    return tac_check_summary();
}
