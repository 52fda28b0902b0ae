/* comm_recorder.c: the flight recorder: what it holds, in which state; the ring
 * and its end; the dump on demand from any thread, and the one on failure,
 * written once a rank and valid JSON. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm_suite.h"
#include "comm_threads.h"
#include "comm_told.h"

static char folder[] = "/tmp/tacit-recorder-XXXXXX";

static char *read_dump(tac_comm *c)
{
    char path[128];
    snprintf(path, sizeof path, "%s/ask.%d.json", folder, tac_comm_rank(c));
    if (!CHECK_OK(tac_comm_dump(c, path))) return NULL;
    char *text = told_read_file(path);
    CHECK(text && tac_json_is_valid(text));
    unlink(path);
    return text;
}

static size_t occurrences(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}

/* The number behind the k-th "key":. */
static double number(const char *text, const char *key, size_t k)
{
    char name[64];
    snprintf(name, sizeof name, "\"%s\":", key);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (k-- == 0) return strtod(at + strlen(name), NULL);
    return -1;
}

/* Finished operations, on rank 0 one under way and one behind it: the others
 * join it when its file is written. */
static void holds_what_happened(tac_comm *c, void *arg)
{
    _Atomic int *written = arg;
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL, *open[2] = {NULL, NULL};
    float x[64] = {0};
    double y[8] = {0};
    opt.tag = 77;
    opt.timeout_ms = 12345;
    CHECK_OK(finish(tac_allreduce(c, NULL, x, 64, TAC_F32, TAC_MAX, &opt, &req),
                    &req));
    CHECK_OK(finish(tac_broadcast(c, y, 8, TAC_F64, 1, NULL, &req), &req));
    CHECK_OK(told_barrier(c));
    if (tac_comm_rank(c) == 0)
        for (int i = 0; i < 2; i++) CHECK_OK(tac_barrier(c, NULL, &open[i]));
    char *text = read_dump(c);
    if (!text) {
        atomic_store(written, 1);
        return;
    }
    told_has(text, "\"transport\":\"thread\"");
    told_has(text, "\"collective\":\"allreduce\",\"dtype\":\"f32\",\"op\":"
                   "\"max\",\"count\":64,\"bytes\":256,\"tag\":77");
    told_has(text, "\"timeout_ms\":12345");
    told_has(text, "\"collective\":\"broadcast\",\"dtype\":\"f64\",\"root\":1,"
                   "\"count\":8");
    CHECK_EQ_F64(number(text, "lost", 0), 0);
    const size_t more = tac_comm_rank(c) == 0 ? 2 : 0;
    CHECK_EQ_U64(occurrences(text, "\"record\":"), 3 + more);
    CHECK_EQ_U64(occurrences(text, "\"state\":\"completed\""), 3);
    CHECK_EQ_U64(occurrences(text, "\"state\":\"started\""), more / 2);
    CHECK_EQ_U64(occurrences(text, "\"state\":\"scheduled\""), more / 2);
    for (size_t k = 0; k < 3; k++) {
        CHECK_EQ_F64(number(text, "seq", k), (double)k);
        CHECK(number(text, "created_ns", k) >= 0);
        CHECK(number(text, "started_ns", k) >= number(text, "created_ns", k));
        CHECK(number(text, "completed_ns", k) >= number(text, "started_ns", k));
    }
    free(text);
    if (tac_comm_rank(c) == 0) atomic_store(written, 1);
    while (!atomic_load(written)) told_sleep_ms(1);
    for (int i = 0; i < 2; i++) {
        if (tac_comm_rank(c) != 0) CHECK_OK(tac_barrier(c, NULL, &open[i]));
        CHECK_OK(tac_wait(open[i], 0));
    }
}

/* 5 entries: the last 5, in order, and how many were lost. */
static void is_a_ring(tac_comm *c, void *arg)
{
    (void)arg;
    for (int i = 0; i < 12; i++) CHECK_OK(told_barrier(c));
    char *text = read_dump(c);
    if (!text) return;
    CHECK_EQ_F64(number(text, "lost", 0), 7);
    CHECK_EQ_U64(occurrences(text, "\"record\":"), 5);
    for (size_t k = 0; k < 5; k++)
        CHECK_EQ_F64(number(text, "seq", k), 7 + (double)k);
    free(text);
}

static void is_off(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(told_barrier(c));
    CHECK_STATUS(tac_comm_dump(c, "/tmp/never"), TAC_ERR_STATE);
    CHECK(access("/tmp/never", F_OK) != 0);
}

/* Another thread dumps all the time. */
typedef struct dumper {
    tac_comm *comm;
    _Atomic int stop, dumps;
} dumper;

static void *dump_on(void *arg)
{
    dumper *d = arg;
    while (!atomic_load(&d->stop)) {
        free(read_dump(d->comm));
        atomic_fetch_add(&d->dumps, 1);
    }
    return NULL;
}

