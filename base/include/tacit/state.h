/* tacit/state.h: the state visitor.
 *
 * Every object with state has one function of the type tac_state_visit_fn that
 * shows each of its parts to a visitor: name, dtype, shape, pointer. Saving,
 * loading, hashing, broadcasting at start and tests all walk the same list, so
 * nothing can be forgotten by one of them. Order and names are stable. */
#ifndef TACIT_STATE_H
#define TACIT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/dtype.h"
#include "tacit/status.h"

TAC_BEGIN_DECLS

#define TAC_STATE_MAX_DIMS 8

typedef struct tac_state_item {
    const char *name; /* full name, "model.fc1.weight"; borrowed for the call */
    tac_dtype dtype;
    int ndim; /* 0: a scalar of one element */
    size_t shape[TAC_STATE_MAX_DIMS];
    void *data; /* elements in C order, borrowed; written by loaders */
} tac_state_item;

/* Elements of the item: the product of its shape. */
TAC_API size_t tac_state_item_count(const tac_state_item *item);

typedef tac_status tac_state_visitor_fn(void *arg, const tac_state_item *item);

typedef struct tac_state_visitor {
    tac_state_visitor_fn *visit;
    void *arg;
    const char *prefix; /* put before each name; NULL or "" for none */
} tac_state_visitor;

/* Shows one item; name is prefixed. Helpers for objects' visit functions, which
 * stop at the first failure and return it (TAC_TRY). `shape` has ndim entries.
 * A u64 is shown as TAC_I64. Errors: the visitor's; NOMEM; ARG for an item that
 * can't exist (a programmer's error). */
TAC_API tac_status tac_state_visit(const tac_state_visitor *v, const char *name,
                                   tac_dtype dtype, int ndim,
                                   const size_t *shape, void *data);
TAC_API tac_status tac_state_visit_u64(const tac_state_visitor *v,
                                       const char *name, uint64_t *value);
TAC_API tac_status tac_state_visit_f64(const tac_state_visitor *v,
                                       const char *name, double *value);

/* What an object with state provides. */
typedef tac_status tac_state_walk_fn(void *object, const tac_state_visitor *v);

/* Walks a part of an object: all of its names get `prefix` ("optimizer.") after
 * the visitor's own. Errors: those of the walk, NOMEM. */
TAC_API tac_status tac_state_walk(const tac_state_visitor *v,
                                  const char *prefix, tac_state_walk_fn *walk,
                                  void *object);

TAC_END_DECLS

#endif
