/* Whole models in f64: logits against a straightforward forward pass written
 * here from the documented layouts, gradients of all parameters and of the
 * input against central differences, recomputed blocks, and dropout that does
 * not depend on how a batch is cut. */
#include "tac_check.h"

#include <math.h>

#include "models_setup.h"

enum { N = 3 };

typedef struct test_case {
    const char *spec;
    tac_model_config config;
} test_case;

static const test_case cases[] = {
    {"mlp:6", {sizeof(tac_model_config), 2, 3, 1, 4, 0}},
    {"mlp:7,5,1,8", {sizeof(tac_model_config), 3, 2, 2, 3, 0}},
    {"mlp:9,4", {sizeof(tac_model_config), 1, 5, 1, 2, 0.4f}},
    {"linear", {sizeof(tac_model_config), 3, 2, 2, 3, 0}},
    {"cnn", {sizeof(tac_model_config), 4, 4, 1, 3, 0}},
    {"cnn", {sizeof(tac_model_config), 7, 9, 2, 5, 0}},
    {"cnn", {sizeof(tac_model_config), 5, 6, 1, 4, 0.3f}},
};

/* ---- an oracle for the forward pass -------------------------------------- */

static const double *value(const models_rig *r, const char *name)
{
    return tac_params_value(r->params, tac_params_find(r->params, name));
}

/* One sample through a linear layer. */
static void dense(const double *x, size_t in, size_t out, const double *w,
                  const double *b, int relu, double *y)
{
    for (size_t o = 0; o < out; ++o) {
        y[o] = b[o];
        for (size_t i = 0; i < in; ++i) y[o] += w[o * in + i] * x[i];
        if (relu && y[o] < 0) y[o] = 0;
    }
}

/* relu(conv3x3 pad 1) at one place. */
static double conv_at(const double *x, size_t h, size_t w, size_t ic, size_t o,
                      size_t i, size_t j, const double *weight, double bias)
{
    double sum = bias;
    for (size_t c = 0; c < ic; ++c)
        for (size_t ki = 0; ki < 3; ++ki)
            for (size_t kj = 0; kj < 3; ++kj) {
                const size_t row = i + ki, col = j + kj; /* plus the padding */
                if (row < 1 || row > h || col < 1 || col > w) continue;
                sum += weight[((o * ic + c) * 3 + ki) * 3 + kj] *
                       x[((row - 1) * w + col - 1) * ic + c];
            }
    return sum > 0 ? sum : 0;
}

/* One sample (h,w,ic) to (h/2,w/2,oc). */
static void conv_pool(const double *x, size_t h, size_t w, size_t ic, size_t oc,
                      const double *weight, const double *b, double *y)
{
    for (size_t i = 0; i < h / 2; ++i)
        for (size_t j = 0; j < w / 2; ++j)
            for (size_t o = 0; o < oc; ++o) {
                double best = 0; /* nothing is below a ReLU's 0 */
                for (size_t k = 0; k < 4; ++k) {
                    const double v = conv_at(x, h, w, ic, o, 2 * i + k / 2,
                                             2 * j + k % 2, weight, b[o]);
                    if (v > best) best = v;
                }
                *y++ = best;
            }
}

static void cnn_oracle(const models_rig *r, const double *x, double *logits)
{
    static double a[32 * 64], b[64 * 64], h[128];
    const tac_model_config *c = tac_model_config_of(r->model);
    const size_t h1 = c->h / 2, w1 = c->w / 2;
    conv_pool(x, c->h, c->w, c->c, 32, value(r, "conv1.weight"),
              value(r, "conv1.bias"), a);
    conv_pool(a, h1, w1, 32, 64, value(r, "conv2.weight"),
              value(r, "conv2.bias"), b);
    dense(b, (h1 / 2) * (w1 / 2) * 64, 128, value(r, "fc1.weight"),
          value(r, "fc1.bias"), 1, h);
    dense(h, 128, c->classes, value(r, "fc2.weight"), value(r, "fc2.bias"), 0,
          logits);
}

static void mlp_oracle(const models_rig *r, const double *x, double *logits)
{
    double a[64], b[64];
    const size_t layers = tac_params_count(r->params) / 2;
    const tac_model_config *c = tac_model_config_of(r->model);
    memcpy(a, x, c->h * c->w * c->c * sizeof(double));
    for (size_t l = 0; l < layers; ++l) {
        const tac_param *p = tac_params_get(r->params, 2 * l);
        dense(a, p->shape[1], p->shape[0], tac_params_value(r->params, 2 * l),
              tac_params_value(r->params, 2 * l + 1), l + 1 < layers, b);
        memcpy(a, b, p->shape[0] * sizeof(double));
    }
    memcpy(logits, a, c->classes * sizeof(double));
}

/* ---- the model under test -------------------------------------------------
 */

typedef struct batch {
    double *x;
    size_t sample;
    int32_t y[N];
} batch;

