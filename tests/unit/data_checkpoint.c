/* The checkpoint folder: it appears whole, `latest` follows, leftovers go, and
 * whatever a user names is found or refused with the words that say why.
 * (Crashes: battery/data_crash.c.) */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "data_files.h"
#include "tacit/checkpoint.h"
#include "tacit/safetensors.h"

static tac_context *ctx;
static char dir[64], root[128];
static char warning[4096];

static void keep_warning(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    if (level == TAC_LOG_WARN) snprintf(warning, sizeof warning, "%s", line);
}

static void setup(void)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    cc.log = keep_warning;
    cc.threads = 1;
    cr_assert_eq(tac_context_create(&cc, &ctx), TAC_OK);
    data_make_dir(dir);
    snprintf(root, sizeof root, "%s/run/checkpoints", dir);
}

static void teardown(void)
{
    data_remove_dir(dir);
    tac_context_destroy(ctx);
}

TestSuite(data_checkpoint, .init = setup, .fini = teardown);

static const char *in_root(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static tac_checkpoint_info info_of(uint64_t step)
{
    return (tac_checkpoint_info){.format = 1,
                                 .step = step,
                                 .attempts = step + 1,
                                 .world = 2,
                                 .program = "tacit test",
                                 .files = 1};
}

/* Files of a checkpoint whose one weight is `value`. */
static void fill(uint64_t step, float value)
{
    const tac_checkpoint_info info = info_of(step);
    char *path = tac_checkpoint_tmp_path(root, step, "checkpoint.json");
    tac_safetensors_writer *w = NULL;
    cr_assert_eq(tac_checkpoint_write_info(ctx, path, &info), TAC_OK);
    free(path);
    path = tac_checkpoint_tmp_path(root, step, "model.safetensors");
    cr_assert_eq(tac_safetensors_writer_create(ctx, &w), TAC_OK);
    tac_safetensors_add(w, "w", TAC_F32, 0, NULL, &value);
    cr_assert_eq(tac_safetensors_write(w, path, NULL), TAC_OK);
    tac_safetensors_writer_destroy(w);
    free(path);
}

static void save(uint64_t step, float value)
{
    cr_assert_eq(tac_checkpoint_begin(ctx, root, step), TAC_OK);
    fill(step, value);
    cr_assert_eq(tac_checkpoint_publish(ctx, root, step), TAC_OK);
}

static int exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    data_write(path, text, strlen(text));
}

/* What `path` resolves to ends with `end`, and its weight is `value`. */
static void finds(const char *path, const char *end, float value)
{
    char *found = NULL;
    cr_assert_eq(tac_checkpoint_find(ctx, path, &found), TAC_OK);
    const size_t n = strlen(found), m = strlen(end);
    cr_expect(n >= m && !strcmp(found + n - m, end), "%s, not %s", found, end);
    char *file = tac_checkpoint_path(found, "model.safetensors");
    tac_safetensors *f = NULL;
    cr_assert_eq(tac_safetensors_open(ctx, file, &f), TAC_OK);
    cr_expect_eq(*(const float *)tac_safetensors_find(f, "w")->data, value);
    tac_safetensors_close(f);
    free(file);
    free(found);
}

static void refuses(const char *path, const char *text)
{
    char *found = NULL;
    cr_expect_eq(tac_checkpoint_find(ctx, path, &found), TAC_ERR_DATA);
    cr_expect_null(found);
    cr_expect(data_message_has(ctx, text));
    cr_expect(data_message_has(ctx, path));
}

Test(data_checkpoint, appears_at_once)
{
    char run[128], text[64] = "";
    snprintf(run, sizeof run, "%s/run", dir);
    cr_assert_eq(tac_checkpoint_begin(ctx, root, 500), TAC_OK);
    fill(500, 5);
    cr_expect(!exists("step-00000500") && !exists("latest"));
    refuses(run, "No valid checkpoint found in output directory");
    cr_assert_eq(tac_checkpoint_publish(ctx, root, 500), TAC_OK);
    cr_expect(exists("step-00000500/model.safetensors"));
    cr_expect(!exists(".tmp-step-00000500") && !exists(".tmp-latest"));
    char path[256];
    FILE *f = fopen(in_root(path, "latest"), "r");
    cr_assert(f && fgets(text, sizeof text, f));
    fclose(f);
    cr_expect_str_eq(text, "step-00000500\n");
    finds(run, "/step-00000500", 5);
    finds(root, "/step-00000500", 5);
    finds(in_root(path, "step-00000500"), "/step-00000500", 5);
    cr_expect_eq(warning[0], 0);
}

