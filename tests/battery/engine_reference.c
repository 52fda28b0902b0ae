/* engine_reference.c: the f64 reference kernels against the definitions.
 *
 * The oracle of all other kernel tests has to be right by itself. Here it is
 * compared with loops written another way: convolution scatters inputs instead
 * of gathering them, gradients come from the same scatter, pooling from a scan
 * for the first element that equals the maximum, the loss from its textbook
 * form, optimizers from scalars worked out one by one. */
#include "kernel_check.h"

#include <stdio.h>

static tac_kernels ref;
static const tac_kctx kc; /* no pool: serial */

static const double TOL = 1e-12;

static double *randoms(size_t n, uint64_t stream)
{
    double *x = guarded(n * sizeof *x);
    for (size_t i = 0; i < n; ++i) x[i] = (double)random_unit(stream, i);
    return x;
}

static double *zeros(size_t n)
{
    double *x = guarded(n * sizeof *x);
    for (size_t i = 0; i < n; ++i) x[i] = 0;
    return x;
}

static double *poison(size_t n)
{
    double *x = guarded(n * sizeof *x);
    for (size_t i = 0; i < n; ++i) x[i] = (double)NAN;
    return x;
}

static void near_all(const double *got, const double *want, size_t n,
                     const char *what)
{
    for (size_t i = 0; i < n; ++i)
        if (!(fabs(got[i] - want[i]) <= TOL * (1 + fabs(want[i])))) {
            CHECK_MSG(0, "%s: element %zu of %zu is %.17g, not %.17g", what, i,
                      n, got[i], want[i]);
            return;
        }
    CHECK(1);
}

static void free_all(void *const *arrays, size_t n)
{
    for (size_t i = 0; i < n; ++i) guarded_free(arrays[i]);
}

static void test_linear(void)
{
    const size_t n = 5, in = 7, out = 3;
    double *x = randoms(n * in, 1), *w = randoms(out * in, 2);
    double *b = randoms(out, 3), *dy = randoms(n * out, 4);
    double *y = poison(n * out), *dx = poison(n * in), *dw = poison(out * in);
    double *db = poison(out);
    double *wy = zeros(n * out), *wdx = zeros(n * in), *wdw = zeros(out * in);
    double *wdb = zeros(out);
    for (size_t k = 0; k < in; ++k)
        for (size_t o = 0; o < out; ++o)
            for (size_t i = 0; i < n; ++i) {
                wy[i * out + o] += x[i * in + k] * w[o * in + k];
                wdx[i * in + k] += dy[i * out + o] * w[o * in + k];
                wdw[o * in + k] += dy[i * out + o] * x[i * in + k];
            }
    for (size_t i = 0; i < n * out; ++i) {
        wdb[i % out] += dy[i];
        wy[i] = fmax(wy[i] + b[i % out], 0);
    }
    ref.linear_forward(&kc, n, in, out, x, w, b, TAC_ACT_RELU, y);
    ref.linear_backward_data(&kc, n, in, out, dy, w, dx, 0);
    ref.linear_backward_weights(&kc, n, in, out, x, dy, dw, db, 0);
    near_all(y, wy, n * out, "linear y");
    near_all(dx, wdx, n * in, "linear dx");
    near_all(dw, wdw, out * in, "linear dw");
    near_all(db, wdb, out, "linear db");
    free_all((void *[]){x, w, b, dy, y, dx, dw, db, wy, wdx, wdw, wdb}, 12);
}

typedef struct convolution {
    tac_conv2d d;
    double *x, *w, *b, *dy, *y, *dx, *dw, *db; /* the definition's results */
} convolution;

/* Every (pixel of x, tap) meets at most one pixel of y. */
static void scatter(convolution *c, size_t n, size_t iy, size_t ix, size_t ky,
                    size_t kx)
{
    const tac_conv2d *d = &c->d;
    const long ty = (long)(iy + d->pad) - (long)ky;
    const long tx = (long)(ix + d->pad) - (long)kx;
    const long s = (long)d->stride;
    if (ty < 0 || tx < 0 || ty % s || tx % s) return;
    if (ty / s >= (long)d->oh || tx / s >= (long)d->ow) return;
    const size_t at = (n * d->oh + (size_t)(ty / s)) * d->ow + (size_t)(tx / s);
    for (size_t o = 0; o < d->oc; ++o)
        for (size_t i = 0; i < d->ic; ++i) {
            const size_t xi = ((n * d->h + iy) * d->w + ix) * d->ic + i;
            const size_t wi = ((o * d->ic + i) * d->kh + ky) * d->kw + kx;
            c->y[at * d->oc + o] += c->x[xi] * c->w[wi];
            c->dx[xi] += c->dy[at * d->oc + o] * c->w[wi];
            c->dw[wi] += c->dy[at * d->oc + o] * c->x[xi];
        }
}

