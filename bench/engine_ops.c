/* engine_ops.c: each kernel by itself, on the shapes of the cnn, in one type.
 *
 * What multiplies is given in GFLOP/s and as a share of the matrix product's
 * peak; what moves data in GB/s, counting each array that must be read or
 * written once, and as a share of the update bandwidth over as many bytes. */
#include <stdio.h>
#include <string.h>

#include "bench_stats.h"
#include "engine_bench.h"
#include "tacit/autocast.h"
#include "tacit/pool.h"

enum {
    IN = 3136, /* fc1 */
    OUT = 128,
    CLASSES = 10,
    FLAT = 1 << 22, /* elements of flat arrays */
};

typedef struct ops {
    tac__bench *bench;
    size_t batch;
    tac_conv2d c1, c2;
    tac_pool2d p1, p2;
    tac_dtype type;
    const tac_kernels *k;
    void *x, *w, *b, *dy; /* of the type, read: FLAT or more elements each */
    void *y;              /* of the type, written */
    float *out, *out2;    /* f32, written */
    float *g, *v;         /* f32; v is not negative */
    uint8_t *index;
    int32_t *labels;
    double peak_gflops;
} ops;

/* One row of the table. */
typedef struct kernel {
    const char *name, *shape;
    tac__timed_fn *run;
    double (*gflop)(const ops *o); /* NULL: moves data */
    /* Read and written: of the type, of f32. */
    double (*elements)(const ops *o);
    double (*floats)(const ops *o);
} kernel;

#define CALL(entry, ...) o->k->entry(&o->bench->kc, __VA_ARGS__)
#define KERNEL(name, call)            \
    static tac_status name(void *arg) \
    {                                 \
        ops *o = arg;                 \
        return call;                  \
    }

KERNEL(linear_forward, CALL(linear_forward, o->batch, IN, OUT, o->x, o->w, o->b,
                            TAC_ACT_RELU, o->y))
KERNEL(linear_backward_data,
       CALL(linear_backward_data, o->batch, IN, OUT, o->dy, o->w, o->y, 0))
KERNEL(linear_backward_weights, CALL(linear_backward_weights, o->batch, IN, OUT,
                                     o->x, o->dy, o->out, o->out2, 0))
KERNEL(conv1_forward,
       CALL(conv2d_forward, &o->c1, o->x, o->w, o->b, TAC_ACT_RELU, o->y))
KERNEL(conv1_backward_weights,
       CALL(conv2d_backward_weights, &o->c1, o->x, o->dy, o->out, o->out2, 0))
KERNEL(conv2_forward,
       CALL(conv2d_forward, &o->c2, o->x, o->w, o->b, TAC_ACT_RELU, o->y))
KERNEL(conv2_backward_data,
       CALL(conv2d_backward_data, &o->c2, o->dy, o->w, o->y, 0))
KERNEL(conv2_backward_weights,
       CALL(conv2d_backward_weights, &o->c2, o->x, o->dy, o->out, o->out2, 0))
KERNEL(block1_forward, CALL(conv2d_pool_forward, &o->c1, &o->p1, o->x, o->w,
                            o->b, o->y, o->index))
KERNEL(block1_backward,
       CALL(conv2d_pool_backward, &o->c1, &o->p1, o->x, o->w, o->dy, o->index,
            o->x, o->out, o->out2, 0, NULL, 0))
KERNEL(block2_forward, CALL(conv2d_pool_forward, &o->c2, &o->p2, o->x, o->w,
                            o->b, o->y, o->index))
KERNEL(block2_backward,
       CALL(conv2d_pool_backward, &o->c2, &o->p2, o->x, o->w, o->dy, o->index,
            o->x, o->out, o->out2, 0, o->y, 0))
KERNEL(pool_forward, CALL(maxpool2d_forward, &o->p1, o->x, o->y, o->index))
KERNEL(pool_backward,
       CALL(maxpool2d_backward, &o->p1, o->dy, o->index, o->x, o->y))
KERNEL(relu_forward, CALL(relu_forward, FLAT, o->x, o->y))
KERNEL(relu_backward, CALL(relu_backward, FLAT, o->x, o->y, o->y))
KERNEL(axpy, CALL(axpy, FLAT, 1e-6, o->x, o->y))
KERNEL(scale, CALL(scale, FLAT, 1.000001, o->y))
KERNEL(cast, CALL(cast, FLAT, TAC_F32, o->g, o->type, o->y, 0))

