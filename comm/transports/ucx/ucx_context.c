/* ucx_context.c: the context of UCX: its devices and its configuration.
 *
 * What the user says in UCX_* variables stands. One default is changed: shared
 * memory reports errors like the other transports do (MM_ERROR_HANDLING), or it
 * could not be used beside error handling, and ranks of one host would talk
 * through the loopback interface. And where /dev/shm is too small for UCX, it
 * is told not to use it (it has SysV memory as well), with a warning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "transports/ucx/ucx.h"

static const char slot_key;

/* What UCX 1.13 takes of /dev/shm for the receive queues of a rank, and a bit.
 */
#define SHM_BYTES_A_RANK ((size_t)6 << 20)

typedef struct reason {
    const tac__boot *b;
    char *text;
    size_t bytes;
} reason;

static void prefer(ucp_config_t *c, const char *name, const char *value)
{
    char variable[64];
    snprintf(variable, sizeof variable, "UCX_%s", name);
    /* An option that another version doesn't have is not needed there. */
    if (!getenv(variable)) (void)ucp_config_modify(c, name, value);
}

/* As far as UCX_TLS says. UCX warns of options of transports it doesn't open.
 */
static int uses_shared_memory(void)
{
    static const char *const names[] = {"all",   "sm",   "shm",  "mm",
                                        "posix", "sysv", "xpmem"};
    const char *tls = getenv("UCX_TLS");
    if (!tls || !*tls) return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(tls, names[i])) return *tls != '^';
    return *tls == '^';
}

static size_t local_ranks(const tac__boot *b)
{
    size_t n = 0;
    for (int r = 0; r < b->size; r++)
        n += b->peers[r].host == b->peers[b->rank].host;
    return n;
}

/* Out of room there, UCX would make no worker at all. */
static void spare_dev_shm(const tac__boot *b, ucp_config_t *config)
{
    struct statvfs st;
    const size_t ranks = local_ranks(b), need = ranks * SHM_BYTES_A_RANK;
    const char *tls = getenv("UCX_TLS");
    if ((tls && *tls) || statvfs("/dev/shm", &st) != 0) return;
    const unsigned long long room =
        (unsigned long long)st.f_bavail * st.f_frsize;
    if (room >= need || ucp_config_modify(config, "TLS", "^posix") != UCS_OK)
        return;
    if (b->rank == 0)
        b->ops->log(b->ctx, TAC_LOG_WARN,
                    "UCX is kept from /dev/shm, which has %llu bytes left: %zu "
                    "ranks need %zu bytes there (docker: --shm-size)",
                    room, ranks, need);
}

static ucs_status_t create(const tac__boot *b, ucp_context_h *out)
{
    ucp_config_t *config = NULL;
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
        .mt_workers_shared = 1, /* each under its own lock */
        .name = "tacit",
    };
    ucs_status_t s = ucp_config_read(NULL, NULL, &config);
    if (s != UCS_OK) return s;
    if (uses_shared_memory()) prefer(config, "MM_ERROR_HANDLING", "y");
    spare_dev_shm(b, config);
    s = ucp_init(&params, config, out);
    ucp_config_release(config);
    return s;
}

static void *make(tac_context *ctx, void *arg)
{
    const reason *why = arg;
    ucp_context_h made = NULL;
    (void)ctx;
    tac__ucx_log_retain();
    const ucs_status_t s = create(why->b, &made);
    if (s == UCS_OK) return made;
    tac__ucx_log_release();
    snprintf(why->text, why->bytes,
             "UCX did not start (%s): check UCX_TLS, UCX_NET_DEVICES and the "
             "other UCX_* variables",
             ucs_status_string(s));
    return NULL;
}

static void destroy(void *value)
{
    ucp_cleanup(value);
    tac__ucx_log_release();
}

ucp_context_h tac__ucx_context(const tac__boot *b, char *why, size_t bytes)
{
    reason r = {b, why, bytes};
    return b->ops->slot(b->ctx, &slot_key, make, destroy, &r);
}
