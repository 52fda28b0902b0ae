/* Values of the local modes' options that are more than a number or a word. */
#include "local_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number above 0 that ends with `end`; *at moves behind it. 0: none. */
static double positive(const char **at, char end)
{
    char *stop = NULL;
    const double value = strtod(*at, &stop);

    if (stop == *at || *stop != end || !(value > 0) || !isfinite(value))
        return 0;
    *at = stop + (end != '\0');
    return value;
}

static tac_status parse_qsr(const char *at, tac_sync_schedule *out)
{
    out->kind = TAC_SYNC_QSR;
    out->power = 2;
    if (!strchr(at, ',')) {
        out->alpha = positive(&at, '\0');
    } else {
        out->alpha = positive(&at, ',');
        out->power = positive(&at, '\0');
    }
    return out->alpha > 0 && out->power > 0 ? TAC_OK : TAC_ERR_CONFIG;
}

/* "2500000.5", or a size such as "2M"; 0: neither. */
static double rate(const char *text)
{
    const char *at = text;
    const double number = positive(&at, '\0');
    uint64_t bytes = 0;

    if (number > 0) return number;
    return tac_options_parse_size(text, &bytes) > 0 ? (double)bytes : 0;
}

static tac_status parse_schedule(const char *text, tac_sync_schedule *out)
{
    if (!strcmp(text, "fixed")) return TAC_OK;
    if (!strncmp(text, "qsr:", 4)) return parse_qsr(text + 4, out);
    if (!strcmp(text, "adacomm")) {
        out->kind = TAC_SYNC_ADACOMM;
        return TAC_OK;
    }
    if (strncmp(text, "budget:", 7) != 0) return TAC_ERR_CONFIG;
    out->kind = TAC_SYNC_BUDGET;
    out->bytes_per_second = rate(text + strlen("budget:"));
    return out->bytes_per_second > 0 ? TAC_OK : TAC_ERR_CONFIG;
}

tac_status tac__local_schedule(tac_context *ctx, const char *text,
                               tac_sync_schedule *out)
{
    if (parse_schedule(text, out) >= 0) return TAC_OK;
    return tac_fail(
        ctx, TAC_ERR_CONFIG,
        "--sync-schedule %.60s is not fixed, qsr:ALPHA[,POWER], "
        "adacomm or budget:BYTES (a second and rank; 500000, 2M), with "
        "numbers above 0",
        text);
}

/* A whole number from 1 that ends with `end`; 0: none. */
static int64_t whole(const char **at, char end)
{
    char *stop = NULL;

    if (**at < '0' || **at > '9') return 0;
    errno = 0;
    const long long value = strtoll(*at, &stop, 10);
    if (errno || *stop != end) return 0;
    *at = stop + (end != '\0');
    return value;
}

/* One "RANKS:EVERY"; 0: it is none. */
static int parse_level(const char **at, tac_sync_level *out)
{
    const int64_t ranks = whole(at, ':');

    out->every = whole(at, strchr(*at, ',') ? ',' : '\0');
    out->ranks = ranks <= INT32_MAX ? (int)ranks : 0;
    return out->ranks > 0 && out->every > 0;
}

tac_status tac__local_levels(tac_context *ctx, const char *text,
                             tac_localsgd_config *out)
{
    const char *at = text;
    int n = 0, ok = 1;

    while (ok && n < TAC_LOCALSGD_LEVELS && (n == 0 || *at))
        ok = parse_level(&at, &out->levels[n++]);
    out->n_levels = n;
    if (ok && *at == '\0' && at[-1] != ',') return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--sync-levels %.60s is not WORKERS:EVERY,... with at most "
                    "%d levels, inner groups first, for instance 2:4,8:16",
                    text, TAC_LOCALSGD_LEVELS);
}

tac_status tac__local_late(tac_context *ctx, const char *text,
                           tac_localsgd_config *out)
{
    const char *at = text + strlen("drop:");

    if (!strcmp(text, "wait")) return TAC_OK;
    if (!strncmp(text, "drop:", 5)) {
        out->late = TAC_LATE_DROP;
        out->deadline_s = positive(&at, '\0');
        if (out->deadline_s > 0) return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--late %.40s is neither wait nor drop:SECONDS with a "
                    "number above 0",
                    text);
}
