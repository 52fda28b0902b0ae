/* localsgd_saved.h: a state kept in memory, as a checkpoint would keep it. */
#ifndef LOCALSGD_SAVED_H
#define LOCALSGD_SAVED_H

#include "localsgd_trial.h"

enum { SAVED_ITEMS = 256 };

typedef struct saved {
    int n;
    struct saved_item {
        char name[96];
        size_t bytes;
        void *data;
    } items[SAVED_ITEMS];
    int missing;
} saved;

static inline tac_status saved_put(void *arg, const tac_state_item *item)
{
    saved *s = arg;
    if (!CHECK(s->n < SAVED_ITEMS)) return TAC_ERR_NOMEM;
    struct saved_item *i = &s->items[s->n++];
    snprintf(i->name, sizeof i->name, "%s", item->name);
    i->bytes = tac_state_item_count(item) * tac_dtype_size(item->dtype);
    i->data = malloc(i->bytes + 1);
    memcpy(i->data, item->data, i->bytes);
    return TAC_OK;
}

static inline tac_status saved_get(void *arg, const tac_state_item *item)
{
    saved *s = arg;
    const size_t bytes =
        tac_state_item_count(item) * tac_dtype_size(item->dtype);
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->items[i].name, item->name) == 0 &&
            s->items[i].bytes == bytes) {
            memcpy(item->data, s->items[i].data, bytes);
            return TAC_OK;
        }
    s->missing++;
    return TAC_OK;
}

static inline void saved_free(saved *s)
{
    for (int i = 0; i < s->n; i++) free(s->items[i].data);
    s->n = 0;
}

static inline tac_status save_state(tac_localsgd *l, saved *s)
{
    const tac_state_visitor v = {.visit = saved_put, .arg = s};
    return tac_localsgd_walk(l, &v);
}

static inline tac_status load_state(tac_localsgd *l, saved *s)
{
    const tac_state_visitor v = {.visit = saved_get, .arg = s};
    s->missing = 0;
    const tac_status st = tac_localsgd_walk(l, &v);
    CHECK_EQ(s->missing, 0);
    return st;
}

#endif