static tac_status dropout(void *arg)
{
    ops *o = arg;
    const tac_rng_key key = {1, TAC_STREAM_DROPOUT, 1};
    return CALL(dropout, FLAT, o->x, 0.5f, &key, 0, o->y);
}

static tac_status sum_squares(void *arg)
{
    ops *o = arg;
    double out;
    return CALL(sum_squares, FLAT, o->x, &out);
}

static tac_status softmax_xent(void *arg)
{
    ops *o = arg;
    return CALL(softmax_xent_forward, o->batch, CLASSES, o->x, o->labels,
                o->out, o->out2, NULL);
}

static const tac_step_scalars scalars = {.lr = 1e-6f,
                                         .grad_scale = 1,
                                         .clip_coef = 1,
                                         .bias_correction1 = 0.1f,
                                         .bias_correction2 = 0.1f};

static tac_status sgd(void *arg)
{
    ops *o = arg;
    const tac_sgd_args a = {.lr_scale = 1, .momentum = 0.9f};
    return CALL(sgd, FLAT, &a, &scalars, o->y, o->g, o->out2);
}

static tac_status adamw(void *arg)
{
    ops *o = arg;
    const tac_adamw_args a = {1, 0.9f, 0.999f, 1e-8f,  0.01f,
                              0, NULL, NULL,   TAC_F16};
    return CALL(adamw, FLAT, &a, &scalars, o->y, o->g, o->out2, o->v);
}

static double conv_gflop(const tac_conv2d *d)
{
    return 2e-9 * (double)(d->n * d->oh * d->ow * d->oc) *
           (double)(d->ic * d->kh * d->kw);
}

static double fc_gflop(const ops *o)
{
    return 2e-9 * (double)o->batch * IN * OUT;
}

static double c1_gflop(const ops *o)
{
    return conv_gflop(&o->c1);
}

static double c2_gflop(const ops *o)
{
    return conv_gflop(&o->c2);
}

static double c2_twice_gflop(const ops *o)
{
    return 2 * conv_gflop(&o->c2);
}

static double pool_elements(const ops *o)
{
    const tac_pool2d *p = &o->p1;
    return (double)(p->n * p->c) * (double)(p->h * p->w + p->oh * p->ow);
}

static double pool_back_elements(const ops *o)
{
    const tac_pool2d *p = &o->p1;
    return pool_elements(o) + (double)(p->n * p->c * p->oh * p->ow);
}

/* Index bytes count as a quarter of a float. */
static double pool_index(const ops *o)
{
    const tac_pool2d *p = &o->p1;
    return 0.25 * (double)(p->n * p->c * p->oh * p->ow);
}

static double logits(const ops *o)
{
    return (double)o->batch * CLASSES;
}

/* Probabilities, losses and labels. */
static double softmax_floats(const ops *o)
{
    return (double)o->batch * (CLASSES + 2);
}

static double flat1(const ops *o)
{
    (void)o;
    return FLAT;
}

static double flat2(const ops *o)
{
    (void)o;
    return 2.0 * FLAT;
}

static double flat3(const ops *o)
{
    (void)o;
    return 3.0 * FLAT;
}

static double flat5(const ops *o)
{
    (void)o;
    return 5.0 * FLAT;
}

