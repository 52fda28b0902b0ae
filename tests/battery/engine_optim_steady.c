/* engine_optim_steady.c: no optimizer allocates after its creation, nor a
 * 16-bit one after its first step: counted by a malloc and an mmap of this
 * program's own. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine_test.h"
#include "tac_check.h"
#include "tacit/optim.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t m);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t a, size_t n);

static _Atomic int counting;
static _Atomic long allocations;

static void count(void)
{
    if (atomic_load(&counting)) atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    count();
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    count();
    return __libc_memalign(a, n);
}

int posix_memalign(void **p, size_t a, size_t n)
{
    count();
    *p = __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    count();
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

static void add(tac_params *p, const char *name, int ndim, size_t a, size_t b,
                size_t c)
{
    const size_t shape[3] = {a, b, c};
    CHECK_OK(tac_params_add(p, name, ndim, shape, (tac_init){TAC_INIT_ZEROS, 0},
                            0, NULL));
}

/* All that a step may call. */
static void step(tac_optimizer *o, const float *scale)
{
    CHECK_OK(tac_optimizer_clear_found_inf(o, NULL));
    CHECK_OK(tac_optimizer_set_grad_scale(o, scale, NULL));
    CHECK_OK(tac_optimizer_set_lr(o, 1e-3, NULL));
    CHECK_OK(tac_optimizer_check(o, NULL));
    CHECK_OK(tac_optimizer_clip(o, 1, NULL));
    CHECK_OK(tac_optimizer_unscale(o, NULL));
    CHECK_OK(tac_optimizer_step(o, NULL));
}

static void run(const char *isa, tac_dtype t, tac_optimizer_kind kind,
                int stochastic)
{
    eng_world w = eng_open(isa, t, 2);
    tac_optimizer_config c = tac_optimizer_defaults(kind);
    const tac_schedule s = {TAC_SCHEDULE_COSINE, 1e-3, 0.1, 2, 100};
    const int small = t == TAC_F16 || t == TAC_BF16;
    const float scale = 8;
    tac_optimizer *o = NULL;
    add(w.params, "matrix", 2, 150, 260, 0);
    add(w.params, "batch", 3, 50, 30, 31);
    add(w.params, "vector", 1, 300, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    eng_fill(tac_params_grad_dtype(w.params), tac_params_grads(w.params),
             tac_params_padded(w.params), 1, 1);
    if (kind == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
    if (kind == TAC_OPTIMIZER_ADAFACTOR) c.beta1 = 0.9;
    c.stochastic_rounding = stochastic;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    CHECK_OK(tac_optimizer_set_schedule(o, &s));
    if (small) step(o, &scale);
    atomic_store(&allocations, 0);
    atomic_store(&counting, 1);
    for (int i = 0; i < 5; ++i) step(o, &scale);
    atomic_store(&counting, 0);
    CHECK_MSG(atomic_load(&allocations) == 0, "%s, %s: %ld allocations",
              tac_optimizer_kind_name(kind), tac_dtype_name(t),
              atomic_load(&allocations));
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static void run_set(const char *isa)
{
    for (int k = TAC_OPTIMIZER_SGD; k <= TAC_OPTIMIZER_ADAMW8BIT; ++k) {
        const tac_optimizer_kind kind = (tac_optimizer_kind)k;
        run(isa, TAC_F32, kind, 0);
        run(isa, TAC_F16, kind, 0);
        run(isa, TAC_BF16, kind, 1);
        if (kind != TAC_OPTIMIZER_ADAMW8BIT) run(isa, TAC_F64, kind, 0);
    }
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->available(why, sizeof why)) run_set(sets[i]->name);
    return tac_check_summary();
}

#else

int main(void)
{
    return tac_check_skip("sanitizers allocate for themselves");
}

#endif