/* The last row is masked: its label is -1. */
static batch make_batch(const tac_model_config *c)
{
    batch b;
    b.sample = c->h * c->w * c->c;
    b.x = malloc(N * b.sample * sizeof(double));
    for (size_t i = 0; i < N * b.sample; ++i) b.x[i] = models_random(1, i);
    for (size_t i = 0; i < N; ++i)
        b.y[i] = i + 1 < N ? (int32_t)(i * 7 % c->classes) : -1;
    return b;
}

/* An optimizer step other than 0, so that dropout's key is not all zero. */
static const tac_tape_step train_step = {.step = 3, .first_sample = 10};

static double loss_of(models_rig *r, batch *b)
{
    tac_tensor *x = NULL, *logits = NULL;
    tac_xent xent;
    if (!CHECK_OK(models_forward(r, &train_step, N, b->x, b->y, 0, &x, &logits,
                                 &xent)))
        return NAN;
    return *(const double *)xent.loss->data;
}

static void check_forward(const test_case *tc)
{
    models_rig r;
    const tac_tape_step eval = {.flags = TAC_TAPE_EVAL};
    tac_tensor *x = NULL, *logits = NULL;
    tac_xent xent;
    if (!CHECK_OK(models_open(&r, "ref", TAC_F64, tc->spec, &tc->config)))
        return;
    CHECK_OK(models_ready(&r, 8, 0));
    batch b = make_batch(&tc->config);
    CHECK_OK(models_forward(&r, &eval, N, b.x, b.y, 0, &x, &logits, &xent));
    const double *got = logits->data;
    double loss = 0;
    for (size_t i = 0; i < N; ++i, got += tc->config.classes) {
        double want[16], sum = 0;
        if (tc->spec[0] == 'c')
            cnn_oracle(&r, b.x + i * b.sample, want);
        else
            mlp_oracle(&r, b.x + i * b.sample, want);
        for (size_t k = 0; k < tc->config.classes; ++k) {
            CHECK_NEAR(got[k], want[k], 1e-12);
            sum += exp(want[k]);
        }
        if (b.y[i] >= 0) loss += log(sum) - want[b.y[i]];
    }
    CHECK_NEAR(*(const double *)xent.loss->data, loss, 1e-12);
    free(b.x);
    models_close(&r);
}

/* Central difference of the loss in *v against the gradient g. */
static void check_element(models_rig *r, batch *b, double *v, double g,
                          const char *name, size_t at)
{
    const double eps = 1e-6, before = *v;
    *v = before + eps;
    const double above = loss_of(r, b);
    *v = before - eps;
    const double below = loss_of(r, b);
    *v = before;
    const double want = (above - below) / (2 * eps);
    CHECK_MSG(fabs(g - want) <= 1e-7 + 1e-6 * fabs(want),
              "%s of %s[%zu]: gradient %.12g, difference %.12g",
              tac_model_spec(r->model), name, at, g, want);
}

/* NaN where a gradient will be; the padding between stays 0. */
static void poison_gradients(models_rig *r)
{
    for (size_t i = 0; i < tac_params_count(r->params); ++i)
        memset(tac_params_grad(r->params, i), 0xff,
               tac_params_get(r->params, i)->count * sizeof(double));
}

/* Runs forward and backward; copies all gradients and the input's. */
static void gradients(models_rig *r, batch *b, double scale, double *all,
                      double *of_x)
{
    tac_tensor *x = NULL, *logits = NULL;
    tac_xent xent;
    const size_t bytes = tac_params_padded(r->params) * sizeof(double);
    poison_gradients(r);
    CHECK_OK(
        models_forward(r, &train_step, N, b->x, b->y, 1, &x, &logits, &xent));
    CHECK_OK(tac_tape_backward(r->tape, xent.loss, scale));
    CHECK_EQ(tac_tape_unused(r->tape, NULL), 0);
    memcpy(all, tac_params_grads(r->params), bytes);
    if (CHECK(tac_tensor_grad(x) != NULL))
        memcpy(of_x, tac_tensor_grad(x), N * b->sample * sizeof(double));
}

/* Up to `most` elements spread over each tensor, the first and last among
 * them. */
static void check_gradient(const test_case *tc, size_t most)
{
    models_rig r;
    if (!CHECK_OK(models_open(&r, "ref", TAC_F64, tc->spec, &tc->config)))
        return;
    CHECK_OK(models_ready(&r, 8, 0));
    batch b = make_batch(&tc->config);
    double *g = malloc(tac_params_padded(r.params) * sizeof(double));
    double *gx = malloc(N * b.sample * sizeof(double));
    gradients(&r, &b, 1, g, gx);
    for (size_t i = 0; i < tac_params_count(r.params); ++i) {
        const tac_param *p = tac_params_get(r.params, i);
        double *v = tac_params_value(r.params, i);
        const size_t checks = p->count < most ? p->count : most;
        for (size_t k = 0; k < checks; ++k) {
            const size_t at =
                checks > 1 ? k * (p->count - 1) / (checks - 1) : 0;
            check_element(&r, &b, v + at, g[p->offset + at], p->name, at);
        }
    }
    for (size_t i = 0; i < N * b.sample; i += 1 + i / 16)
        check_element(&r, &b, b.x + i, gx[i], "input", i);
    /* The masked row passes nothing back. */
    for (size_t i = (N - 1) * b.sample; i < N * b.sample; ++i)
        CHECK_EQ_F64(gx[i], 0);
    free(gx);
    free(g);
    free(b.x);
    models_close(&r);
}

