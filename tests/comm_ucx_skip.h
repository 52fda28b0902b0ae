/* comm_ucx_skip.h: is the ucx transport built? A plug-in that is there but
 * can't be loaded is no reason to skip. */
#ifndef COMM_UCX_SKIP_H
#define COMM_UCX_SKIP_H

#include <stdio.h>
#include <string.h>

#include "tacit/plugin.h"

static inline int ucx_is_there(int loud)
{
    char why[1024] = "";
    const tac_plugin *plugin = NULL;
    if (tac_plugin_find("libtacit_ucx.so", &plugin, why, sizeof why) == TAC_OK)
        return 1;
    if (!strstr(why, "libtacit_ucx.so: cannot open shared object")) return 1;
    if (loud)
        printf("skipped: the ucx transport is not built (apt install "
               "libucx-dev): %s\n",
               why);
    return 0;
}

#endif
