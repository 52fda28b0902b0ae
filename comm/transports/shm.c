/* shm.c: processes of one host, through memory that has no name: memfd_create,
 * opened by the peers as /proc/<pid>/fd/<n>, so the size of /dev/shm does not
 * matter; POSIX shared memory where that is refused. */
#include <stdio.h>

#include "domain.h"
#include "transports/builtin.h"
#include "transports/channel.h"

static int usable(const tac__boot *b, void *arg, const tac_comm_config *config,
                  char *why, size_t bytes)
{
    (void)arg, (void)config;
    if (b->hosts == 1) return 1;
    snprintf(why, bytes, "the ranks are on %d hosts", b->hosts);
    return 0;
}

static tac_status open_shm(tac__boot *b, void *arg,
                           const tac_comm_config *config, void **state)
{
    (void)arg;
    tac__domain *d = NULL;
    TAC_TRY(tac__domain_open(b, 0, config->staging_bytes, &d));
    *state = d;
    return TAC_OK;
}

const tac_transport tac__transport_shm = {
    .abi = TAC_ABI,
    .name = "shm",
    .doc = "processes of one host, through shared memory without a name",
    .flags = TAC_TRANSPORT_SHARED | TAC_TRANSPORT_P2P | TAC_TRANSPORT_TELLS |
             TAC_TRANSPORT_CLEAN,
    .usable = usable,
    .open = open_shm,
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
