/* The tape's inside: what operations need to allocate, record and go back.
 *
 * An operation (ops/<name>.c) has its inputs cast with tac__autocast, checks
 * them, makes its result with tac__tensor_new, runs its forward kernel with
 * TAC__RUN and calls tac__record; if that gives it a node, it fills in what its
 * backward function will need. Its backward function finds the gradient of its
 * result in node->out and writes that of an input through a slot.
 *
 * Types. A tensor's gradient has its type, a parameter's has that of the
 * gradient arena. A parameter in another type is a view: its base is the
 * parameter, its dtype and data are its own (tape_autocast.c). So the root
 * alone says what a gradient is made of, and the dtype of the view says what
 * kernels read and write. */
#ifndef TAC_ENGINE_TAPE_IMPL_H
#define TAC_ENGINE_TAPE_IMPL_H

#include "tacit/arena.h"
#include "tacit/kernels.h"
#include "tacit/tape.h"

enum { TAC__NODE_INPUTS = 3 };

/* Memory of a gradient, reused within a step: a free list on top of the arena
 * keeps the working set of backward small and warm. */
typedef struct tac__buffer {
    void *ptr;
    size_t bytes;
    int shared; /* lent to a block that runs again: neither freed nor given */
    struct tac__buffer *next;
} tac__buffer;

typedef struct tac__node tac__node;

typedef struct tac__op {
    const char *name, *backward_name; /* of trace spans */
    tac_status (*backward)(tac_tape *t, tac__node *node);
} tac__op;

struct tac__node {
    const tac__op *op;
    tac__node *previous;
    tac_tensor *out; /* the root whose gradient starts it; NULL: a block */
    tac_tensor *in[TAC__NODE_INPUTS]; /* may be NULL */
};

/* Where the output of a block that runs without being kept goes: the tensor
 * with this ordinal gets this memory. */
typedef struct tac__redirect {
    size_t ordinal;
    void *data;
} tac__redirect;

/* A region of autocast. Casts of parameters are kept for one id. */
typedef struct tac__cast_region {
    tac_tape_autocast a;
    int on;
    size_t id;
} tac__cast_region;

/* The values of a parameter in another type, in the step arena. */
typedef struct tac__cast_entry {
    size_t param, region;
    tac_dtype dtype;
    void *data;
    struct tac__cast_entry *of_param; /* the one before, of this parameter */
    struct tac__cast_entry *previous; /* the one before, of any */
} tac__cast_entry;

typedef enum tac__tape_phase {
    TAC__IDLE,     /* before the first begin, or after a failure in one */
    TAC__FORWARD,  /* operations may be recorded */
    TAC__BACKWARD, /* in it */
    TAC__DONE      /* after it */
} tac__tape_phase;

struct tac_tape {
    tac_context *ctx;
    tac_device *dev;
    tac_params *params;
    const tac_kernels *k[TAC_DTYPE_COUNT]; /* NULL: the device has none */
    tac_kctx kc;
    tac_dtype dtype, grad_dtype; /* of parameters */
    uint64_t seed;
    int recompute_next, recompute;
    tac_grad_hooks hooks;

    tac_arena *data; /* device memory */
    tac_arena *meta; /* host memory: tensors, nodes, buffers */

    tac_tape_step step;
    tac__tape_phase phase;
    int dry;       /* no kernels */
    int probing;   /* no data either: a block's shapes are being found out */
    int recording; /* nodes are made */
    int counting;  /* uses of parameters are counted */
    tac__node *last;
    const float *loss_scale; /* device memory; NULL: 1. During backward. */
    size_t widest;           /* see tac_tape_widest */
    size_t ordinal;          /* tensors made so far */
    size_t region;           /* first ordinal that a block running again owns */
    uint32_t dropouts;       /* so far in this step */
    tac__buffer *free_list;  /* of gradient buffers, sorted by size */
    const tac__redirect *redirects;
    size_t n_redirects;

