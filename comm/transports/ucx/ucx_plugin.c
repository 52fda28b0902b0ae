/* ucx_plugin.c: the plug-in's one function, and the transport's table. */
#include <stdio.h>

#include "tacit/plugin.h"
#include "transports/ucx/ucx.h"

/* What runs must be of the interface that this was compiled for. */
static int right_version(char *why, size_t bytes)
{
    unsigned major = 0, minor = 0, patch = 0;
    ucp_get_version(&major, &minor, &patch);
    if (major == UCP_API_MAJOR && minor >= UCP_API_MINOR) return 1;
    snprintf(why, bytes,
             "UCX %u.%u.%u is loaded, but this was built for UCX %d.%d or a "
             "newer %d.x; install that, or build again",
             major, minor, patch, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
    return 0;
}

static int usable(const tac__boot *b, void *arg, const tac_comm_config *config,
                  char *why, size_t bytes)
{
    (void)arg, (void)config;
    return right_version(why, bytes) && tac__ucx_context(b, why, bytes) != NULL;
}

static const tac_transport transport_ucx = {
    .abi = TAC_ABI,
    .name = "ucx",
    .doc = "messages through UCX: RDMA, TCP, shared memory",
    .flags = TAC_TRANSPORT_P2P | TAC_TRANSPORT_CLEAN,
    .usable = usable,
    .open = tac__ucx_open,
    .close = tac__ucx_close,
    .abort = tac__ucx_abort,
    .poll = tac__ucx_poll,
    .max_message = (size_t)1 << 30,
    .isend = tac__ucx_isend,
    .irecv = tac__ucx_irecv,
    .test = tac__ucx_test,
    .cancel = tac__ucx_cancel,
    .sleep = tac__ucx_sleep,
    .tell = tac__ucx_tell,
    .heard = tac__ucx_heard,
    .describe = tac__ucx_describe,
};

TAC_API tac_plugin_open_fn tac_plugin_open;

const tac_plugin *tac_plugin_open(unsigned abi)
{
    static const tac_plugin plugin = {TAC_ABI, "ucx", &transport_ucx, NULL};
    return abi == TAC_ABI ? &plugin : NULL;
}
