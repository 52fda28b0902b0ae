/* base_json.c: the JSON writer against exact texts and an independent reader.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tac_json_check.h"
#include "tacit/json.h"

static void expect_text(const tac_json *j, const char *want)
{
    size_t bytes = 999;
    const char *got = tac_json_text(j, &bytes);
    cr_assert_str_eq(got, want);
    cr_assert_eq(bytes, strlen(want));
    cr_assert(tac_json_is_valid(got), "not JSON: %s", got);
}

Test(json, nesting_and_commas)
{
    tac_json *j = tac_json_create();
    tac_json_begin_object(j, NULL);
    tac_json_i64(j, "a", -1);
    tac_json_begin_array(j, "b");
    tac_json_bool(j, NULL, 7);
    tac_json_begin_array(j, NULL);
    tac_json_end_array(j);
    tac_json_begin_object(j, NULL);
    tac_json_end_object(j);
    tac_json_bool(j, NULL, 0);
    tac_json_end_array(j);
    tac_json_null(j, "c");
    tac_json_begin_object(j, "d");
    tac_json_str(j, "e", "f");
    tac_json_end_object(j);
    tac_json_u64(j, "g", UINT64_MAX);
    tac_json_end_object(j);
    expect_text(j, "{\"a\":-1,\"b\":[true,[],{},false],\"c\":null,"
                   "\"d\":{\"e\":\"f\"},\"g\":18446744073709551615}");
    tac_json_destroy(j);
}

static void expect_string(const char *value, const char *want)
{
    tac_json *j = tac_json_create();
    tac_json_str(j, NULL, value);
    expect_text(j, want);
    tac_json_destroy(j);
}

Test(json, strings)
{
    expect_string("", "\"\"");
    expect_string("{[", "\"{[\"");
    expect_string("say \"hi\" \\ /", "\"say \\\"hi\\\" \\\\ /\"");
    expect_string("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
    expect_string("\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"");
    expect_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    expect_string(NULL, "null");
}

Test(json, bytes_that_are_not_utf8)
{
    expect_string("a\xff", "\"a\\ufffd\"");
    expect_string("\xc3", "\"\\ufffd\"");
    expect_string("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* overlong */
    expect_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* surrogate */
    expect_string("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

/* A string that ends with an opening bracket must not eat the comma. */
Test(json, brackets_in_strings_and_keys)
{
    tac_json *j = tac_json_create();
    tac_json_begin_array(j, NULL);
    tac_json_str(j, NULL, "[");
    tac_json_str(j, NULL, "{");
    tac_json_begin_object(j, NULL);
    tac_json_i64(j, "\"[", 1);
    tac_json_i64(j, "{", 2);
    tac_json_end_object(j);
    tac_json_end_array(j);
    expect_text(j, "[\"[\",\"{\",{\"\\\"[\":1,\"{\":2}]");
    tac_json_destroy(j);
}

static void expect_number(double value, const char *want)
{
    tac_json *j = tac_json_create();
    tac_json_f64(j, NULL, value);
    expect_text(j, want);
    tac_json_destroy(j);
}

Test(json, numbers)
{
    expect_number(0.0, "0");
    expect_number(-0.0, "-0");
    expect_number(0.1, "0.1");
    expect_number(1.0 / 3, "0.3333333333333333");
    expect_number(1e300, "1e+300");
    expect_number(NAN, "null");
    expect_number(INFINITY, "null");
    expect_number(-INFINITY, "null");
}

Test(json, numbers_come_back)
{
    uint64_t bits = 0x123456789abcdef;
    for (int i = 0; i < 20000; ++i) {
        double x, y;
        bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407u;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        tac_json *j = tac_json_create();
        tac_json_f64(j, NULL, x);
        y = strtod(tac_json_text(j, NULL), NULL);
        cr_assert(memcmp(&x, &y, sizeof x) == 0, "%a came back as %a", x, y);
        tac_json_destroy(j);
    }
}

Test(json, grows_and_starts_again)
{
    tac_json *j = tac_json_create();
    size_t bytes;
    for (int round = 0; round < 2; ++round) {
        tac_json_begin_array(j, NULL);
        for (int i = 0; i < 10000; ++i) tac_json_i64(j, NULL, 1000 + i % 9000);
        tac_json_end_array(j);
        cr_assert(tac_json_is_valid(tac_json_text(j, &bytes)));
        cr_assert_eq(bytes, 2 + 10000 * 4 + 9999);
        tac_json_reset(j);
    }
    tac_json_null(j, NULL);
    expect_text(j, "null");
    tac_json_destroy(j);
}

Test(json, destroy_null)
{
    tac_json_destroy(NULL);
}

Test(json, file_is_replaced)
{
    char folder[] = "/tmp/tacit-json-XXXXXX", path[64], text[64] = "";
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.json", folder);
    tac_json *j = tac_json_create();
    tac_json_str(j, NULL, "first, a longer text");
    cr_assert_eq(tac_json_write_file(j, path), TAC_OK);
    tac_json_reset(j);
    tac_json_i64(j, NULL, 2);
    cr_assert_eq(tac_json_write_file(j, path), TAC_OK);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f);
    cr_assert_eq(fread(text, 1, sizeof text - 1, f), 2);
    fclose(f);
    cr_assert_str_eq(text, "2\n");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(folder), 0, "a temporary file was left");
    cr_assert_eq(tac_json_write_file(j, path), TAC_ERR_IO);
    tac_json_destroy(j);
}

Test(json, special_files_are_not_replaced)
{
    struct stat st;
    char folder[] = "/tmp/tacit-json-XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/link", folder);
    cr_assert_eq(symlink("/dev/null", path), 0);
    tac_json *j = tac_json_create();
    tac_json_i64(j, NULL, 1);
    cr_assert_eq(tac_json_write_file(j, path), TAC_OK);
    cr_assert_eq(lstat(path, &st), 0);
    cr_assert(S_ISLNK(st.st_mode));
    unlink(path);
    rmdir(folder);
    tac_json_destroy(j);
}