static const kernel kernels[] = {
    {"linear_forward", "3136 to 128, relu", linear_forward, fc_gflop, NULL,
     NULL},
    {"linear_backward_data", "3136 to 128", linear_backward_data, fc_gflop,
     NULL, NULL},
    {"linear_backward_weights", "3136 to 128", linear_backward_weights,
     fc_gflop, NULL, NULL},
    {"conv2d_forward", "28x28, 1 to 32, relu", conv1_forward, c1_gflop, NULL,
     NULL},
    {"conv2d_backward_weights", "28x28, 1 to 32", conv1_backward_weights,
     c1_gflop, NULL, NULL},
    {"conv2d_forward", "14x14, 32 to 64, relu", conv2_forward, c2_gflop, NULL,
     NULL},
    {"conv2d_backward_data", "14x14, 32 to 64", conv2_backward_data, c2_gflop,
     NULL, NULL},
    {"conv2d_backward_weights", "14x14, 32 to 64", conv2_backward_weights,
     c2_gflop, NULL, NULL},
    {"conv2d_pool_forward", "28x28, 1 to 32", block1_forward, c1_gflop, NULL,
     NULL},
    {"conv2d_pool_backward", "28x28, 1 to 32, dw", block1_backward, c1_gflop,
     NULL, NULL},
    {"conv2d_pool_forward", "14x14, 32 to 64", block2_forward, c2_gflop, NULL,
     NULL},
    {"conv2d_pool_backward", "14x14, 32 to 64, dw dx", block2_backward,
     c2_twice_gflop, NULL, NULL},
    {"maxpool2d_forward", "28x28x32, 2x2", pool_forward, NULL, pool_elements,
     pool_index},
    {"maxpool2d_backward", "28x28x32, 2x2", pool_backward, NULL,
     pool_back_elements, pool_index},
    {"softmax_xent_forward", "10 classes", softmax_xent, NULL, logits,
     softmax_floats},
    {"relu_forward", "4Mi", relu_forward, NULL, flat2, NULL},
    {"relu_backward", "4Mi, in place", relu_backward, NULL, flat3, NULL},
    {"dropout", "4Mi", dropout, NULL, flat2, NULL},
    {"axpy", "4Mi", axpy, NULL, flat3, NULL},
    {"scale", "4Mi", scale, NULL, flat2, NULL},
    {"cast", "4Mi, from f32", cast, NULL, flat1, flat1},
    {"sum_squares", "4Mi", sum_squares, NULL, flat1, NULL},
    {"sgd", "4Mi, momentum", sgd, NULL, flat2, flat3},
    {"adamw", "4Mi", adamw, NULL, flat2, flat5},
};

static double bytes_of(const ops *o, const kernel *k)
{
    const double size = (double)tac_dtype_size(o->type);
    const double elements = k->elements ? k->elements(o) : 0;
    return size * elements + 4 * (k->floats ? k->floats(o) : 0);
}

static tac_status report(ops *o, const kernel *k, double seconds)
{
    tac_json *j = o->bench->json;
    tac__peaks peaks = {0};
    const double bytes = bytes_of(o, k);
    const double rate =
        k->gflop ? k->gflop(o) / seconds : bytes / seconds * 1e-9;
    if (!k->gflop)
        TAC_TRY(tac__peak_bandwidth(
            o->bench, (size_t)bytes / 2 / sizeof(float) * sizeof(float),
            &peaks));
    const double share = rate / (k->gflop ? o->peak_gflops : peaks.update_gbs);
    if (!o->bench->opt->quiet)
        printf("%-24s %-24s %10.1f us %8.1f %s %6.1f %%\n", k->name, k->shape,
               seconds * 1e6, rate, k->gflop ? "GFLOP/s" : "GB/s   ",
               100 * share);
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "op", k->name);
    tac_json_str(j, "shape", k->shape);
    tac_json_f64(j, "time_us", seconds * 1e6);
    tac_json_f64(j, k->gflop ? "gflops" : "gbs", rate);
    tac_json_f64(j, "peak_share", share);
    tac_json_end_object(j);
    return TAC_OK;
}

static tac_status measure_kernels(ops *o)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
        double seconds = 0;
        TAC_TRY(tac__time(kernels[i].run, o, o->bench->opt->seconds, &seconds));
        TAC_TRY(report(o, &kernels[i], seconds));
    }
    return TAC_OK;
}

static tac_status measure_peak(ops *o, tac__peaks *peaks)
{
    tac__peak_meter *meter = NULL;
    TAC_TRY(tac__peak_create(o->bench, 3, o->type == TAC_BF16, &meter));
    tac_status s = TAC_OK;
    for (int i = 0; s >= 0 && i < 3; ++i) s = tac__peak_round(meter);
    if (s >= 0) tac__peak_result(meter, peaks);
    tac__peak_destroy(meter);
    TAC_TRY(s);
    o->peak_gflops = peaks->gflops;
    return tac__peak_bandwidth(o->bench, (size_t)64 << 20, peaks);
}

