/* slots.c: private state that other modules hang off a context.
 *
 * A list in order of creation, searched linearly: a context has a handful of
 * slots, and modules keep the pointer where speed matters. The lock is held
 * while `make` runs, so that two threads never make the same slot twice. */
#include "context_impl.h"

#include <stdlib.h>

tac_status tac__slots_init(tac_context *ctx)
{
    pthread_mutexattr_t attr;
    if (pthread_mutexattr_init(&attr) != 0) return TAC_ERR_NOMEM;
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    const int rc = pthread_mutex_init(&ctx->slots_lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return rc == 0 ? TAC_OK : TAC_ERR_NOMEM;
}

/* A slot whose `make` used another was linked after it, so it goes first. */
void tac__slots_destroy(tac_context *ctx)
{
    while (ctx->slots) {
        tac__slot *slot = ctx->slots;
        ctx->slots = slot->next;
        if (slot->destroy) slot->destroy(slot->value);
        free(slot);
    }
    pthread_mutex_destroy(&ctx->slots_lock);
}

static tac__slot *find_slot(tac_context *ctx, const void *key)
{
    tac__slot *slot = ctx->slots;
    while (slot && slot->key != key) slot = slot->next;
    return slot;
}

static void *make_slot(tac_context *ctx, const void *key, tac_slot_make *make,
                       tac_slot_free *destroy, void *arg)
{
    tac__slot *slot = malloc(sizeof *slot);
    if (!slot) return NULL;
    void *value = make(ctx, arg);
    if (!value) {
        free(slot);
        return NULL;
    }
    *slot = (tac__slot){key, value, destroy, ctx->slots};
    ctx->slots = slot;
    return value;
}

void *tac_context_slot(tac_context *ctx, const void *key, tac_slot_make *make,
                       tac_slot_free *destroy, void *arg)
{
    pthread_mutex_lock(&ctx->slots_lock);
    const tac__slot *slot = find_slot(ctx, key);
    void *value = slot ? slot->value : NULL;
    if (!slot && make) value = make_slot(ctx, key, make, destroy, arg);
    pthread_mutex_unlock(&ctx->slots_lock);
    return value;
}
