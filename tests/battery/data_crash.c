/* A checkpoint folder survives: a process that ends between any two steps of
 * publishing, one that is killed at any moment, and a full disk. What is found
 * afterwards is whole: the checkpoint before or the new one. */
#include "tac_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint_impl.h"
#include "data_files.h"
#include "tacit/clock.h"
#include "tacit/rng.h"
#include "tacit/safetensors.h"

enum { MANY = 3000, KILLS = 25 };

static tac_context *ctx;
static char warning[4096];

static void keep_warning(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    if (level == TAC_LOG_WARN) snprintf(warning, sizeof warning, "%s", line);
}

static tac_status write_values(const char *root, uint64_t step,
                               const char *file, size_t n, float value)
{
    char *path = tac_checkpoint_tmp_path(root, step, file);
    float *values = malloc(n * sizeof *values);
    tac_safetensors_writer *w = NULL;
    tac_status s;

    if (!path || !values) abort();
    for (size_t i = 0; i < n; i++) values[i] = value;
    s = tac_safetensors_writer_create(ctx, &w);
    if (s >= 0) s = tac_safetensors_add(w, "w", TAC_F32, 1, &n, values);
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    free(values);
    free(path);
    return s;
}

static tac_status fill(const char *root, uint64_t step, float value)
{
    const tac_checkpoint_info info = {.format = 1,
                                      .step = step,
                                      .attempts = step,
                                      .world = 1,
                                      .program = "tacit test",
                                      .files = 2};
    char *path = tac_checkpoint_tmp_path(root, step, "checkpoint.json");
    tac_status s = tac_checkpoint_begin(ctx, root, step);

    if (s >= 0) s = tac_checkpoint_write_info(ctx, path, &info);
    free(path);
    if (s >= 0) s = write_values(root, step, "model.safetensors", MANY, value);
    return s < 0 ? s : write_values(root, step, "state.safetensors", 7, value);
}

static tac_status save(const char *root, uint64_t step, float value)
{
    TAC_TRY(fill(root, step, value));
    return tac_checkpoint_publish(ctx, root, step);
}

/* All values of a file are one; NAN: they aren't, or the file isn't there. */
static float value_of(const char *folder, const char *file)
{
    char *path = tac_checkpoint_path(folder, file);
    tac_safetensors *f = NULL;
    float value = NAN;

    if (CHECK_OK(tac_safetensors_open(ctx, path, &f))) {
        const tac_safetensors_item *w = tac_safetensors_find(f, "w");
        const float *p = w->data;

        value = p[0];
        for (size_t i = 1; i < w->shape[0]; i++)
            if (p[i] != value) value = NAN;
    }
    tac_safetensors_close(f);
    free(path);
    return value;
}

/* The value of the checkpoint that is found, whole and without a warning. */
static float found(const char *root, uint64_t *step)
{
    char *folder = NULL, *path;
    tac_checkpoint_info info = {0};
    float value;

    warning[0] = '\0';
    if (!CHECK_OK(tac_checkpoint_find(ctx, root, &folder))) return NAN;
    CHECK_EQ_STR(warning, "");
    path = tac_checkpoint_path(folder, "checkpoint.json");
    CHECK_OK(tac_checkpoint_read_info(ctx, path, &info));
    *step = info.step;
    value = value_of(folder, "model.safetensors");
    CHECK_EQ_F64(value_of(folder, "state.safetensors"), value);
    free(path);
    free(folder);
    return value;
}

static void check_recovers(const char *root)
{
    uint64_t step = 0;

    CHECK_OK(save(root, 9, 9));
    CHECK_EQ_F64(found(root, &step), 9);
    CHECK_EQ((long long)step, 9);
    char *hidden = tac_checkpoint_tmp_path(root, 2, NULL);
    CHECK_MSG(access(hidden, F_OK) != 0, "%s is still there", hidden);
    free(hidden);
}

/* ---- between two steps --------------------------------------------------- */