    tac__cast_region cast;
    size_t cast_regions;    /* begun so far, for their ids */
    tac__cast_entry *casts; /* the latest that is kept */
    size_t n_param_casts;

    /* Per parameter. */
    size_t n_params;
    tac_tensor *param_tensors;
    tac__cast_entry **casts_of;
    size_t *pending;        /* recorded uses that backward has not passed */
    unsigned char *filled;  /* its gradient holds something of this group */
    unsigned char *touched; /* ... of this backward */
    unsigned char *final;   /* reported in this backward */
    size_t *final_order;
    size_t n_final, n_unused;
};

/* --- tape_tensor.c: making tensors, memory, records --- */

static inline tac_tensor *tac__root(tac_tensor *x)
{
    return x->base != NULL ? x->base : x;
}

/* Scratch that lives as long as the step (or the block that runs again); in
 * backward it may be memory that has been given back. */
tac_status tac__alloc(tac_tape *t, size_t bytes, void **out);
tac_status tac__meta_alloc(tac_tape *t, size_t bytes, void **out);
tac_status tac__tensor_new(tac_tape *t, tac_dtype dtype, int ndim,
                           const size_t *shape, tac_tensor **out);
tac_status tac__tensor_view(tac_tape *t, tac_tensor *x, int ndim,
                            const size_t *shape, tac_tensor **out);
/* x is an output of a block that runs: its memory is somebody else's. */
int tac__is_redirected(const tac_tape *t, const tac_tensor *x);
/* Will a node be made for a result of these inputs? NULLs are legal. */
int tac__will_record(const tac_tape *t, tac_tensor *const *in);
/* Makes y require a gradient if an input does, counts uses, and gives a zeroed
 * node of `bytes` (which starts with a tac__node), or NULL if none is needed.
 * in: TAC__NODE_INPUTS pointers, NULLs are legal. */
tac_status tac__record(tac_tape *t, const tac__op *op, size_t bytes,
                       tac_tensor *y, tac_tensor *const *in, void **node);

/* --- tape_autocast.c: regions, and parameters in other types --- */

/* Casts the inputs of operation `op` as the region that is on has it, if any:
 * in (TAC__NODE_INPUTS pointers, NULLs are legal) is changed. */
tac_status tac__autocast(tac_tape *t, const char *op, tac_tensor **in);
/* x, a parameter or a view of one, as `dtype`: a view with data of its own. */
tac_status tac__cast_param(tac_tape *t, tac_tensor *x, tac_dtype dtype,
                           tac_tensor **out);
/* Forgets the casts that were kept since `t->casts` was `to`. */
void tac__forget_casts(tac_tape *t, tac__cast_entry *to);

/* --- tape_check.c: arguments of operations --- */

tac_status tac__check_phase(const tac_tape *t, const char *op);
/* x is of a type that the device has kernels for, no loss, and has between lo
 * and hi dimensions. */
tac_status tac__check_input(const tac_tape *t, const char *op, const char *role,
                            const tac_tensor *x, int lo, int hi);
/* x is of the same type as the operation's first input; NULL is legal. */
tac_status tac__check_agrees(const tac_tape *t, const char *op,
                             const tac_tensor *first, const char *role,
                             const tac_tensor *x);
tac_status tac__check_table(const tac_tape *t, const char *op, tac_dtype dtype);
/* The device has kernels of x's own dtype: losses are f64. */
tac_status tac__check_scalar_table(const tac_tape *t, const char *op,
                                   const tac_tensor *x);
const char *tac__label(const tac_tensor *x, const char *role);

/* --- tape_slot.c: where kernels write gradients --- */

/* The type in which T is accumulated. */
static inline tac_dtype tac__wide(tac_dtype dtype)
{
    return dtype == TAC_F64 ? TAC_F64 : TAC_F32;
}

