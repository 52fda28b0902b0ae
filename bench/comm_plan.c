/* comm_plan.c: what single rows of the option table can't say: lists, sizes and
 * combinations. */
#include "comm_bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists -----------------------------------------------------------------
 */

typedef const char *name_fn(int i);

static const char *coll_name(int i)
{
    return tac_coll_name((tac_coll)i);
}

static const char *dtype_name(int i)
{
    return tac_dtype_name((tac_dtype)i);
}

static const char *op_name(int i)
{
    return tac_op_name((tac_op)i);
}

/* Index of the name at text[0..n), or -1. */
static int find(const char *text, size_t n, name_fn *name, int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(name(i)) == n && strncmp(name(i), text, n) == 0) return i;
    return -1;
}

static tac_status unknown(tac_context *ctx, const char *option,
                          const char *text, size_t n, name_fn *name, int count)
{
    char all[160] = "";
    for (int i = 0; i < count; i++) {
        strncat(all, name(i), sizeof all - strlen(all) - 1);
        strncat(all, i + 1 < count ? ", " : "", sizeof all - strlen(all) - 1);
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s: '%.*s' is unknown; accepted: all, or a list of %s",
                    option, (int)(n < 60 ? n : 60), text, all);
}

/* Indices named by a comma list, each once; "all" for all `count`. */
static tac_status read_list(tac_context *ctx, const char *option,
                            const char *text, name_fn *name, int count,
                            int *out, size_t *n_out)
{
    unsigned seen = 0;
    size_t n = 0;
    while (*text) {
        const size_t length = strcspn(text, ",");
        const int all = length == 3 && strncmp(text, "all", 3) == 0;
        const int at = find(text, length, name, count);
        if (at < 0 && !all)
            return unknown(ctx, option, text, length, name, count);
        for (int i = all ? 0 : at; i < (all ? count : at + 1); i++) {
            if (!(seen & 1u << i)) out[n++] = i;
            seen |= 1u << i;
        }
        text += length + (text[length] == ',');
    }
    *n_out = n;
    if (n > 0) return TAC_OK;
    return unknown(ctx, option, "", 0, name, count);
}

enum { MEASURED_COLLS = TAC_COLL_BROADCAST + 1 };

static tac_status read_lists(tac_context *ctx, const tac__comm_options *o,
                             tac__comm_plan *p)
{
    int at[16];
    TAC_TRY(read_list(ctx, "op", o->op, coll_name, MEASURED_COLLS, at,
                      &p->n_colls));
    for (size_t i = 0; i < p->n_colls; i++) p->colls[i] = (tac_coll)at[i];
    TAC_TRY(read_list(ctx, "dtype", o->dtype, dtype_name, TAC_DTYPE_COUNT, at,
                      &p->n_dtypes));
    for (size_t i = 0; i < p->n_dtypes; i++) p->dtypes[i] = (tac_dtype)at[i];
    TAC_TRY(read_list(ctx, "redop", o->redop, op_name, TAC_OP_COUNT, at,
                      &p->n_ops));
    for (size_t i = 0; i < p->n_ops; i++) p->ops[i] = (tac_op)at[i];
    return TAC_OK;
}

/* ---- sizes -----------------------------------------------------------------
 */

static tac_status add_size(tac_context *ctx, tac__comm_plan *p, size_t bytes)
{
    size_t *more = realloc(p->sizes, (p->n_sizes + 1) * sizeof *more);
    if (!more) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for sizes");
    p->sizes = more;
    p->sizes[p->n_sizes++] = bytes;
    return TAC_OK;
}

static tac_status geometric_sizes(tac_context *ctx, const tac__comm_options *o,
                                  tac__comm_plan *p)
{
    if (o->min > o->max)
        return tac_fail(ctx, TAC_ERR_CONFIG, "--min is above --max; swap them");
    for (uint64_t s = o->min; s <= o->max;) {
        TAC_TRY(add_size(ctx, p, (size_t)s));
        if (s > o->max / (uint64_t)o->factor) break;
        s = s ? s * (uint64_t)o->factor : 1;
    }
    return TAC_OK;
}

/* Shift of a suffix K, M, G (1024), or -1; *end moves behind it. */
static int suffix_shift(const char **end)
{
    static const char letters[] = "KMG";
    const char *at = strchr(letters, toupper((unsigned char)**end));
    if (!**end || **end == ',') return 0;
    if (!at) return -1;
    ++*end;
    return 10 * ((int)(at - letters) + 1);
}

static tac_status listed_sizes(tac_context *ctx, const char *option,
                               const char *text, tac__comm_plan *p)
{
    for (const char *at = text; *at;) {
        char *number_end;
        const unsigned long long n = strtoull(at, &number_end, 10);
        const char *end = number_end;
        const int shift = suffix_shift(&end);
        if (!isdigit((unsigned char)*at) || shift < 0 ||
            (*end && *end != ',') || n > (1ull << 50) >> shift)
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--%s: '%s' is no list of sizes such as 0,17,4K,1M",
                            option, at);
        TAC_TRY(add_size(ctx, p, (size_t)(n << shift)));
        at = end + (*end == ',');
    }
    if (p->n_sizes) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG, "--%s is empty", option);
}