/* A process that saves `step` and ends after n steps of publishing. */
static void end_after(const char *root, uint64_t step, float value, int n)
{
    int status = -1;
    const pid_t child = fork();

    if (child == 0) {
        const int ok = fill(root, step, value) >= 0 &&
                       tac__checkpoint_publish_some(ctx, root, step, n) >= 0;
        _exit(ok ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

static void test_ends(const char *dir)
{
    const int steps = tac__checkpoint_publish_steps();
    int seen_old = 0, seen_new = 0;

    for (int same = 0; same < 2; same++)
        for (int n = 0; n <= steps; n++) {
            const uint64_t next = same ? 1 : 2;
            uint64_t step = 0;
            char root[128];

            snprintf(root, sizeof root, "%.60s/ends-%d-%d", dir, same, n);
            CHECK_OK(save(root, 1, 1));
            end_after(root, next, 2, n);
            const float value = found(root, &step);
            CHECK_MSG(value == 1 || value == 2, "after step %d: %g", n,
                      (double)value);
            CHECK_EQ((long long)step, value == 1 ? 1 : (long long)next);
            seen_old += value == 1;
            seen_new += value == 2;
            if (n == 0) CHECK_EQ_F64(value, 1);
            if (n == steps) CHECK_EQ_F64(value, 2);
            check_recovers(root);
        }
    CHECK(seen_old > 2 && seen_new > 2);
}

/* ---- at any moment ------------------------------------------------------- */

static void test_kills(const char *dir, uint64_t seed)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, 0};
    uint64_t step = 0, last = 0;
    char root[128];

    snprintf(root, sizeof root, "%.60s/kills", dir);
    CHECK_OK(save(root, 1, 1));
    for (uint64_t i = 0; i < KILLS; i++) {
        const pid_t child = fork();

        if (child == 0)
            for (uint64_t k = 2;; k++)
                if (save(root, k, (float)k) < 0) _exit(1);
        tac_clock_sleep_ns(tac_rng_below(&key, i, 12000000));
        CHECK(kill(child, SIGKILL) == 0);
        CHECK(waitpid(child, NULL, 0) == child);
        const float value = found(root, &step);
        CHECK_EQ_F64(value, (double)step);
        if (step > last) last = step;
    }
    printf("%d kills from seed %llu, highest step saved %llu\n", (int)KILLS,
           (unsigned long long)seed, (unsigned long long)last);
    check_recovers(root);
}

/* ---- rotation ------------------------------------------------------------ */

/* Falls until step 5, then rises: that one stays the best. */
static double loss_of(uint64_t step)
{
    return fabs((double)step - 5) + 0.5;
}

static tac_status save_and_rotate(const char *root, uint64_t step)
{
    const tac_checkpoint_info info = {.format = 1,
                                      .step = step,
                                      .attempts = step,
                                      .world = 1,
                                      .program = "tacit test",
                                      .files = 2,
                                      .n_metrics = 1,
                                      .metrics = {{"loss", loss_of(step)}}};
    char *path = tac_checkpoint_tmp_path(root, step, "checkpoint.json");
    tac_status s = fill(root, step, (float)step);

    if (s >= 0) s = tac_checkpoint_write_info(ctx, path, &info);
    free(path);
    if (s >= 0) s = tac_checkpoint_publish(ctx, root, step);
    if (s >= 0) s = tac_checkpoint_mark_best(ctx, root, "loss");
    return s < 0 ? s : tac_checkpoint_rotate(ctx, root, 2);
}

/* What can be read of those in the folder; each must be whole. */
static int count_whole(const char *root)
{
    char name[64];
    int n = 0;

    for (uint64_t k = 1; k < 4000; k++) {
        snprintf(name, sizeof name, "step-%08llu", (unsigned long long)k);
        char *folder = tac_checkpoint_path(root, name);
        if (access(folder, F_OK) == 0) {
            CHECK_EQ_F64(value_of(folder, "model.safetensors"), (double)k);
            CHECK_EQ_F64(value_of(folder, "state.safetensors"), (double)k);
            n++;
        }
        free(folder);
    }
    return n;
}

static void check_best(const char *root)
{
    char *best = NULL;

    CHECK_OK(tac_checkpoint_find_best(ctx, root, "loss", &best));
    CHECK_MSG(best && strstr(best, "/step-00000005"), "%s", best ? best : "-");
    free(best);
}

/* A process that saves and rotates is killed at any moment: the best, the
 * latest and what else is there are whole, and there is little of it: one more
 * than before, if it was killed between its first save and its rotation. */
static void test_kills_rotating(const char *dir, uint64_t seed)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, 1};
    uint64_t step = 0, from = 1;
    int before = 2;
    char root[128];

    snprintf(root, sizeof root, "%.60s/rotation", dir);
    for (; from < 9; from++) CHECK_OK(save_and_rotate(root, from));
    for (uint64_t i = 0; i < KILLS; i++) {
        const pid_t child = fork();

        if (child == 0)
            for (uint64_t k = from;; k++)
                if (save_and_rotate(root, k) < 0) _exit(1);
        tac_clock_sleep_ns(tac_rng_below(&key, i, 20000000));
        CHECK(kill(child, SIGKILL) == 0);
        CHECK(waitpid(child, NULL, 0) == child);
        const float value = found(root, &step);
        CHECK_EQ_F64(value, (double)step);
        const int n = count_whole(root);
        CHECK_MSG(n >= 2 && n <= before + 1, "%d checkpoints, %d before", n,
                  before);
        before = n;
        check_best(root);
        from = step + 1;
    }
    CHECK_OK(save_and_rotate(root, from));
    CHECK_EQ(count_whole(root), 2);
    printf("%d kills while rotating, highest step %llu\n", (int)KILLS,
           (unsigned long long)from);
}