static void define_convolution(convolution *c)
{
    const tac_conv2d *d = &c->d;
    const size_t taps = d->kh * d->kw, outs = d->n * d->oh * d->ow;
    for (size_t p = 0; p < d->n * d->h * d->w; ++p)
        for (size_t t = 0; t < taps; ++t)
            scatter(c, p / d->w / d->h, p / d->w % d->h, p % d->w, t / d->kw,
                    t % d->kw);
    for (size_t i = 0; i < outs * d->oc; ++i) {
        c->db[i % d->oc] += c->dy[i];
        c->y[i] += c->b[i % d->oc];
    }
}

static void one_conv2d(tac_conv2d d)
{
    d.oh = (d.h + 2 * d.pad - d.kh) / d.stride + 1;
    d.ow = (d.w + 2 * d.pad - d.kw) / d.stride + 1;
    const size_t nx = d.n * d.h * d.w * d.ic, ny = d.n * d.oh * d.ow * d.oc;
    const size_t nw = d.oc * d.ic * d.kh * d.kw;
    convolution c = {d,
                     randoms(nx, 1),
                     randoms(nw, 2),
                     randoms(d.oc, 3),
                     randoms(ny, 4),
                     zeros(ny),
                     zeros(nx),
                     zeros(nw),
                     zeros(d.oc)};
    double *y = poison(ny), *dx = poison(nx), *dw = poison(nw);
    double *db = poison(d.oc);
    define_convolution(&c);
    ref.conv2d_forward(&kc, &d, c.x, c.w, c.b, TAC_ACT_NONE, y);
    ref.conv2d_backward_data(&kc, &d, c.dy, c.w, dx, 0);
    ref.conv2d_backward_weights(&kc, &d, c.x, c.dy, dw, db, 0);
    near_all(y, c.y, ny, "conv2d y");
    near_all(dx, c.dx, nx, "conv2d dx");
    near_all(dw, c.dw, nw, "conv2d dw");
    near_all(db, c.db, d.oc, "conv2d db");
    ref.conv2d_backward_data(&kc, &d, c.dy, c.w, dx, 1);
    for (size_t i = 0; i < nx; ++i) c.dx[i] *= 2;
    near_all(dx, c.dx, nx, "conv2d dx accumulated");
    free_all(
        (void *[]){c.x, c.w, c.b, c.dy, c.y, c.dx, c.dw, c.db, y, dx, dw, db},
        12);
}

static void test_conv2d(void)
{
    one_conv2d((tac_conv2d){2, 5, 7, 3, 4, 3, 3, 1, 1, 0, 0});
    one_conv2d((tac_conv2d){2, 8, 6, 2, 3, 3, 2, 2, 0, 0, 0});
    one_conv2d((tac_conv2d){1, 9, 9, 1, 2, 5, 4, 3, 2, 0, 0});
    one_conv2d((tac_conv2d){1, 3, 3, 2, 1, 2, 2, 1, 3, 0, 0});
    one_conv2d((tac_conv2d){1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0});
}

/* x holds few distinct values, so that windows have ties. */
static void one_maxpool2d(size_t h, size_t w, size_t c, size_t k, size_t stride)
{
    const tac_pool2d d = {
        2, h, w, c, k, stride, (h - k) / stride + 1, (w - k) / stride + 1};
    const size_t ins = 2 * h * w * c, outs = 2 * d.oh * d.ow * c;
    double *x = randoms(ins, 5), *dy = randoms(outs, 6), *y = poison(outs);
    double *dx = poison(ins), *want = zeros(ins), *want_relu = zeros(ins);
    uint8_t *index = guarded(outs);
    for (size_t i = 0; i < ins; ++i) x[i] = rint(2 * x[i]);
    ref.maxpool2d_forward(&kc, &d, x, y, index);
    for (size_t at = 0; at < outs; ++at) {
        const size_t ch = at % c, ox = at / c % d.ow, oy = at / c / d.ow % d.oh;
        const size_t n = at / c / d.ow / d.oh;
        double most = -INFINITY;
        size_t from = 0;
        for (size_t t = k * k; t-- > 0;) { /* backwards: the first tie wins */
            const size_t i =
                ((n * h + oy * stride + t / k) * w + ox * stride + t % k) * c +
                ch;
            if (x[i] < most) continue;
            most = x[i];
            from = i;
        }
        CHECK_EQ_F64(y[at], most);
        const size_t iy = oy * stride + index[at] / k;
        const size_t ix = ox * stride + index[at] % k;
        CHECK_EQ((long long)(((n * h + iy) * w + ix) * c + ch),
                 (long long)from);
        want[from] += dy[at];
        if (most > 0) want_relu[from] += dy[at];
    }
    ref.maxpool2d_backward(&kc, &d, dy, index, NULL, dx);
    near_all(dx, want, ins, "maxpool2d dx");
    ref.maxpool2d_backward(&kc, &d, dy, index, y, dx);
    near_all(dx, want_relu, ins, "maxpool2d dx through relu");
    free_all((void *[]){x, dy, y, dx, want, want_relu, index}, 7);
}

