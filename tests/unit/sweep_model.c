/* sweep_model.c: modelled times against closed forms. With one average lasting
 * T = 2 (M-1) latency + 2 (1-1/M) bits / bandwidth and a step t:
 *   local modes   steps t + syncs T
 *   per-step      steps (t + T), if all gradients are one bucket
 *   accumulation  steps (A t + T) */
#include <criterion/criterion.h>

#include "sweep_page.h"
#include "sweep_synthetic.h"
#include "tacit/codec.h"

typedef struct bench {
    tac_context *ctx;
    synthetic *y;
} bench;

static bench set_up(void)
{
    bench b = {NULL, NULL};
    cr_assert_eq(tac_context_create(NULL, &b.ctx), TAC_OK);
    b.y = syn_make(b.ctx, 1);
    b.y->s.layers = 1;
    b.y->layer_params[0] = b.y->s.params;
    return b;
}

static void tear_down(bench *b)
{
    free(b->y);
    tac_context_destroy(b->ctx);
}

static sweep_row *row_of(bench *b, const char *label)
{
    sweep *s = &b->y->s;
    for (size_t i = 0; i < s->n_rows; i++)
        if (strcmp(s->cases[s->rows[i].of].label, label) == 0)
            return &s->rows[i];
    cr_assert_fail("no case %s", label);
    return NULL;
}

static double average_s(const bench *b, int network, double bits)
{
    const tac_sim_network *n = &b->y->s.networks[network]->net;
    const double m = b->y->s.world;
    return 2 * (m - 1) * n->latency_s + 2 * (1 - 1 / m) * bits / n->up_bits;
}

static void near(double got, double want, const char *what)
{
    cr_assert(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12,
              "%s: %.12g, not %.12g", what, got, want);
}

/* steps * step + averages * T(bits) on each network. */
static void expect(bench *b, const sweep_row *r, double steps, double step,
                   double averages, double bits)
{
    for (int k = 0; k < b->y->s.n_networks; k++)
        near(r->modelled_s[k], steps * step + averages * average_s(b, k, bits),
             b->y->s.cases[r->of].label);
}

Test(model, what_each_way_amounts_to)
{
    bench b = set_up();
    const double t = b.y->s.compute_s, bits = 32 * b.y->s.params;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    expect(&b, row_of(&b, "local H=1"), 1720, t, 1720, bits);
    expect(&b, row_of(&b, "local H=16"), 1720, t, 108, bits);
    expect(&b, row_of(&b, "slowmo H=128"), 1720, t, 14, bits);
    expect(&b, row_of(&b, "diloco H=4"), 1720, t, 430, bits);
    expect(&b, row_of(&b, "per-step"), 1720, t, 1720, bits);
    expect(&b, row_of(&b, "per-step fp16"), 1720, t, 1720, bits / 2);
    expect(&b, row_of(&b, "accumulate 8"), 215, 8 * t, 215, bits);
    expect(&b, row_of(&b, "accumulate 64"), 26, 64 * t, 26, bits);
    expect(&b, row_of(&b, "one-shot"), 1720, t, 1, bits);
    expect(&b, row_of(&b, "no averaging"), 1720, t, 0, bits);
    tear_down(&b);
}

Test(model, codecs_count_exactly)
{
    bench b = set_up();
    tac_codec *codec = NULL;
    sweep_row *r = row_of(&b, "local H=16");
    cr_assert_eq(tac_codec_create(b.ctx, "int8", &codec), TAC_OK);
    const double bytes =
        (double)tac_codec_wire_bytes(codec, (size_t)b.y->s.params, NULL);
    snprintf(b.y->cases[r->of].compress, 64, "int8");
    r->bytes_predicted = bytes * 108;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    expect(&b, r, 1720, b.y->s.compute_s, 108, 8 * bytes);
    tac_codec_destroy(codec);
    tear_down(&b);
}