/* All parameters at once: the derivative along a random direction. */
static void check_direction(const test_case *tc)
{
    models_rig r;
    if (!CHECK_OK(models_open(&r, "ref", TAC_F64, tc->spec, &tc->config)))
        return;
    CHECK_OK(models_ready(&r, 8, 0));
    batch b = make_batch(&tc->config);
    const size_t n = tac_params_padded(r.params);
    double *g = malloc(n * sizeof(double));
    double *gx = malloc(N * b.sample * sizeof(double));
    double *value0 = malloc(n * sizeof(double));
    double *v = tac_params_values(r.params);
    const double eps = 1e-7;
    gradients(&r, &b, 0.5, g, gx);
    memcpy(value0, v, n * sizeof(double));
    double slope = 0, loss[2];
    for (size_t i = 0; i < n; ++i) slope += g[i] * models_random(2, i);
    for (int s = 0; s < 2; ++s) {
        for (size_t i = 0; i < n; ++i)
            v[i] = value0[i] + (s ? -eps : eps) * models_random(2, i);
        loss[s] = loss_of(&r, &b);
    }
    CHECK_NEAR(2 * slope, (loss[0] - loss[1]) / (2 * eps),
               1e-6 * (1 + fabs(slope)));
    free(value0);
    free(gx);
    free(g);
    free(b.x);
    models_close(&r);
}

/* The same bits with recompute, dropout included. */
static void check_recompute(const test_case *tc)
{
    double *g[2] = {NULL, NULL}, *gx[2] = {NULL, NULL};
    size_t bytes = 0, x_bytes = 0;
    for (int on = 0; on < 2; ++on) {
        models_rig r;
        if (!CHECK_OK(models_open(&r, "ref", TAC_F64, tc->spec, &tc->config)))
            return;
        CHECK_OK(models_ready(&r, 8, on));
        batch b = make_batch(&tc->config);
        bytes = tac_params_padded(r.params) * sizeof(double);
        x_bytes = N * b.sample * sizeof(double);
        g[on] = malloc(bytes);
        gx[on] = malloc(x_bytes);
        gradients(&r, &b, 1, g[on], gx[on]);
        free(b.x);
        models_close(&r);
    }
    CHECK_EQ_MEM(g[0], g[1], bytes);
    CHECK_EQ_MEM(gx[0], gx[1], x_bytes);
    for (int on = 0; on < 2; ++on) {
        free(g[on]);
        free(gx[on]);
    }
}

/* Row i alone, with its place in the batch named, gives row i's logits. */
static void check_rows_alone(const test_case *tc)
{
    models_rig r;
    tac_tensor *x = NULL, *logits = NULL;
    tac_xent xent;
    if (!CHECK_OK(models_open(&r, "ref", TAC_F64, tc->spec, &tc->config)))
        return;
    CHECK_OK(models_ready(&r, 8, 0));
    batch b = make_batch(&tc->config);
    const size_t c = tc->config.classes;
    double whole[N * 16];
    CHECK_OK(
        models_forward(&r, &train_step, N, b.x, b.y, 0, &x, &logits, &xent));
    memcpy(whole, logits->data, N * c * sizeof(double));
    for (size_t i = 0; i < N; ++i) {
        tac_tape_step step = train_step;
        step.first_sample += i;
        step.sample_stride = 5; /* of no effect with one row */
        CHECK_OK(models_forward(&r, &step, 1, b.x + i * b.sample, b.y + i, 0,
                                &x, &logits, &xent));
        const double *got = logits->data;
        for (size_t k = 0; k < c; ++k)
            CHECK_NEAR(got[k], whole[i * c + k], 1e-12);
    }
    free(b.x);
    models_close(&r);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const long before = tac_check_failed();
        check_forward(&cases[i]);
        check_gradient(&cases[i], 20);
        check_direction(&cases[i]);
        check_recompute(&cases[i]);
        check_rows_alone(&cases[i]);
        printf("%s on %zux%zux%zu, dropout %g: %s\n", cases[i].spec,
               cases[i].config.h, cases[i].config.w, cases[i].config.c,
               cases[i].config.dropout,
               tac_check_failed() == before ? "ok" : "FAILED");
    }
    return tac_check_summary();
}
