/* engine_schedule.c: learning rates against worked tables. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine_test.h"
#include "tacit/schedule.h"

static tac_schedule make(tac_schedule_kind kind, uint64_t w, uint64_t n)
{
    return (tac_schedule){kind, 1.0, 0.1, w, n};
}

/* Ten steps, two of warm-up, to a tenth, as llm.c's scheduler gives them. */
Test(schedule, cosine)
{
    static const double want[11] = {.5,      1,       1,   .965746,
                                    .868198, .722208, .55, .377792,
                                    .231802, .134254, .1};
    const tac_schedule s = make(TAC_SCHEDULE_COSINE, 2, 10);

    for (uint64_t i = 0; i <= 10; ++i)
        cr_assert_float_eq(tac_schedule_lr(&s, i), want[i], 5e-7);
    cr_assert_float_eq(tac_schedule_lr(&s, 1000), 0.1, 1e-15);
}

/* Without warm-up and down to 0 it is the field's half cosine. */
Test(schedule, cosine_without_warm_up)
{
    tac_schedule s = make(TAC_SCHEDULE_COSINE, 0, 8);
    static const double want[9] = {1,       .96194,  .853553, .691342, .5,
                                   .308658, .146447, .03806,  0};

    s.final_fraction = 0;
    for (uint64_t i = 0; i <= 8; ++i)
        cr_assert_float_eq(tac_schedule_lr(&s, i), want[i], 5e-7);
}

/* The end is the minimum itself, not nearly: 0.2 to 1e-5 in ten steps. */
Test(schedule, cosine_ends_at_its_minimum)
{
    const tac_schedule s = {TAC_SCHEDULE_COSINE, 0.2, 1e-5 / 0.2, 2, 10};

    cr_assert_eq(tac_schedule_lr(&s, 10), 1e-5 / 0.2 * 0.2);
    cr_assert_float_eq(tac_schedule_lr(&s, 10), 1e-5, 1e-20);
    cr_assert_float_eq(tac_schedule_lr(&s, 0), 0.1, 1e-15);
    cr_assert_float_eq(tac_schedule_lr(&s, 1), 0.2, 1e-15);
}

Test(schedule, linear)
{
    const tac_schedule s = make(TAC_SCHEDULE_LINEAR, 2, 12);

    cr_assert_float_eq(tac_schedule_lr(&s, 0), 0.5, 1e-15);
    for (uint64_t i = 2; i <= 12; ++i)
        cr_assert_float_eq(tac_schedule_lr(&s, i), 1 - 0.09 * (double)(i - 2),
                           1e-12);
    cr_assert_float_eq(tac_schedule_lr(&s, 13), 0.1, 1e-15);
}

Test(schedule, constant_and_edges)
{
    tac_schedule s = make(TAC_SCHEDULE_CONSTANT, 4, 0);

    cr_assert_float_eq(tac_schedule_lr(&s, 0), 0.25, 1e-15);
    cr_assert_float_eq(tac_schedule_lr(&s, 3), 1, 1e-15);
    cr_assert_float_eq(tac_schedule_lr(&s, 1000000), 1, 1e-15);
    for (int k = 0; k < 2; ++k) {
        s = make(k ? TAC_SCHEDULE_LINEAR : TAC_SCHEDULE_COSINE, 5, 5);
        cr_assert_float_eq(tac_schedule_lr(&s, 4), 1, 1e-15);
        cr_assert_float_eq(tac_schedule_lr(&s, 5), 0.1, 1e-15);
        s = make(s.kind, 0, 0);
        cr_assert_float_eq(tac_schedule_lr(&s, 0), 0.1, 1e-15);
    }
}

Test(schedule, names)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    tac_schedule_kind k = TAC_SCHEDULE_CONSTANT;
    char text[256];

    cr_assert_eq(tac_schedule_parse(w.ctx, "cosine", &k), TAC_OK);
    cr_assert_eq(k, TAC_SCHEDULE_COSINE);
    cr_assert_eq(tac_schedule_parse(w.ctx, "linear", &k), TAC_OK);
    cr_assert_eq(k, TAC_SCHEDULE_LINEAR);
    cr_assert_eq(tac_schedule_parse(w.ctx, "cosinus", &k), TAC_ERR_ARG);
    cr_assert_eq(k, TAC_SCHEDULE_LINEAR);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "cosinus"));
    eng_close(&w);
}