static tac_status read_sizes(tac_context *ctx, const tac__comm_options *o,
                             tac__comm_plan *p)
{
    if (o->sizes && o->counts)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--sizes and --counts exclude each other");
    p->in_elements = o->counts != NULL;
    if (o->sizes) return listed_sizes(ctx, "sizes", o->sizes, p);
    if (o->counts) return listed_sizes(ctx, "counts", o->counts, p);
    return geometric_sizes(ctx, o, p);
}

/* ---- the rest --------------------------------------------------------------
 */

static tac_status read_wire(tac_context *ctx, const tac__comm_options *o,
                            tac__comm_plan *p)
{
    const char *w = o->wire;
    p->wire_dtype = TAC_WIRE_SAME;
    if (strcmp(w, "fp32") == 0 || strcmp(w, "none") == 0) return TAC_OK;
    if (strcmp(w, "fp16") == 0)
        p->wire_dtype = TAC_F16;
    else if (strcmp(w, "bf16") == 0)
        p->wire_dtype = TAC_BF16;
    else
        p->codec = w;
    if (p->n_dtypes != 1 || p->dtypes[0] != TAC_F32)
        return tac_fail(ctx, TAC_ERR_CONFIG, "--wire %s is for --dtype f32", w);
    if (!p->codec) return TAC_OK;
    if (p->n_colls != 1 || p->colls[0] != TAC_COLL_ALLREDUCE)
        return tac_fail(ctx, TAC_ERR_CONFIG, "--wire %s is for --op allreduce",
                        w);
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i] != TAC_SUM && p->ops[i] != TAC_AVG)
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--wire %s is for --redop sum or avg", w);
    return TAC_OK;
}

static tac_status check_modes(tac_context *ctx, const tac__comm_options *o)
{
    if (o->replay && o->tune)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--replay and --tune exclude each other");
    if (o->compute_ms && strcmp(o->compute_ms, "comm") != 0) {
        char *end;
        const double ms = strtod(o->compute_ms, &end);
        if (end == o->compute_ms || *end || !(ms >= 0 && ms <= 1e7))
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--compute-ms %s is neither a time in ms nor "
                            "'comm'",
                            o->compute_ms);
    }
    return TAC_OK;
}

/* Appends a name to a comma list, once. */
static void list_name(char *all, size_t room, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = all; (at = strstr(at, name)); at += n)
        if ((at == all || at[-1] == ' ') && (!at[n] || at[n] == ',')) return;
    if (*all) strncat(all, ", ", room - strlen(all) - 1);
    strncat(all, name, room - strlen(all) - 1);
}

static int measured(const tac__comm_plan *p, tac_coll coll)
{
    for (size_t i = 0; i < p->n_colls; i++)
        if (p->colls[i] == coll) return 1;
    return 0;
}

/* One of the collectives' at least; which of them can run is only known with
 * ranks. */
static tac_status check_algorithm(tac_context *ctx, const tac__comm_options *o,
                                  const tac__comm_plan *p)
{
    char all[512] = "";
    tac_algorithm_info a;
    if (!o->algorithm || o->replay || o->tune) return TAC_OK;
    for (size_t i = 0; tac_algorithm_list(i, &a) >= 0; i++) {
        if (!measured(p, a.coll)) continue;
        if (strcmp(a.name, o->algorithm) == 0) return TAC_OK;
        list_name(all, sizeof all, a.name);
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--algorithm: '%.60s' is unknown for --op %.60s; accepted: "
                    "%s",
                    o->algorithm, o->op, all);
}

tac_status tac__comm_plan_make(tac_context *ctx, const tac__comm_options *o,
                               tac__comm_plan *out)
{
    tac__comm_plan p = {0};
    p.symmetric = strcmp(o->memory, "symmetric") == 0;
    p.places = strcmp(o->in_place, "in") == 0 ? TAC__IN_PLACE
               : strcmp(o->in_place, "out") == 0
                   ? TAC__OUT_OF_PLACE
                   : TAC__IN_PLACE | TAC__OUT_OF_PLACE;
    tac_status s = read_lists(ctx, o, &p);
    if (s >= 0) s = read_wire(ctx, o, &p);
    if (s >= 0) s = check_modes(ctx, o);
    if (s >= 0) s = check_algorithm(ctx, o, &p);
    if (s >= 0) s = read_sizes(ctx, o, &p);
    if (s < 0) {
        tac__comm_plan_free(&p);
        return s;
    }
    *out = p;
    return TAC_OK;
}

void tac__comm_plan_free(tac__comm_plan *p)
{
    free(p->sizes);
    p->sizes = NULL;
}
