/* config.c: a communicator's configuration with its defaults filled in. */
#include <string.h>

#include "comm_impl.h"
#include "tacit/hash.h"
#include "transports/emulate.h"

#define DEFAULT_TIMEOUT_MS 300000
#define DEFAULT_STALL_MS   60000
#define DEFAULT_STAGING    ((size_t)2 << 20)
#define LEAST_STAGING      ((size_t)4096)
#define DEFAULT_MESSAGE    ((size_t)1 << 30)
#define LEAST_MESSAGE      ((size_t)4096)

/* Callers built against an older header have a shorter structure. */
static tac_comm_config copy(const tac_comm_config *in)
{
    tac_comm_config c = TAC_COMM_CONFIG_INIT;
    if (!in) return c;
    const size_t n = in->struct_size < sizeof c ? in->struct_size : sizeof c;
    memcpy(&c, in, n);
    c.struct_size = sizeof c;
    return c;
}

static tac_status check_emulate(tac_context *ctx, tac_comm_config *c)
{
    char why[320];
    tac__emulate e;
    if (c->emulate && !*c->emulate) c->emulate = NULL;
    if (!c->emulate || tac__emulate_parse(c->emulate, &e, why, sizeof why))
        return TAC_OK;
    return tac_fail(ctx, TAC_ERR_ARG, "%s", why);
}

tac_status tac__config_fill(tac_context *ctx, const tac_comm_config *in,
                            tac_comm_config *out)
{
    tac_comm_config c = copy(in);
    if (in && in->struct_size < sizeof(size_t))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_comm_config.struct_size is %zu: start from "
                        "TAC_COMM_CONFIG_INIT",
                        in->struct_size);
    if (!c.transport || !*c.transport) c.transport = "auto";
    if (c.timeout_ms <= 0) c.timeout_ms = DEFAULT_TIMEOUT_MS;
    if (c.stall_warn_ms == 0) c.stall_warn_ms = DEFAULT_STALL_MS;
    if (c.staging_bytes == 0) c.staging_bytes = DEFAULT_STAGING;
    if (c.staging_bytes < LEAST_STAGING) c.staging_bytes = LEAST_STAGING;
    if (c.message_bytes == 0 || c.message_bytes > DEFAULT_MESSAGE)
        c.message_bytes = DEFAULT_MESSAGE;
    if (c.message_bytes < LEAST_MESSAGE) c.message_bytes = LEAST_MESSAGE;
    if (c.progress != TAC_PROGRESS_CALLER && c.progress != TAC_PROGRESS_THREAD)
        return tac_fail(ctx, TAC_ERR_ARG, "there is no progress mode %d",
                        (int)c.progress);
    TAC_TRY(check_emulate(ctx, &c));
    *out = c;
    return TAC_OK;
}

uint64_t tac__config_hash(const tac_comm_config *c)
{
    uint64_t h = tac_hash_str(TAC_HASH_INIT, c->transport);
    h = tac_hash_u64(h, (uint64_t)(c->deterministic != 0));
    h = tac_hash_u64(h, c->staging_bytes);
    h = tac_hash_u64(h, c->message_bytes);
    h = tac_hash_str(h, c->emulate ? c->emulate : "");
    h = tac_hash_str(h, c->algorithms ? c->algorithms : "");
    return tac_hash_u64(h, (uint64_t)(c->check != 0));
}
