/* base_status.c: every status has a name and a text, every failure a remedy;
 * dtypes; hashes against published values. */
#include <criterion/criterion.h>
#include <string.h>

#include "tacit/dtype.h"
#include "tacit/hash.h"
#include "tacit/status.h"

#define ROW(name, value, text, remedy) name,
static const tac_status all[] = {TAC_STATUS_LIST(ROW)};
enum { COUNT = sizeof all / sizeof *all };

Test(status, names_texts_and_remedies)
{
    for (int i = 0; i < COUNT; ++i) {
        cr_assert(strncmp(tac_status_name(all[i]), "TAC_", 4) == 0);
        cr_assert(strlen(tac_status_text(all[i])) > 0);
        cr_assert_neq(tac_status_text(all[i])[0], ' ');
        if (all[i] < 0)
            cr_assert(strlen(tac_status_remedy(all[i])) > 0, "%s",
                      tac_status_name(all[i]));
    }
    cr_assert_str_eq(tac_status_name(TAC_ERR_TIMEOUT), "TAC_ERR_TIMEOUT");
    cr_assert_str_eq(tac_status_text(TAC_ERR_TIMEOUT), "timed out");
    cr_assert_str_eq(tac_status_remedy(TAC_OK), "");
}

Test(status, names_and_texts_differ)
{
    for (int i = 0; i < COUNT; ++i)
        for (int k = 0; k < i; ++k) {
            cr_assert_neq(all[i], all[k]);
            cr_assert_str_neq(tac_status_name(all[i]), tac_status_name(all[k]));
            cr_assert_str_neq(tac_status_text(all[i]), tac_status_text(all[k]));
        }
}

Test(status, unknown_values)
{
    cr_assert_not_null(tac_status_name((tac_status)-99));
    cr_assert_not_null(tac_status_text((tac_status)99));
    cr_assert_not_null(tac_status_remedy((tac_status)-99));
}

static tac_status try_it(tac_status s, int *reached)
{
    TAC_TRY(s);
    *reached = 1;
    return TAC_OK;
}

Test(status, try_returns_failures_only)
{
    int reached = 0;
    cr_assert_eq(try_it(TAC_ERR_IO, &reached), TAC_ERR_IO);
    cr_assert_eq(reached, 0);
    cr_assert_eq(try_it(TAC_INPROGRESS, &reached), TAC_OK);
    cr_assert_eq(reached, 1);
}

Test(dtype, sizes_and_names)
{
    static const struct {
        tac_dtype t;
        size_t size;
        const char *name;
        int is_float;
    } rows[] = {
        {TAC_F32, sizeof(float), "f32", 1},
        {TAC_F64, sizeof(double), "f64", 1},
        {TAC_F16, 2, "f16", 1},
        {TAC_BF16, 2, "bf16", 1},
        {TAC_I32, sizeof(int32_t), "i32", 0},
        {TAC_I64, sizeof(int64_t), "i64", 0},
        {TAC_U8, 1, "u8", 0},
        {TAC_DTYPE_COUNT, 0, "?", 0},
        {(tac_dtype)-1, 0, "?", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cr_assert_eq(tac_dtype_size(rows[i].t), rows[i].size);
        cr_assert_str_eq(tac_dtype_name(rows[i].t), rows[i].name);
        cr_assert_eq(tac_dtype_is_float(rows[i].t), rows[i].is_float);
    }
}

/* Values of the FNV authors' test vectors for 64-bit FNV-1a. */
Test(hash, published_values)
{
    cr_assert_eq(tac_hash_bytes(TAC_HASH_INIT, "", 0),
                 UINT64_C(0xcbf29ce484222325));
    cr_assert_eq(tac_hash_bytes(TAC_HASH_INIT, "a", 1),
                 UINT64_C(0xaf63dc4c8601ec8c));
    cr_assert_eq(tac_hash_bytes(TAC_HASH_INIT, "foobar", 6),
                 UINT64_C(0x85944171f73967e8));
}

Test(hash, pieces_and_words)
{
    const unsigned char bytes[8] = {8, 7, 6, 5, 4, 3, 2, 1};
    const uint64_t h = tac_hash_bytes(TAC_HASH_INIT, "foo", 3);
    cr_assert_eq(tac_hash_bytes(h, "bar", 3), UINT64_C(0x85944171f73967e8));
    cr_assert_eq(tac_hash_u64(h, UINT64_C(0x0102030405060708)),
                 tac_hash_bytes(h, bytes, 8));
    cr_assert_eq(tac_hash_str(h, "ab"), tac_hash_bytes(h, "ab\0", 3));
    /* The 0 keeps "ab","c" and "a","bc" apart. */
    cr_assert_neq(tac_hash_str(tac_hash_str(h, "ab"), "c"),
                  tac_hash_str(tac_hash_str(h, "a"), "bc"));
}