static tac_status allocate_arrays(ops *o, size_t n)
{
    void **const typed[] = {&o->x, &o->w, &o->b, &o->dy, &o->y};
    float **const floats[] = {&o->out, &o->out2, &o->g, &o->v};
    for (size_t i = 0; i < sizeof typed / sizeof *typed; ++i)
        TAC_TRY(tac__bench_values(o->bench, o->type, n, 0.1f, typed[i]));
    for (size_t i = 0; i < sizeof floats / sizeof *floats; ++i)
        TAC_TRY(tac__bench_floats(o->bench, n, i < 3 ? 0.1f : 0, floats[i]));
    return TAC_OK;
}

static tac_status allocate(ops *o)
{
    const tac_device_ops *dev = tac_device_ops_of(o->bench->dev);
    void *impl = tac_device_impl(o->bench->dev);
    const size_t largest = o->batch * 28 * 28 * 32; /* output of conv1 */
    const size_t n = largest > FLAT ? largest : FLAT;
    void *index = NULL, *labels = NULL;
    TAC_TRY(allocate_arrays(o, n));
    TAC_TRY(dev->alloc(impl, n, &index));
    o->index = index;
    memset(o->index, 0, n);
    TAC_TRY(dev->alloc(impl, o->batch * sizeof(int32_t), &labels));
    o->labels = labels;
    for (size_t i = 0; i < o->batch; ++i) o->labels[i] = (int32_t)(i % CLASSES);
    return TAC_OK;
}

/* The one type that is measured. */
static tac_status choose_type(ops *o)
{
    tac__bench *b = o->bench;
    TAC_TRY(tac_precision_parse(b->ctx, b->opt->precision, &o->type));
    o->k = tac_device_kernels(b->dev, o->type);
    if (o->k) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_UNSUPPORTED, "no kernels of %s",
                    b->opt->precision);
}

static void print_head(const ops *o, const tac__peaks *p)
{
    printf("batch %zu, %s, %d threads, kernels %s\n"
           "peak   matrix product %.1f GFLOP/s (n %zu, %s); copy %.1f GB/s; "
           "update %.1f GB/s (64 MiB arrays)\n",
           o->batch, o->bench->opt->precision, tac_pool_size(o->bench->kc.pool),
           o->k->names, p->gflops, p->n, p->method, p->copy_gbs, p->update_gbs);
    if (p->bf16_gflops > 0)
        printf("       matrix product in bf16 %.1f GFLOP/s\n", p->bf16_gflops);
}

static tac_status run(ops *o)
{
    tac__peaks peaks = {.method = "none"};
    tac_json *j = o->bench->json;
    TAC_TRY(choose_type(o));
    TAC_TRY(allocate(o));
    TAC_TRY(measure_peak(o, &peaks));
    if (!o->bench->opt->quiet) print_head(o, &peaks);
    tac_json_str(j, "precision", o->bench->opt->precision);
    tac_json_str(j, "kernels", o->k->names);
    tac_json_u64(j, "batch", o->batch);
    tac_json_i64(j, "threads", tac_pool_size(o->bench->kc.pool));
    tac_json_f64(j, "peak_gflops", peaks.gflops);
    if (peaks.bf16_gflops > 0)
        tac_json_f64(j, "peak_bf16_gflops", peaks.bf16_gflops);
    tac_json_f64(j, "copy_gbs", peaks.copy_gbs);
    tac_json_f64(j, "update_gbs", peaks.update_gbs);
    tac_json_begin_array(j, "ops");
    TAC_TRY(measure_kernels(o));
    tac_json_end_array(j);
    return TAC_OK;
}

tac_status tac__bench_ops(tac__bench *b)
{
    const size_t n = (size_t)b->opt->batch;
    ops o = {.bench = b,
             .batch = n,
             .c1 = {n, 28, 28, 1, 32, 3, 3, 1, 1, 28, 28},
             .c2 = {n, 14, 14, 32, 64, 3, 3, 1, 1, 14, 14},
             .p1 = {n, 28, 28, 32, 2, 2, 14, 14},
             .p2 = {n, 14, 14, 64, 2, 2, 7, 7}};
    const tac_status s = run(&o);
    void *const all[] = {o.x,    o.w, o.b, o.dy,    o.y,     o.out,
                         o.out2, o.g, o.v, o.index, o.labels};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        tac__bench_free(b, all[i]);
    return s;
}
