/* Which operation computes in which type, as one table, and names of types. */
#include <string.h>

#include "tacit/autocast.h"

/* An operation that is not listed runs in the type of its inputs. */
static const tac_autocast_entry policy[] = {
    {"linear", TAC_CAST_LOW, "a product, accumulated in f32"},
    {"conv2d", TAC_CAST_LOW, "a product, accumulated in f32"},
    {"conv2d_max_pool2d", TAC_CAST_LOW, "a product, accumulated in f32"},
    {"attention", TAC_CAST_LOW, "products; scores and softmax stay in f32"},
    {"softmax_cross_entropy", TAC_CAST_F32, "exponentials and sums"},
    {"layer_norm", TAC_CAST_F32, "squares overflow and means cancel"},
    {"add", TAC_CAST_WIDEST, "a residual keeps its better half"},
    {"relu", TAC_CAST_NONE, "exact in any type"},
    {"max_pool2d", TAC_CAST_NONE, "exact in any type"},
    {"dropout", TAC_CAST_NONE, "one rounding a value"},
    {"scale", TAC_CAST_NONE, "one rounding a value"},
    {NULL, TAC_CAST_NONE, NULL},
};

const tac_autocast_entry *tac_autocast_policy(void)
{
    return policy;
}

tac_cast_rule tac_autocast_rule(const char *op)
{
    for (const tac_autocast_entry *e = policy; op != NULL && e->op != NULL; ++e)
        if (strcmp(e->op, op) == 0) return e->rule;
    return TAC_CAST_NONE;
}

tac_status tac_precision_parse(tac_context *ctx, const char *name,
                               tac_dtype *out)
{
    static const struct {
        const char *name;
        tac_dtype dtype;
    } names[] = {{"fp32", TAC_F32}, {"fp16", TAC_F16}, {"bf16", TAC_BF16}};

    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; ++i) {
        if (strcmp(names[i].name, name) != 0) continue;
        *out = names[i].dtype;
        return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_ARG,
                    "precision \"%.40s\" is unknown: use fp32, fp16 or bf16",
                    name != NULL ? name : "");
}