static void dumps_from_any_thread(tac_comm *c, void *arg)
{
    pthread_t other;
    dumper d = {.comm = c};
    (void)arg;
    if (tac_comm_rank(c) == 0)
        CHECK(pthread_create(&other, NULL, dump_on, &d) == 0);
    for (int i = 0; i < 300; i++) CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) != 0) return;
    for (int i = 0; i < 5000 && !atomic_load(&d.dumps); i++) told_sleep_ms(1);
    atomic_store(&d.stop, 1);
    pthread_join(other, NULL);
    CHECK(atomic_load(&d.dumps) > 0);
}

static void bad_paths(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_STATUS(tac_comm_dump(c, "/nowhere/at/all.json"), TAC_ERR_IO);
    CHECK_STATUS(tac_comm_dump(c, NULL), TAC_ERR_ARG);
    CHECK_OK(tac_comm_error(c, NULL, 0));
}

/* Rank 1 stays away from the third operation: each rank's file says so. */
static void fails(tac_comm *c, void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) == 1)
        CHECK_STATUS(told_wait_for_error(c), TAC_ERR_TIMEOUT);
    else
        CHECK_STATUS(told_sum(c, 0), TAC_ERR_TIMEOUT);
    tac_comm_abort(c, "a second failure"); /* writes nothing */
}

static void check_failed_dump(const char *prefix, int rank)
{
    char path[160];
    snprintf(path, sizeof path, "%s.%d.json", prefix, rank);
    char *text = told_read_file(path);
    if (!CHECK_MSG(text != NULL, "there is %s", path)) return;
    CHECK(tac_json_is_valid(text));
    told_has(text, "\"status\":\"TAC_ERR_TIMEOUT\"");
    told_has(text, "timed out");
    told_has(text, "rank 1 has finished allreduce #1 and entered nothing");
    CHECK(strstr(text, "a second failure") == NULL);
    CHECK_EQ_F64(number(text, "rank", 0), rank);
    CHECK_EQ_F64(number(text, "size", 0), 3);
    CHECK_EQ_U64(occurrences(text, "\"collective\":"), rank == 1 ? 2 : 3);
    free(text);
    unlink(path);
}

static void dumps_on_failure(void)
{
    char prefix[64], path[96];
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    snprintf(prefix, sizeof prefix, "%s/by-config", folder);
    config.dump = prefix;
    config.timeout_ms = 150;
    with_threads(3, &config, fails, NULL);
    for (int r = 0; r < 3; r++) check_failed_dump(prefix, r);
    /* The environment's word, where the program has none. */
    snprintf(path, sizeof path, "%s/by-env", folder);
    setenv("TACIT_COMM_DUMP", path, 1);
    with_threads(3, &config, fails, NULL);
    for (int r = 0; r < 3; r++) check_failed_dump(prefix, r);
    config.dump = NULL;
    with_threads(3, &config, fails, NULL);
    for (int r = 0; r < 3; r++) check_failed_dump(path, r);
    unsetenv("TACIT_COMM_DUMP");
    with_threads(3, &config, fails, NULL); /* nowhere */
}

/* A child's file does not replace its parent's. */
static void child_fails(tac_comm *c, void *arg)
{
    tac_comm *child = NULL;
    (void)arg;
    CHECK_OK(tac_comm_split(c, tac_comm_rank(c) / 2, 0, &child));
    tac_comm_abort(child, "child");
    CHECK_STATUS(told_wait_for_error(child), TAC_ERR_ABORTED);
    CHECK_OK(told_barrier(c));
    tac_comm_destroy(child);
    if (tac_comm_rank(c) == 0) tac_comm_abort(c, "parent");
    CHECK_STATUS(told_wait_for_error(c), TAC_ERR_ABORTED);
}

static int files_with(const char *part)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *text = e->d_name[0] == '.' ? NULL : told_read_file(path);
        if (text) unlink(path);
        n += text && strstr(text, part) != NULL;
        free(text);
    }
    if (d) closedir(d);
    return n;
}

static void dumps_of_children(void)
{
    char prefix[64];
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    snprintf(prefix, sizeof prefix, "%s/split", folder);
    config.dump = prefix;
    with_threads(4, &config, child_fails, NULL);
    CHECK_EQ(files_with("\"status\":\"TAC_ERR_ABORTED\""), 8);
}

int main(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    if (!CHECK(mkdtemp(folder) != NULL)) return tac_check_summary();
    _Atomic int written = 0;
    with_threads(3, NULL, holds_what_happened, &written);
    with_threads(1, NULL, bad_paths, NULL);
    with_threads(2, NULL, dumps_from_any_thread, NULL);
    config.recorder = 5;
    with_threads(2, &config, is_a_ring, NULL);
    config.recorder = -1;
    with_threads(2, &config, is_off, NULL);
    dumps_on_failure();
    dumps_of_children();
    CHECK(rmdir(folder) == 0); /* nothing is left */
    return tac_check_summary();
}
