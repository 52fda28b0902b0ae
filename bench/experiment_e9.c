/* experiment_e9.c: what deltas travel as. */
#include "experiment.h"

enum { F32, BF16, INT8, FP4, FP4_RAW, TOPK, TOPK_RAW, TWO_BIT, TWO_BIT_RAW, N };

static exp_variant codec(const char *label, const char *codec_text)
{
    return exp_variant_make(0, label, "--compress %s", codec_text);
}

static void judge(exp_report *r, const exp_variant *v)
{
    const double plain = exp_loss(&v[F32]);
    for (int k = BF16; k <= FP4; k++)
        exp_condition(r, exp_loss(&v[k]) <= 1.01 * plain,
                      "%s: %+.2f %% against f32", v[k].label,
                      100 * (exp_loss(&v[k]) / plain - 1));
    for (int k = TOPK; k < N; k += 2)
        exp_condition(r, exp_loss(&v[k + 1]) > exp_loss(&v[k]),
                      "%s: %+.2f %% against f32, without error feedback "
                      "%+.2f %%",
                      v[k].label, 100 * (exp_loss(&v[k]) / plain - 1),
                      100 * (exp_loss(&v[k + 1]) / plain - 1));
}

tac_status exp_e9(exp_bench *b, exp_report *r)
{
    static const double rates[] = {3e-4, 1e-3, 3e-3};
    exp_trained t = {
        .b = b,
        .name = "E9",
        .common = "--optimizer adamw --batch 32 --sync diloco --sync-every 10",
        .steps = exp_steps(b, 600, 100),
        .lrs = rates,
        .n_lrs = b->o->quick ? 2 : 3};
    exp_variant v[N] = {
        [F32] = codec("f32", "none"),
        [BF16] = codec("bf16", "bf16"),
        [INT8] = codec("int8", "int8"),
        [FP4] = codec("fp4", "fp4"),
        [FP4_RAW] = codec("fp4 noef", "fp4,noef"),
        [TOPK] = codec("topk 3 %", "topk:0.03,warmup=0,min=1"),
        [TOPK_RAW] = codec("topk 3 % noef", "topk:0.03,warmup=0,min=1,noef"),
        [TWO_BIT] = codec("topk 3 %, 2 bits",
                          "topk:0.03,bits=2,chunk=4096,warmup=0,min=1"),
        [TWO_BIT_RAW] = codec("topk 3 %, 2 bits noef",
                              "topk:0.03,bits=2,chunk=4096,warmup=0,min=1,"
                              "noef"),
    };
    TAC_TRY(exp_search_and_measure(&t, v, N));
    exp_ran(r, "DiLoCo, H = 10, outer Nesterov 0.7, 0.9; error feedback but "
               "where it says noef.");
    exp_ran_trained(r, &t);
    exp_variant_table(r, v, N, "deltas as", "Validation loss by wire format:");
    judge(r, v);
    return TAC_OK;
}