/* Averaged moments, say: three times the parameters. */
Test(model, what_else_is_sent_counts_too)
{
    bench b = set_up();
    sweep_row *r = row_of(&b, "local H=16");
    r->bytes_predicted *= 3;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    expect(&b, r, 1720, b.y->s.compute_s, 108, 3 * 32 * b.y->s.params);
    tear_down(&b);
}

/* Buckets of 40 MB each: the last layer's leaves behind the first layer's
 * backward, which is a third of a step; of accumulation behind that of the last
 * micro-step. */
Test(model, gradients_leave_behind_backward)
{
    bench b = set_up();
    const double t = b.y->s.compute_s;
    sweep_row *one = row_of(&b, "per-step"), *four = row_of(&b, "accumulate 4");
    b.y->s.layers = 2;
    b.y->s.params = 2e7;
    b.y->layer_params[0] = b.y->layer_params[1] = 1e7;
    one->bytes_predicted = 8e7 * 1720;
    four->bytes_predicted = 8e7 * 430;
    b.y->s.n_rows = four->of + 1; /* one seed: row i is case i */
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    for (int k = 0; k < b.y->s.n_networks; k++) {
        const double T = average_s(&b, k, 32e7);
        near(one->modelled_s[k], 1720 * (t - t / 3 + fmax(t / 3, T) + T),
             "per-step");
        near(four->modelled_s[k], 430 * (4 * t - t / 3 + fmax(t / 3, T) + T),
             "accumulate 4");
    }
    tear_down(&b);
}

/* Small layers share a bucket, which leaves once. */
Test(model, small_layers_leave_together)
{
    bench b = set_up();
    b.y->s.layers = 2;
    b.y->layer_params[0] = 392500;
    b.y->layer_params[1] = 5010;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    expect(&b, row_of(&b, "per-step"), 1720, b.y->s.compute_s, 1720,
           32 * b.y->s.params);
    expect(&b, row_of(&b, "local H=16"), 1720, b.y->s.compute_s, 108,
           32 * b.y->s.params);
    tear_down(&b);
}

Test(model, evaluations_on_the_way)
{
    bench b = set_up();
    const double t = b.y->s.compute_s, bits = 32 * b.y->s.params;
    sweep_row *r = row_of(&b, "local H=16");
    static const int64_t steps[] = {0, 1, 15, 16, 17, 160, 1719, 1720};
    double out[SWEEP_NETWORKS * SYN_EVALS];
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    for (int i = 0; i < SYN_EVALS; i++) r->evals[i].step = steps[i];
    cr_assert_eq(tac__sweep_model_evals(&b.y->s, r, out), TAC_OK);
    for (int k = 0; k < b.y->s.n_networks; k++) {
        for (int i = 0; i < SYN_EVALS; i++) {
            const int64_t n = steps[i];
            const double averages = (double)(n / 16 + (n == 1720));
            near(out[k * SYN_EVALS + i],
                 (double)n * t + averages * average_s(&b, k, bits), "evals");
        }
        cr_assert_eq(out[k * SYN_EVALS + 7], r->modelled_s[k]);
    }
    tear_down(&b);
}

Test(model, a_world_of_one_sends_nothing)
{
    bench b = set_up();
    b.y->s.world = 1;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    expect(&b, row_of(&b, "local H=1"), 1720, b.y->s.compute_s, 0, 0);
    expect(&b, row_of(&b, "per-step"), 1720, b.y->s.compute_s, 0, 0);
    tear_down(&b);
}

Test(model, is_nan_where_there_is_none)
{
    bench b = set_up();
    sweep_row *r = row_of(&b, "local H=16");
    b.y->o.extra = "--sync-schedule adacomm";
    b.y->s.n_rows = r->of + 1;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    cr_assert(isnan(r->modelled_s[0]), "losses are not known");
    b.y->o.extra = NULL;
    b.y->s.compute_s = NAN;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    cr_assert(isnan(r->modelled_s[0]));
    b.y->s.compute_s = 1;
    r->steps = 0;
    cr_assert_eq(sweep_model(&b.y->s), TAC_OK);
    cr_assert(isnan(r->modelled_s[0]));
    tear_down(&b);
}
