/* create_array.c: local SGD for a model that is one array, in one call. */
#include "tacit/localsgd.h"

tac_status tac_localsgd_create_array(tac_comm *comm, const char *method,
                                     int64_t every, float *params, size_t n,
                                     tac_localsgd **out)
{
    const tac_localsgd_tensor all = {
        .name = "parameters", .count = n, .data = params, .layer = -1};
    tac_localsgd_config config;
    tac_localsgd *l = NULL;
    if (!comm || !params || !out) return TAC_ERR_ARG;
    TAC_TRY(
        tac_localsgd_preset(tac_comm_context(comm), method, every, &config));
    TAC_TRY(tac_localsgd_create(comm, &config, &l));
    tac_status s = tac_localsgd_add(l, &all);
    if (s >= 0) s = tac_localsgd_start(l, TAC_START_BROADCAST);
    if (s >= 0)
        *out = l;
    else
        tac_localsgd_destroy(l);
    return s;
}