/* What nobody wants is kept as well: 1 leaves the best and the latest; what
 * lies beyond the latest goes first. */
static void test_rotation(const char *dir)
{
    uint64_t step = 0;
    char root[128];

    snprintf(root, sizeof root, "%.60s/turn", dir);
    CHECK_OK(tac_checkpoint_rotate(ctx, root, 1)); /* there is none */
    for (uint64_t k = 1; k < 8; k++) CHECK_OK(save(root, k, (float)k));
    CHECK_OK(tac_checkpoint_mark_best(ctx, root, "loss"));
    CHECK_OK(tac_checkpoint_rotate(ctx, root, 0));
    CHECK_EQ(count_whole(root), 7);
    CHECK_OK(save(root, 3, 3)); /* resumed from step 2 */
    CHECK_OK(tac_checkpoint_rotate(ctx, root, 4));
    CHECK_EQ(count_whole(root), 4);
    CHECK_EQ_F64(found(root, &step), 3);
    CHECK_OK(tac_checkpoint_rotate(ctx, root, 1));
    CHECK_EQ(count_whole(root), 1);
    CHECK_EQ_F64(found(root, &step), 3);
}

/* ---- a full disk --------------------------------------------------------- */

static void expect_full(tac_status s, const char *root)
{
    CHECK_STATUS(s, TAC_ERR_IO);
    CHECK(data_message_has(ctx, root));
    CHECK(data_message_has(ctx, "free space"));
}

static int has_no_file(const char *root, uint64_t step, const char *file)
{
    char *path = tac_checkpoint_tmp_path(root, step, file);
    const int none = access(path, F_OK) != 0;

    free(path);
    return none;
}

/* A file that doesn't fit: IO, nothing of it remains, step 1 is found. */
static void check_too_large(const char *root, size_t values)
{
    uint64_t step = 0;

    CHECK_OK(tac_checkpoint_begin(ctx, root, 2));
    expect_full(write_values(root, 2, "model.safetensors", values, 2), root);
    CHECK(has_no_file(root, 2, "model.safetensors"));
    tac_checkpoint_discard(root, 2);
    CHECK_EQ_F64(found(root, &step), 1);
    CHECK_EQ((long long)step, 1);
}

static void fill_disk(const char *root)
{
    static char block[4096];
    char path[160];

    snprintf(path, sizeof path, "%s/ballast", root);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    while (write(fd, block, sizeof block) > 0) continue;
    CHECK_EQ(errno, ENOSPC);
    close(fd);
}

/* Not even `latest` can be written. */
static void check_no_room_at_all(const char *root)
{
    const tac_checkpoint_info info = {.format = 1,
                                      .step = 2,
                                      .attempts = 2,
                                      .world = 1,
                                      .program = "tacit test"};
    uint64_t step = 0;
    char *path = tac_checkpoint_tmp_path(root, 3, "checkpoint.json");

    CHECK_OK(fill(root, 2, 2));
    fill_disk(root);
    expect_full(tac_checkpoint_publish(ctx, root, 2), root);
    CHECK_EQ_F64(found(root, &step), 1);
    if (tac_checkpoint_begin(ctx, root, 3) >= 0)
        expect_full(tac_checkpoint_write_info(ctx, path, &info), root);
    CHECK(has_no_file(root, 3, "checkpoint.json"));
    CHECK_EQ_F64(found(root, &step), 1);
    free(path);
}

static int test_full_disk(const char *dir)
{
    char mounted[100], root[128];

    snprintf(mounted, sizeof mounted, "%.60s/disk", dir);
    snprintf(root, sizeof root, "%s/checkpoints", mounted);
    if (mkdir(mounted, 0700) != 0 ||
        mount("tmpfs", mounted, "tmpfs", 0, "size=512k") != 0)
        return 0;
    CHECK_OK(save(root, 1, 1));
    check_too_large(root, 1 << 20);
    check_no_room_at_all(root);
    CHECK(umount(mounted) == 0);
    return 1;
}

/* Where nothing may be mounted a limit on the size of files does for a disk. */
static void test_file_limit(const char *dir)
{
    struct rlimit old, limit;
    char root[128];

    snprintf(root, sizeof root, "%.60s/limit", dir);
    CHECK_OK(save(root, 1, 1));
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_too_large(root, 1 << 20);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 4711;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    char dir[64];

    cc.log = keep_warning;
    cc.threads = 1;
    CHECK_OK(tac_context_create(&cc, &ctx));
    data_make_dir(dir);
    test_ends(dir);
    test_kills(dir, seed);
    test_rotation(dir);
    test_kills_rotating(dir, seed);
    test_file_limit(dir);
    if (!test_full_disk(dir))
        printf("no small disk could be mounted (%s): only the limit on files "
               "was tried\n",
               strerror(errno));
    data_remove_dir(dir);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