Test(data_checkpoint, latest_is_the_last_saved)
{
    save(20, 2);
    save(10, 1); /* after going back */
    finds(root, "/step-00000010", 1);
    save(123456789012, 3);
    finds(root, "/step-123456789012", 3);
}

Test(data_checkpoint, same_step_is_replaced)
{
    save(7, 1);
    put("step-00000007/extra", "x");
    save(7, 2);
    finds(root, "/step-00000007", 2);
    cr_expect(!exists("step-00000007/extra"), "files of the former remain");
    cr_expect(!exists(".tmp-step-00000007"));
}

Test(data_checkpoint, leftovers_are_removed)
{
    char path[256];
    save(1, 1);
    cr_assert_eq(tac_checkpoint_begin(ctx, root, 2), TAC_OK);
    fill(2, 2);
    put(".tmp-latest", "step-00000002\n");
    cr_assert_eq(mkdir(in_root(path, ".tmp-step-00000003"), 0777), 0);
    put("notes.txt", "mine");
    cr_assert_eq(tac_checkpoint_begin(ctx, root, 4), TAC_OK);
    cr_expect(!exists(".tmp-step-00000002") && !exists(".tmp-step-00000003") &&
              !exists(".tmp-latest"));
    cr_expect(exists(".tmp-step-00000004") && exists("step-00000001") &&
              exists("notes.txt"));
    tac_checkpoint_discard(root, 4);
    tac_checkpoint_discard(root, 4);
    cr_expect(!exists(".tmp-step-00000004"));
    finds(root, "/step-00000001", 1);
    /* A run that saves no more has them removed, too. */
    cr_assert_eq(mkdir(in_root(path, ".tmp-old-step-00000001"), 0777), 0);
    cr_assert_eq(tac_checkpoint_tidy(ctx, root), TAC_OK);
    cr_expect(!exists(".tmp-old-step-00000001") && exists("step-00000001") &&
              exists("notes.txt"));
    cr_assert_eq(tac_checkpoint_tidy(ctx, in_root(path, "none")), TAC_OK);
    cr_expect(!exists("none"));
}

static void break_weights(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/model.safetensors", root, name);
    cr_assert_eq(truncate(path, 60), 0);
}

Test(data_checkpoint, falls_back_with_a_warning)
{
    save(1, 1);
    save(3, 3);
    save(2, 2);
    put("latest", "step-00000009\n");
    finds(root, "/step-00000003", 3);
    cr_expect(strstr(warning, "step-00000009") && strstr(warning, "taking") &&
                  strstr(warning, "-00000003"),
              "%s", warning);
    break_weights("step-00000003");
    put("latest", "step-00000003\n");
    warning[0] = 0;
    finds(root, "/step-00000002", 2);
    cr_expect(strstr(warning, "step-00000003/model.safetensors"), "%s",
              warning);
    put("latest", "../../elsewhere\n");
    finds(root, "/step-00000002", 2);
    cr_expect(strstr(warning, "latest names no checkpoint"), "%s", warning);
    char path[256];
    unlink(in_root(path, "latest"));
    finds(root, "/step-00000002", 2);
    put("step-00000002/checkpoint.json", "{\"format\":1");
    put("latest", "step-00000002\n");
    finds(root, "/step-00000001", 1);
    cr_expect(strstr(warning, "checkpoint.json"), "%s", warning);
}

Test(data_checkpoint, refused_with_the_words_of_the_field)
{
    char path[256];
    refuses("/no/such/folder", "Can't find a valid checkpoint at");
    refuses(dir, "No valid checkpoint found in output directory");
    cr_expect(!tac_checkpoint_exists(dir));
    cr_expect(!tac_checkpoint_exists("/no/such/folder"));
    data_write(data_path(path, dir, "file"), "x", 1);
    refuses(path, "Can't find a valid checkpoint at");
    save(5, 5);
    cr_expect(tac_checkpoint_exists(root));
    break_weights("step-00000005");
    refuses(root, "No valid checkpoint found in output directory");
    cr_expect(data_message_has(ctx, "model.safetensors"));
    cr_expect(data_message_has(ctx, "cut short"));
    cr_expect(tac_checkpoint_exists(root), "broken ones exist, too");
}

