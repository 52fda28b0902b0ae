/* thread.c: ranks that are threads of one process share its memory. */
#include <stdio.h>

#include "domain.h"
#include "transports/builtin.h"
#include "transports/channel.h"

void tac__shared_close(void *state, int healthy)
{
    (void)healthy;
    tac__domain_close(state);
}

void tac__shared_abort(void *state, tac_status s, const char *text)
{
    tac__domain_abort(state, s, text);
}

tac_status tac__shared_poll(void *state, const char **text)
{
    return tac__domain_poll(state, text);
}

void tac__shared_tell(void *state, uint64_t word)
{
    const tac__domain *d = state;
    atomic_store_explicit(&d->line[d->rank]->doing, word, memory_order_relaxed);
}

uint64_t tac__shared_heard(void *state, int r)
{
    const tac__domain *d = state;
    return atomic_load_explicit(&d->line[r]->doing, memory_order_relaxed);
}

struct tac__domain *tac__shared_domain(void *state)
{
    return state;
}

static int usable(const tac__boot *b, void *arg, const tac_comm_config *config,
                  char *why, size_t bytes)
{
    (void)arg, (void)config;
    if (b->processes == 1 && b->hosts == 1) return 1;
    snprintf(why, bytes, "the ranks are %d processes, not threads of one",
             b->processes);
    return 0;
}

static tac_status open_thread(tac__boot *b, void *arg,
                              const tac_comm_config *config, void **state)
{
    (void)arg;
    tac__domain *d = NULL;
    TAC_TRY(tac__domain_open(b, 1, config->staging_bytes, &d));
    *state = d;
    return TAC_OK;
}

const tac_transport tac__transport_thread = {
    .abi = TAC_ABI,
    .name = "thread",
    .doc = "threads of one process, through its memory",
    .flags = TAC_TRANSPORT_SHARED | TAC_TRANSPORT_P2P | TAC_TRANSPORT_TELLS |
             TAC_TRANSPORT_CLEAN,
    .usable = usable,
    .open = open_thread,
    .close = tac__shared_close,
    .abort = tac__shared_abort,
    .poll = tac__shared_poll,
    .domain = tac__shared_domain,
    .max_message = (size_t)1 << 30,
    .isend = tac__channel_isend,
    .irecv = tac__channel_irecv,
    .test = tac__channel_test,
    .cancel = tac__channel_cancel,
    .tell = tac__shared_tell,
    .heard = tac__shared_heard,
};