static void test_maxpool2d(void)
{
    one_maxpool2d(6, 4, 3, 2, 2);
    one_maxpool2d(7, 5, 2, 2, 2); /* a rest at the edge */
    one_maxpool2d(7, 7, 2, 3, 2); /* overlap */
    one_maxpool2d(8, 9, 1, 2, 3); /* gaps */
    one_maxpool2d(1, 1, 1, 1, 1);
}

/* The block against its three steps, for windows that overlap. */
static void one_conv2d_pool(size_t k, size_t stride)
{
    const tac_conv2d d = {2, 7, 6, 2, 3, 3, 3, 1, 1, 7, 6};
    const tac_pool2d p = {
        2, 7, 6, 3, k, stride, (7 - k) / stride + 1, (6 - k) / stride + 1};
    const size_t nx = 168, nw = 54, nc = 252, outs = 2 * p.oh * p.ow * 3;
    double *x = randoms(nx, 1), *w = randoms(nw, 2), *b = randoms(3, 3);
    double *dy = randoms(outs, 4), *c = poison(nc), *dc = poison(nc);
    double *y = poison(outs), *wy = poison(outs), *dx = poison(nx);
    double *wdx = poison(nx), *dw = poison(nw), *wdw = poison(nw);
    double db[3], wdb[3];
    uint8_t *index = guarded(outs), *windex = guarded(outs);
    for (size_t i = 0; i < nx; ++i) x[i] = rint(2 * x[i]); /* ties */
    for (size_t i = 0; i < nw; ++i) w[i] = rint(w[i]);
    ref.conv2d_forward(&kc, &d, x, w, b, TAC_ACT_RELU, c);
    ref.maxpool2d_forward(&kc, &p, c, wy, windex);
    ref.conv2d_pool_forward(&kc, &d, &p, x, w, b, y, index);
    near_all(y, wy, outs, "conv2d_pool y");
    CHECK_EQ_MEM(index, windex, outs);
    ref.maxpool2d_backward(&kc, &p, dy, index, y, dc);
    ref.conv2d_backward_data(&kc, &d, dc, w, wdx, 0);
    ref.conv2d_backward_weights(&kc, &d, x, dc, wdw, wdb, 0);
    ref.conv2d_pool_backward(&kc, &d, &p, x, w, dy, index, y, dw, db, 0, dx, 0);
    near_all(dx, wdx, nx, "conv2d_pool dx");
    near_all(dw, wdw, nw, "conv2d_pool dw");
    near_all(db, wdb, 3, "conv2d_pool db");
    free_all(
        (void *[]){x, w, b, dy, c, dc, y, wy, dx, wdx, dw, wdw, index, windex},
        14);
}

static void test_conv2d_pool(void)
{
    one_conv2d_pool(2, 2);
    one_conv2d_pool(3, 2);
    one_conv2d_pool(2, 3);
    one_conv2d_pool(3, 1);
}

