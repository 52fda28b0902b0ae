/* ddp_complaints.c: what users of other frameworks complained of in training,
 * and where it is tested that tacit behaves otherwise. docs/complaints.md says
 * what each complaint is; cli/docs.sh, that each test named there exists.
 * Tested here is what has no better place: epochs that would have one order,
 * and ranks that would all remove checkpoints. */
#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tac_check.h"
#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/trainer.h"

enum { SAMPLES = 48, EPOCHS = 3 };

static char dir[64];

/* ---- a dataset that remembers what was asked of it ------------------------
 */

typedef struct memory {
    tac_dataset *under;
    uint32_t index[4 * SAMPLES * EPOCHS];
    size_t n;
} memory;

static tac_status gather(void *impl, tac_context *ctx, size_t n,
                         const uint32_t *index, float *x, int32_t *y)
{
    memory *m = impl;

    for (size_t i = 0; i < n; i++)
        if (m->n < sizeof m->index / sizeof *m->index)
            m->index[m->n++] = index[i];
    return tac_dataset_gather(m->under, ctx, n, index, x, y);
}

static tac_dataset *samples(void)
{
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    tac_dataset *set = NULL;

    sc.count = SAMPLES;
    sc.h = sc.w = 4;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &set));
    return set;
}

static tac_dataset *remembering(memory *m)
{
    static const tac_dataset_ops ops = {sizeof ops, "remembering", gather,
                                        NULL,       NULL,          NULL};
    tac_dataset *set = NULL;

    m->under = samples();
    const tac_dataset_info info = tac_dataset_get_info(m->under);
    CHECK_OK(tac_dataset_create(NULL, &ops, m, &info, &set));
    return set;
}

/* ---- a trainer ------------------------------------------------------------
 */

typedef struct trial {
    tac_training_args args;
    tac_dataset *train, *eval;
} trial;

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const trial *t = arg;
    const tac_trainer_config c = {.struct_size = sizeof c,
                                  .args = &t->args,
                                  .train_dataset = t->train,
                                  .eval_dataset = t->eval};
    tac_trainer *trainer;

    TAC_TRY(tac_trainer_create(ctx, comm, &c, &trainer));
    const tac_status s = tac_trainer_train(trainer, NULL, NULL);
    tac_trainer_destroy(trainer);
    return s;
}

static int run(trial *t, int ranks)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;

    lc.ranks = ranks;
    lc.threads = 1;
    return tac_launch(&lc, body, t);
}

static trial trial_of(void)
{
    trial t = {.args = TAC_TRAINING_ARGS_INIT};

    t.args.options = "model=mlp:8 quiet=true";
    t.args.output_dir = dir;
    t.args.num_train_epochs = EPOCHS;
    t.args.per_device_train_batch_size = 8;
    return t;
}

/* ---- complaint 26: a forgotten set_epoch ----------------------------------
 * Each epoch has every sample once, in an order of its own. */

static int is_permutation(const uint32_t *index)
{
    char seen[SAMPLES] = {0};

    for (size_t i = 0; i < SAMPLES; i++) {
        if (index[i] >= SAMPLES || seen[index[i]]) return 0;
        seen[index[i]] = 1;
    }
    return 1;
}

static void epochs_have_their_own_orders(void)
{
    memory m = {.n = 0};
    trial t = trial_of();

    t.train = remembering(&m);
    CHECK_EQ(run(&t, 1), 0);
    if (CHECK_EQ((long long)m.n, SAMPLES * EPOCHS))
        for (size_t e = 0; e < EPOCHS; e++) {
            const uint32_t *mine = m.index + e * SAMPLES;

            CHECK(is_permutation(mine));
            for (size_t d = 0; d < e; d++)
                CHECK(memcmp(mine, m.index + d * SAMPLES,
                             SAMPLES * sizeof *mine) != 0);
        }
    tac_dataset_destroy(t.train);
    tac_dataset_destroy(m.under);
}

/* ---- complaint 25: who removes old checkpoints ----------------------------
 * With a limit of 2 there are two in the end, the latest and the best, though
 * four ranks saved 18 times; nothing half made is left, and nobody has found
 * that another was quicker. */

static int count_entries(const char *root, const char *prefix)
{
    DIR *d = opendir(root);
    const struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (d) closedir(d);
    return n;
}

static int count_lines(const char *path, const char *word)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    int n = 0;

    while (f && fgets(line, sizeof line, f)) n += strstr(line, word) != NULL;
    if (f) fclose(f);
    return n;
}

static void one_rank_rotates(void)
{
    trial t = trial_of();
    char root[128], best[160], told[128];

    snprintf(root, sizeof root, "%s/checkpoints", dir);
    snprintf(best, sizeof best, "%s/best", root);
    t.train = t.eval = samples();
    t.args.per_device_train_batch_size = 2;
    t.args.save_strategy = t.args.eval_strategy = "steps";
    t.args.save_steps = t.args.eval_steps = 1;
    t.args.save_total_limit = 2;
    t.args.load_best_model_at_end = 1;
    const int terminal = dup(STDERR_FILENO);
    snprintf(told, sizeof told, "%s/stderr", dir);
    CHECK(freopen(told, "w", stderr) != NULL);
    CHECK_EQ(run(&t, 4), 0);
    fflush(stderr);
    CHECK(dup2(terminal, STDERR_FILENO) >= 0);
    CHECK_EQ(count_lines(told, "remove"), 0);
    CHECK_EQ(count_entries(root, "step-"), 2);
    CHECK_EQ(count_entries(root, "."), 2); /* "." and ".." */
    CHECK_MSG(access(best, F_OK) == 0, "no %s", best);
    tac_dataset_destroy(t.train);
}

static int forget(const char *path, const struct stat *st, int flag,
                  struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/tacit-complaints-XXXXXX");
    if (!CHECK(mkdtemp(dir))) return tac_check_summary();
    epochs_have_their_own_orders();
    one_rank_rotates();
    nftw(dir, forget, 8, FTW_DEPTH | FTW_PHYS);
    return tac_check_summary();
}
