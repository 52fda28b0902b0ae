/* outer.c: outer optimizers: the anchor moves by the averaged delta as if it
 * were a gradient. The same f32 operations on every rank, so anchors stay equal
 * to the bit. One pass over memory each. */
#include <math.h>

#include "impl.h"

typedef struct pass {
    size_t n;
    float *a;       /* anchor */
    const float *d; /* averaged delta */
    float *u, *v;   /* state */
    const tac_outer *o;
    double inner_lr;
    uint64_t step; /* from 1 */
} pass;

static void average(const pass *p)
{
    float *restrict a = p->a;
    const float *restrict d = p->d;
    for (size_t i = 0; i < p->n; i++) a[i] -= d[i];
}

static void sgd(const pass *p)
{
    float *restrict a = p->a;
    const float *restrict d = p->d, lr = (float)p->o->lr;
    for (size_t i = 0; i < p->n; i++) a[i] -= lr * d[i];
}

static void heavy_ball(const pass *p)
{
    float *restrict a = p->a, *restrict u = p->u;
    const float *restrict d = p->d;
    const float lr = (float)p->o->lr, m = (float)p->o->momentum;
    for (size_t i = 0; i < p->n; i++) {
        u[i] = m * u[i] + d[i];
        a[i] -= lr * u[i];
    }
}

static void nesterov(const pass *p)
{
    float *restrict a = p->a, *restrict u = p->u;
    const float *restrict d = p->d;
    const float lr = (float)p->o->lr, m = (float)p->o->momentum;
    for (size_t i = 0; i < p->n; i++) {
        u[i] = m * u[i] + d[i];
        a[i] -= lr * (d[i] + m * u[i]);
    }
}

/* With an inner rate of 0 (the first step of a warm-up) nothing has moved, and
 * nothing is divided by it. */
static void slowmo(const pass *p)
{
    float *restrict a = p->a, *restrict u = p->u;
    const float *restrict d = p->d;
    const float g = (float)p->inner_lr, m = (float)p->o->momentum;
    const float lr = (float)(p->o->lr * p->inner_lr);
    if (!(g > 0)) {
        average(p);
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        u[i] = m * u[i] + d[i] / g;
        a[i] -= lr * u[i];
    }
}

static void adam(const pass *p)
{
    float *restrict a = p->a, *restrict u = p->u, *restrict v = p->v;
    const float *restrict d = p->d;
    const tac_outer *o = p->o;
    const double t = (double)p->step;
    const float b1 = (float)o->momentum, b2 = (float)o->beta2;
    const float rate = (float)(o->lr / (1 - pow(o->momentum, t)));
    const float root = (float)(1 / sqrt(1 - pow(o->beta2, t)));
    const float eps = (float)o->eps;
    for (size_t i = 0; i < p->n; i++) {
        u[i] = b1 * u[i] + (1 - b1) * d[i];
        v[i] = b2 * v[i] + (1 - b2) * d[i] * d[i];
        a[i] -= rate * u[i] / (sqrtf(v[i]) * root + eps);
    }
}

int tac__outer_arrays(const tac_outer *o)
{
    switch (o->kind) {
    case TAC_OUTER_AVERAGE:
    case TAC_OUTER_SGD: return 0;
    case TAC_OUTER_HEAVY_BALL:
    case TAC_OUTER_NESTEROV:
    case TAC_OUTER_SLOWMO: return 1;
    case TAC_OUTER_ADAM: return 2;
    case TAC_OUTER_CUSTOM: return o->state_per_element;
    }
    return 0;
}

static void custom(tac_localsgd *l, const tac__fragment *f, const pass *p)
{
    float *state[TAC__OUTER_ARRAYS] = {NULL};
    for (int i = 0; i < l->n_outer; i++) state[i] = l->outer[i] + f->at;
    p->o->fn(p->o->arg, p->n, p->step, p->inner_lr, p->a, p->d, state);
}

void tac__outer_step(tac_localsgd *l, tac__fragment *f, const float *delta,
                     double inner_lr)
{
    const tac_outer *o = &l->config.outer;
    const pass p = {.n = f->n,
                    .a = l->anchor + f->at,
                    .d = delta,
                    .u = l->n_outer > 0 ? l->outer[0] + f->at : NULL,
                    .v = l->n_outer > 1 ? l->outer[1] + f->at : NULL,
                    .o = o,
                    .inner_lr = inner_lr,
                    .step = ++f->outer_steps};
    f->version++;
    switch (o->kind) {
    case TAC_OUTER_AVERAGE: average(&p); break;
    case TAC_OUTER_SGD: sgd(&p); break;
    case TAC_OUTER_HEAVY_BALL: heavy_ball(&p); break;
    case TAC_OUTER_NESTEROV: nesterov(&p); break;
    case TAC_OUTER_SLOWMO: slowmo(&p); break;
    case TAC_OUTER_ADAM: adam(&p); break;
    case TAC_OUTER_CUSTOM: custom(l, f, &p); break;
    }
}