static void test_softmax_xent(void)
{
    const size_t n = 4, c = 3;
    const double logits[] = {1, 2, 3, 5, 5, 5, -1000, 0, 1000, 2, 9, 4};
    const int32_t labels[] = {0, 0, 2, -1};
    double loss[4], probs[12], dl[12];
    uint8_t correct[4];
    const double z = exp(1) + exp(2) + exp(3);
    ref.softmax_xent_forward(&kc, n, c, logits, labels, loss, probs, correct);
    near_all(loss, (double[]){log(z) - 1, log(3), 0, 0}, 4, "loss");
    near_all(probs,
             (double[]){exp(1) / z, exp(2) / z, exp(3) / z, 1. / 3, 1. / 3,
                        1. / 3, 0, 0, 1},
             9, "probabilities");
    CHECK_EQ_MEM(correct, ((uint8_t[]){0, 1, 1, 0}), 4); /* a tie: the first */
    ref.softmax_xent_backward(&kc, n, c, probs, labels, 0.5, NULL, dl);
    near_all(dl,
             (double[]){(exp(1) / z - 1) / 2, exp(2) / z / 2, exp(3) / z / 2,
                        -1. / 3, 1. / 6, 1. / 6, 0, 0, 0, 0, 0, 0},
             12, "gradient of logits");
}

/* Two steps of p = 1, g = 2 then -1, worked out by hand. */
static void test_sgd(void)
{
    const tac_step_scalars s = {.lr = 0.5f, .grad_scale = 4, .clip_coef = 0.5f};
    tac_sgd_args a = {
        .lr_scale = 1, .momentum = 0.5f, .weight_decay = 0.25f, .first = 1};
    double p = 1, g = 2, buf = (double)NAN;
    ref.sgd(&kc, 1, &a, &s, &p, &g, &buf); /* g 0.25 + 0.25 */
    CHECK_EQ_F64(buf, 0.5);
    CHECK_EQ_F64(p, 0.75);
    a.first = 0;
    a.dampening = 0.5f;
    a.nesterov = 1;
    g = -1;
    ref.sgd(&kc, 1, &a, &s, &p, &g, &buf); /* g -0.125 + 0.1875 = 0.0625 */
    CHECK_EQ_F64(buf, 0.25 + 0.5 * 0.0625);
    CHECK_EQ_F64(p, 0.75 - 0.5 * (0.0625 + 0.5 * 0.28125));
}

static void test_adamw(void)
{
    const tac_adamw_args a = {1, 0.5f, 0.75f, 0.125f, 0.25f,
                              0, NULL, NULL,  TAC_F16};
    const tac_step_scalars s = {.lr = 0.5f,
                                .grad_scale = 1,
                                .clip_coef = 1,
                                .bias_correction1 = 0.5f,
                                .bias_correction2 = 0.25f};
    double p = 2, g = 4, m = 0, v = 0;
    ref.adamw(&kc, 1, &a, &s, &p, &g, &m, &v);
    CHECK_EQ_F64(m, 2);
    CHECK_EQ_F64(v, 4);
    /* p (1 - 0.125); step 0.5 / 0.5 * 2 / (2 / 0.5 + 0.125) */
    CHECK_NEAR(p, 1.75 - 2 / 4.125, TOL);
    const tac_step_scalars inf = {.grad_scale = 1, .found_inf = 1};
    const double p0 = p;
    ref.adamw(&kc, 1, &a, &inf, &p, &g, &m, &v);
    CHECK_EQ_F64(p, p0);
    CHECK_EQ_F64(m, 2);
}

static void test_elementwise(void)
{
    double x[] = {-1, 0, 2, -0.0, 3}, y[5], sum = (double)NAN;
    ref.relu_forward(&kc, 5, x, y);
    near_all(y, (double[]){0, 0, 2, 0, 3}, 5, "relu");
    ref.relu_backward(&kc, 5, y, (double[]){1, 1, 1, 1, 1}, x);
    near_all(x, (double[]){0, 0, 1, 0, 1}, 5, "relu backward");
    ref.axpy(&kc, 5, 2, y, x);
    near_all(x, (double[]){0, 0, 5, 0, 7}, 5, "axpy");
    ref.scale(&kc, 5, -0.5, x);
    ref.sum(&kc, 5, x, &sum);
    CHECK_EQ_F64(sum, -6);
    ref.sum_squares(&kc, 5, x, &sum);
    CHECK_EQ_F64(sum, 6.25 + 12.25);
    ref.sum(&kc, 0, x, &sum);
    CHECK_EQ_F64(sum, 0);
}

int main(void)
{
    ref.struct_size = sizeof ref;
    ref.dtype = TAC_F64;
    tac_cpu_kernel_sets()[0]->apply(&ref);
    test_linear();
    test_conv2d();
    test_maxpool2d();
    test_conv2d_pool();
    test_softmax_xent();
    test_sgd();
    test_adamw();
    test_elementwise();
    return tac_check_summary();
}
