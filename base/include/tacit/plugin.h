/* tacit/plugin.h: loading a plug-in library at first need.
 *
 * A plug-in exports one function, `tac_plugin_open`, which for the ABI number
 * TAC_ABI returns its tables (transport, device), NULL where it has none, or
 * NULL if the number is not its own. The core never links CUDA, NCCL or UCX. */
#ifndef TACIT_PLUGIN_H
#define TACIT_PLUGIN_H

#include "tacit/context.h"

TAC_BEGIN_DECLS

struct tac_transport;  /* comm's, see tacit/transport.h */
struct tac_device_ops; /* engine's, see tacit/device.h */

typedef struct tac_plugin {
    unsigned abi;
    const char *name;
    const struct tac_transport *transport;
    const struct tac_device_ops *device;
} tac_plugin;

typedef const tac_plugin *tac_plugin_open_fn(unsigned abi);
#define TAC_PLUGIN_SYMBOL "tac_plugin_open"

/* Loads `path`. A file name without '/' is searched in the folders of the
 * environment's TACIT_PLUGIN_PATH, beside this library, beside the program
 * (with each of these two: in the folder above, in its folder tacit/, and where
 * installed programs have them, ../lib/tacit), then by the dynamic linker. The
 * library stays loaded; signal handlers that loading has set are put back.
 * Errors: UNSUPPORTED with the linker's own text, or both ABI numbers.
 * Thread-safe. */
TAC_API tac_status tac_plugin_load(tac_context *ctx, const char *path,
                                   const tac_plugin **out);

/* The same, but the reason is written to `why` and not reported: for ranks that
 * have to agree first. */
TAC_API tac_status tac_plugin_find(const char *path, const tac_plugin **out,
                                   char *why, size_t bytes);

TAC_END_DECLS

#endif
