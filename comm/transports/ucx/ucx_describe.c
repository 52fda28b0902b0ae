/* ucx_describe.c: which devices UCX has chosen: "ucx 1.13: tcp/eth0,
 * sysv/memory". UCX tells it only in the text that it prints about an endpoint,
 * a line a lane:
 *
 *   #                 lane[0]:  3:sysv/memory.0 md[2]  -> md[2]/sysv/... am
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transports/ucx/ucx.h"

/* "sysv/memory" of such a line, in place; NULL if it is none. */
static char *device_of(char *line)
{
    char *at = strstr(line, "lane[");
    if (!at || !(at = strstr(at, "]:"))) return NULL;
    at += 2 + strspn(at + 2, " ");
    at += strspn(at, "0123456789");
    if (*at++ != ':') return NULL;
    at[strcspn(at, " \n")] = '\0';
    char *dot = strrchr(at, '.'); /* and the number of the path */
    if (dot) *dot = '\0';
    return *at ? at : NULL;
}

static void add(char *buf, size_t bytes, const char *device)
{
    const size_t n = strlen(buf);
    if (!strstr(buf, device))
        snprintf(buf + n, bytes - n, "%s%s", n ? ", " : "", device);
}

static void add_endpoint(ucp_ep_h ep, char *buf, size_t bytes)
{
    char *text = NULL, *rest = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (!f) return;
    ucp_ep_print_info(ep, f);
    fclose(f);
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *device = device_of(line);
        if (device) add(buf, bytes, device);
    }
    free(text);
}

void tac__ucx_describe(void *state, char *buf, size_t bytes)
{
    tac__ucx_link *l = state;
    buf[0] = '\0';
    pthread_mutex_lock(&l->lock);
    for (int r = 0; r < l->size; r++)
        if (l->peer[r].ep) add_endpoint(l->peer[r].ep, buf, bytes);
    pthread_mutex_unlock(&l->lock);
}