/* That of x's gradient. */
static inline tac_dtype tac__grad_dtype(const tac_tape *t, const tac_tensor *x)
{
    const tac_tensor *root = x->base != NULL ? x->base : x;
    return root->param >= 0 ? t->grad_dtype : root->dtype;
}

/* A place for the gradient of one tensor. `accumulate` is for the kernel; if
 * the kernel can't add, or writes another type than the gradient's, it gets
 * scratch, and close adds and casts. */
typedef struct tac__slot {
    tac_tensor *root; /* NULL: nobody wants it */
    void *ptr;
    int accumulate; /* the kernel adds to ptr */
    int add;        /* close adds scratch */
    tac_dtype written;
    tac__buffer *scratch;
} tac__slot;

static inline int tac__wants(const tac_tensor *x)
{
    return x != NULL && x->requires_grad;
}

/* 1 if a contribution to x must be added to others. */
int tac__must_add(const tac_tape *t, const tac_tensor *x);
/* For a kernel that writes x's own type. */
tac_status tac__slot_open(tac_tape *t, tac_tensor *x, int kernel_can_add,
                          tac__slot *s);
tac_status tac__slot_open_as(tac_tape *t, tac_tensor *x, tac_dtype written,
                             int kernel_can_add, tac__slot *s);
tac_status tac__slot_close(tac_tape *t, tac__slot *s);
/* The place is taken before it is written: a slot opened after this for the
 * same tensor adds to it. For kernels that write several gradients at once. */
void tac__slot_claim(tac_tape *t, const tac__slot *s);

/* The gradients of weights and bias (which may be NULL), for a kernel that
 * writes both in the wide type; s->b.ptr is NULL if nobody wants the latter's.
 */
typedef struct tac__weight_slots {
    tac__slot w, b;
    int accumulate;
} tac__weight_slots;
tac_status tac__weights_open(tac_tape *t, tac_tensor *w, tac_tensor *b,
                             tac__weight_slots *s);
tac_status tac__weights_close(tac_tape *t, tac__weight_slots *s);

/* --- tape_grad.c: gradients in backward --- */

/* Gives root x a buffer if it has none (for blocks). */
tac_status tac__grad_prepare(tac_tape *t, tac_tensor *root);
/* 1 if y's buffer can become x's instead of being copied. */
int tac__can_move(const tac_tape *t, const tac_tensor *y, const tac_tensor *x);
void tac__move(tac_tensor *y, tac_tensor *x);
/* Adds factor * (gradient of root y) to that of x; y's is lost if may_move. */
tac_status tac__pass_grad(tac_tape *t, tac_tensor *y, tac_tensor *x,
                          double factor, int may_move);
tac_status tac__buffer_new(tac_tape *t, size_t bytes, tac__buffer **out);
void tac__buffer_free(tac_tape *t, tac__buffer *b);
/* A free buffer of about that size; NULL: there is none. */
tac__buffer *tac__take_free(tac_tape *t, size_t bytes);
/* Memory that nobody will read again becomes a free buffer of this region. */
tac_status tac__reuse(tac_tape *t, void *ptr, size_t bytes);
/* The free list becomes a copy of itself, with the same memory: a block that
 * runs may use it up; after it the list is as it was. Call it after the block's
 * mark has been taken. */
tac_status tac__borrow_free(tac_tape *t);
/* Applies a fused ReLU's mask to the gradient of node->out, once. */
tac_status tac__relu_mask(tac_tape *t, tac_tensor *y);

/* --- tape_backward.c --- */

/* Walks nodes from `last` to the first one. */
tac_status tac__walk(tac_tape *t, tac__node *last);

/* --- tracing --- */

uint64_t tac__span_begin(const tac_tape *t);
void tac__span_end(const tac_tape *t, const char *name, uint64_t begin);

/* Runs a kernel of the table of `dtype` unless the step is dry. */
#define TAC__RUN(t, dtype, call)                     \
    do {                                             \
        if (!(t)->dry) TAC_TRY((t)->k[dtype]->call); \
    } while (0)

#endif