/* Whose name is still in `latest`. */
Test(data_checkpoint, one_that_lacks_a_file_is_not_taken)
{
    char path[256];
    save(3, 3);
    save(4, 4);
    cr_assert_eq(unlink(in_root(path, "step-00000004/model.safetensors")), 0);
    finds(root, "step-00000003", 3);
    cr_expect(strstr(warning, "step-00000004 has 0 safetensors files"));
}

Test(data_checkpoint, folders_that_cant_be_made)
{
    char file[128], below[256];
    data_write(data_path(file, dir, "file"), "x", 1);
    snprintf(below, sizeof below, "%s/checkpoints", file);
    cr_expect_eq(tac_checkpoint_begin(ctx, below, 1), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, below) && data_message_has(ctx, "check"));
    cr_expect_eq(tac_checkpoint_begin(ctx, file, 1), TAC_ERR_IO);
    cr_expect_eq(tac_checkpoint_publish(ctx, dir, 1), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "step-00000001"));
}

Test(data_checkpoint, info)
{
    char path[128];
    const tac_checkpoint_info in = {
        .format = 1,
        .step = 5,
        .attempts = UINT64_C(1) << 40,
        .world = 8,
        .program = "tacit \"x\"",
        .files = 10,
        .n_metrics = 2,
        .metrics = {{"loss", 0.1}, {"accuracy", 1}},
    };
    tac_checkpoint_info out = {0};
    data_path(path, dir, "checkpoint.json");
    cr_expect_eq(tac_checkpoint_write_info(ctx, path, &in), TAC_OK);
    cr_expect_eq(tac_checkpoint_read_info(ctx, path, &out), TAC_OK);
    cr_expect(out.format == 1 && out.step == 5 &&
              out.attempts == UINT64_C(1) << 40 && out.world == 8 &&
              out.files == 10);
    cr_expect_str_eq(out.program, in.program);
    cr_expect_eq(out.n_metrics, 2);
    cr_expect_eq(tac_checkpoint_metric_of(&out, "loss"), 0.1);
    cr_expect_eq(tac_checkpoint_metric_of(&out, "accuracy"), 1);
    cr_expect(isnan(tac_checkpoint_metric_of(&out, "f1")));
    cr_expect_eq(tac_checkpoint_read_info(ctx, "/no/such", &out), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "/no/such"));
    cr_expect_eq(tac_checkpoint_read_info(ctx, dir, &out), TAC_ERR_DATA);
}

typedef struct bad_info {
    const char *text, *message;
} bad_info;

static const bad_info bad_infos[] = {
    {"", "no valid JSON"},
    {"[1]", "something else"},
    {"{\"format\":1,\"format\":1}", "duplicate"},
    {"{\"step\":1}", "\"format\" is missing"},
    {"{\"format\":2}", "format 2, this program reads 1"},
    {"{\"format\":1.5}", "\"format\" is not what"},
    {"{\"format\":1,\"step\":-1}", "\"step\" is not what"},
    {"{\"format\":1,\"step\":\"1\"}", "\"step\" is not what"},
    {"{\"format\":1,\"step\":1}", "\"attempts\" is missing"},
    {"{\"format\":1,\"step\":1,\"attempts\":1,\"world\":0}",
     "\"world\" is not"},
    {"{\"format\":1,\"step\":2,\"attempts\":1}", "\"attempts\" is not"},
    {"{\"format\":1,\"step\":1,\"attempts\":1,\"world\":1,\"files\":-1}",
     "\"files\" is not"},
    {"{\"format\":1,\"step\":1,\"attempts\":1,\"world\":1}", "\"program\""},
    {"{\"format\":1,\"step\":1,\"attempts\":1,\"world\":1,\"program\":7}",
     "\"program\""},
    {"{\"format\":1,\"step\":1,\"attempts\":1,\"world\":1,\"program\":"
     "\"0123456789012345678901234567890123456789012345678901234567890123\"}",
     "too long"},
};

Test(data_checkpoint, bad_info)
{
    char path[128];
    tac_checkpoint_info out = {0};
    data_path(path, dir, "checkpoint.json");
    for (size_t i = 0; i < sizeof bad_infos / sizeof *bad_infos; ++i) {
        data_write(path, bad_infos[i].text, strlen(bad_infos[i].text));
        cr_expect_eq(tac_checkpoint_read_info(ctx, path, &out), TAC_ERR_DATA,
                     "%s", bad_infos[i].text);
        cr_expect(data_message_has(ctx, bad_infos[i].message));
        cr_expect(data_message_has(ctx, path));
        cr_expect_eq(out.format, 0, "written although it failed");
    }
}
