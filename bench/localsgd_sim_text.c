/* localsgd_sim_text.c: how sizes, bandwidths and rows are written. */
#include <math.h>
#include <stdio.h>

#include "localsgd_sim.h"

const char *tac__sim_size_text(double params, char *buf, size_t bytes)
{
    static const struct {
        double unit;
        const char *suffix;
    } units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    size_t i = 0;
    while (params < units[i].unit && units[i].unit > 1) i++;
    snprintf(buf, bytes, "%.3g%s", params / units[i].unit, units[i].suffix);
    return buf;
}

const char *tac__sim_gbps_text(double bits, char *buf, size_t bytes)
{
    if (isinf(bits))
        snprintf(buf, bytes, "never");
    else
        snprintf(buf, bytes, "%.1f", bits / 1e9);
    return buf;
}

void tac__sim_row_begin(tac_json *j, const char *model, const char *method,
                        int64_t sync_every)
{
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "model", model);
    tac_json_str(j, "method", method);
    tac_json_i64(j, "sync_every", sync_every);
}
