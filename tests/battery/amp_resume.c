/* amp_resume.c: what is saved of a run in mixed precision goes on bit for bit;
 * working weights are the masters, rounded, and change nothing. */
#include "amp_net.h"

/* --- resume: scaler, masters and moments; bit for bit --- */

static void resume_into(net *to, const net_config *c, amp_store f[3])
{
    net_config other = *c;

    other.scaler.init_scale = 256; /* what a fresh run would start with */
    net_open(to, &other);
    CHECK_OK(amp_load(tac_params_walk, to->w.params, &f[0]));
    CHECK_OK(amp_load(tac_optimizer_walk, to->o, &f[1]));
    CHECK_OK(amp_load(tac_scaler_walk, to->s, &f[2]));
    if (to->m != NULL) CHECK_OK(tac_master_refresh(to->m, NULL));
}

/* The masters that an f16 copy would give: not what was saved. */
static void derive_from_half(net *n)
{
    float *p = tac_params_values(n->w.params);

    for (size_t i = 0; i < net_elements(n); ++i)
        p[i] = tac_f16_to_f32(tac_f32_to_f16(p[i]));
}

static void resume(tac_dtype low)
{
    static amp_store f[3];
    net_config c = net_defaults(low);
    net whole, resumed, lossy;

    c.optimizer = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    c.optimizer.lr = 0.003;
    net_enable(&c, 1024, 3);
    f[0].n = f[1].n = f[2].n = 0;
    net_open(&whole, &c);
    net_train(&whole, 5);
    CHECK_OK(amp_save(tac_params_walk, whole.w.params, &f[0]));
    CHECK_OK(amp_save(tac_optimizer_walk, whole.o, &f[1]));
    CHECK_OK(amp_save(tac_scaler_walk, whole.s, &f[2]));
    resume_into(&resumed, &c, f);
    resume_into(&lossy, &c, f);
    derive_from_half(&lossy);
    CHECK_EQ_F64(amp_scale(resumed.s), 2048);
    CHECK_EQ_F64(amp_state(resumed.s, "scaler._growth_tracker"), 2);
    for (int k = 0; k < 5; ++k) {
        net_train(&whole, 1);
        net_train(&resumed, 1);
        net_train(&lossy, 1);
        CHECK_EQ_F64(resumed.loss, whole.loss);
        CHECK_EQ_F64(amp_scale(resumed.s), amp_scale(whole.s));
    }
    CHECK(net_same_bits(&resumed, &whole));
    CHECK(!net_same_bits(&lossy, &whole)); /* so masters must be saved */
    net_close(&whole);
    net_close(&resumed);
    net_close(&lossy);
}

/* --- masters: the working weights are the masters, rounded --- */

static void masters(tac_dtype low)
{
    net_config c = net_defaults(low);
    net n;

    net_enable(&c, 65536, 2000);
    net_open(&n, &c);
    for (int k = 0; k < 10; ++k) {
        const float *p = tac_params_values(n.w.params);
        const uint16_t *h = tac_master_weights(n.m);
        size_t differ = 0;
        net_train(&n, 1);
        for (size_t i = 0; i < net_elements(&n); ++i)
            differ += h[i] != (low == TAC_F16 ? tac_f32_to_f16(p[i])
                                              : tac_f32_to_bf16(p[i]));
        CHECK_EQ_U64(differ, 0);
    }
    CHECK_EQ_U64(tac_tape_param_casts(n.w.tape), 0);
    net_close(&n);
}

/* With working weights or weights cast in the step: the same training. */
static void masters_change_nothing(tac_dtype low)
{
    net_config c = net_defaults(low);
    net with, without;

    net_enable(&c, 65536, 2000);
    net_open(&with, &c);
    c.masters = 0;
    net_open(&without, &c);
    net_train(&with, 10);
    net_train(&without, 10);
    CHECK(net_same_bits(&with, &without));
    CHECK(tac_tape_param_casts(without.w.tape) > 0);
    net_close(&with);
    net_close(&without);
}

int main(void)
{
    const tac_dtype types[] = {TAC_F32, TAC_F16, TAC_BF16};

    for (int i = 0; i < 3; ++i) resume(types[i]);
    for (int i = 1; i < 3; ++i) {
        masters(types[i]);
        masters_change_nothing(types[i]);
    }
    return tac_check_summary();
}
