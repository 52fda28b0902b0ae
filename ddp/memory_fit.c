/* Does a run fit the host, and what would? Alternatives are predicted in the
 * same way as the run itself, by a replica that is opened for it and closed. */
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what there is ------------------------------------------------------- */

/* The number behind `key` in a file of lines; UINT64_MAX: not there. */
static uint64_t number_in(const char *path, const char *key)
{
    FILE *f = fopen(path, "r");
    uint64_t value = UINT64_MAX;
    char line[256];

    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *end = NULL;
        const char *at = line + strlen(key);
        const unsigned long long v = strtoull(at, &end, 10);
        if (end != at) value = v; /* "max" is no number */
        break;
    }
    if (f) fclose(f);
    return value;
}

/* What a group of version 2 at `dir` leaves: page cache that can go is free. */
static uint64_t group_leaves(const char *dir)
{
    char path[600];

    snprintf(path, sizeof path, "%s/memory.max", dir);
    const uint64_t most = number_in(path, "");
    snprintf(path, sizeof path, "%s/memory.current", dir);
    const uint64_t now = number_in(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    uint64_t cache = number_in(path, "inactive_file ");
    if (most == UINT64_MAX || now == UINT64_MAX) return UINT64_MAX;
    if (cache == UINT64_MAX || cache > now) cache = 0;
    return most > now - cache ? most - (now - cache) : 0;
}

/* The least that this process's control groups leave, from its own up. */
static uint64_t groups_leave(void)
{
    uint64_t least = UINT64_MAX;
    char line[256] = "", dir[512];
    FILE *f = fopen("/proc/self/cgroup", "r");

    while (f && fgets(line, sizeof line, f) && strncmp(line, "0::", 3) != 0)
        line[0] = '\0';
    if (f) fclose(f);
    if (line[0] == '\0') return least;
    line[strcspn(line, "\n")] = '\0';
    snprintf(dir, sizeof dir, "/sys/fs/cgroup%s", line + 3);
    for (;;) {
        const uint64_t leaves = group_leaves(dir);
        least = leaves < least ? leaves : least;
        char *slash = strrchr(dir, '/');
        if (!slash || strlen(dir) <= strlen("/sys/fs/cgroup")) return least;
        *slash = '\0';
    }
}

/* For all ranks of the host, with what they hold already. Of what is free a
 * tenth is left to others, and to what the table does not have. */
static uint64_t available(const tac__run *run, uint64_t held, const char **what)
{
    const uint64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    const uint64_t groups = groups_leave();
    uint64_t free_bytes = kib == UINT64_MAX ? UINT64_MAX : kib * 1024;

    *what = "--memory-limit";
    if (run->config->memory_limit > 0) return run->config->memory_limit;
    *what = groups < free_bytes ? "what the control group leaves"
                                : "what the machine has free";
    if (groups < free_bytes) free_bytes = groups;
    free_bytes -= free_bytes / 10;
    return free_bytes > UINT64_MAX - held ? UINT64_MAX : free_bytes + held;
}

/* ---- what a run needs ---------------------------------------------------- */

static uint64_t host_bytes(const tac__run *run,
                           const uint64_t rows[TAC__MEMORY_KINDS])
{
    const tac__place *p = &run->rank->place;

    return tac__memory_host(rows, p->host_ranks, (int)run->config->worker_size,
                            p->host_processes);
}

static tac_status needs(const tac__run *run, tac_replica *r,
                        const tac_optimizer_config *oc, uint64_t *host,
                        uint64_t rows[TAC__MEMORY_KINDS])
{
    const tac__memory_case c = {r, &run->data, oc, run->total_steps};

    TAC_TRY(tac__memory_predict(&c, rows));
    *host = host_bytes(run, rows);
    return TAC_OK;
}

/* The same for another configuration; UINT64_MAX: it can't be had. */
static uint64_t would_need(const tac__run *run, const tac_train_config *config,
                           const tac_optimizer_config *oc)
{
    const tac_dataset_info info = tac_dataset_get_info(run->data.train);
    uint64_t host = UINT64_MAX, rows[TAC__MEMORY_KINDS];
    tac_replica *r = NULL;

    if (tac_replica_open(run->rank->ctx, run->rank->comm, config, &info,
                         run->model, &r) < 0)
        return UINT64_MAX;
    if (needs(run, r, oc, &host, rows) < 0) host = UINT64_MAX;
    tac_replica_close(r);
    return host;
}

/* ---- what would fit ------------------------------------------------------ */

enum { MOST_ACCUMULATE = 1 << 20 }; /* as the option has it */

typedef struct remedy {
    const tac__run *run;
    uint64_t have;
    char text[512];
    size_t used;
} remedy;

static void suggest(remedy *m, const char *what, uint64_t need)
{
    char bytes[32];
    const int n = snprintf(m->text + m->used, sizeof m->text - m->used,
                           "%s%s (%s)", m->used ? "; " : "", what,
                           tac__bytes_text((double)need, bytes));

    if (n > 0) m->used += (size_t)n;
    if (m->used > sizeof m->text) m->used = sizeof m->text;
}

/* The largest batch that fits, by bisection; 0: none does. */
static int64_t largest_batch(const remedy *m, tac_train_config *config,
                             const tac_optimizer_config *oc, uint64_t *need)
{
    const uint64_t samples = tac_dataset_get_info(m->run->data.train).count;
    const uint64_t world = (uint64_t)m->run->rank->world;
    const int64_t most = (int64_t)((samples + world - 1) / world);
    int64_t low = 0, high = config->batch; /* fits; does not, or can't be */

    if (high > most + 1) high = most + 1;
    while (high - low > 1) {
        config->batch = low + (high - low) / 2;
        const uint64_t n = would_need(m->run, config, oc);
        if (n <= m->have) {
            low = config->batch;
            *need = n;
        } else {
            high = config->batch;
        }
    }
    return low;
}

static void suggest_batch(remedy *m, tac_train_config config,
                          const tac_optimizer_config *oc, const char *with)
{
    const int64_t batch = config.batch, k = config.accumulate;
    uint64_t need = 0;
    const int64_t fits = largest_batch(m, &config, oc, &need);
    char what[192];

    if (fits == 0) return;
    const int64_t more = k * ((batch + fits - 1) / fits);

    if (more <= MOST_ACCUMULATE)
        snprintf(what, sizeof what,
                 "--batch %lld%s, with --accumulate %lld for the same step",
                 (long long)fits, with, (long long)more);
    else
        snprintf(what, sizeof what, "--batch %lld%s", (long long)fits, with);
    suggest(m, what, need);
}

static void suggest_recompute(remedy *m, tac_train_config config)
{
    if (!strcmp(config.recompute, "block")) return;
    config.recompute = "block";
    const uint64_t need = would_need(m->run, &config, NULL);
    if (need <= m->have) suggest(m, "--recompute block", need);
}

static void suggest_optimizer(remedy *m, tac_optimizer_kind kind)
{
    const tac_optimizer_config oc = tac_optimizer_defaults(kind);
    const uint64_t need = would_need(m->run, m->run->config, &oc);
    char what[64];

    snprintf(what, sizeof what, "--optimizer %s",
             tac_optimizer_kind_name(kind));
    if (need <= m->have) suggest(m, what, need);
}

/* Nothing alone is enough. */
static void suggest_all(remedy *m)
{
    const tac_optimizer_config oc =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAFACTOR);
    tac_train_config config = *m->run->config;

    config.recompute = "block";
    config.batch += 1; /* the present one may fit now */
    suggest_batch(m, config, &oc, " --recompute block --optimizer adafactor");
}

static void find_remedies(remedy *m)
{
    const tac_train_config *c = m->run->config;

    suggest_batch(m, *c, NULL, "");
    suggest_recompute(m, *c);
    if (strcmp(c->optimizer, "adafactor") != 0)
        suggest_optimizer(m, TAC_OPTIMIZER_ADAFACTOR);
    if (strcmp(c->optimizer, "adamw") == 0)
        suggest_optimizer(m, TAC_OPTIMIZER_ADAMW8BIT);
    if (m->used == 0) suggest_all(m);
}

static tac_status refuse(const tac__run *run, uint64_t need, uint64_t have,
                         const char *what)
{
    remedy m = {.run = run, .have = have};
    char a[32], b[32];

    find_remedies(&m);
    tac__bytes_text((double)need, a);
    tac__bytes_text((double)have, b);
    if (!strcmp(a, b)) { /* the difference is what matters */
        snprintf(a, sizeof a, "%" PRIu64 " B", need);
        snprintf(b, sizeof b, "%" PRIu64 " B", have);
    }
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "the %d rank%s of this host would need %s of memory, and "
                    "%s is %s; %s%s",
                    run->rank->place.host_ranks,
                    run->rank->place.host_ranks == 1 ? "" : "s", a, what, b,
                    m.used ? "what would fit: "
                           : "no smaller batch, recompute or optimizer would "
                             "make it fit: use a smaller model or fewer ranks "
                             "a host",
                    m.text);
}

/* ---- the run ------------------------------------------------------------- */

static void fill(tac__run *run, const uint64_t rows[TAC__MEMORY_KINDS])
{
    for (int k = 0; k < TAC__MEMORY_KINDS; k++)
        run->memory_rows[k] =
            (tac_memory_row){.name = tac__memory_name((tac__memory_kind)k),
                             .predicted = rows[k],
                             .per_process = k == TAC__MEMORY_DATA};
    run->memory.rows = run->memory_rows;
    run->memory.n = TAC__MEMORY_KINDS;
    run->memory.ranks = run->rank->place.host_ranks;
    run->memory.processes = run->rank->place.host_processes;
}

tac_status tac__memory_check(tac__run *run)
{
    uint64_t rows[TAC__MEMORY_KINDS], held[TAC__MEMORY_KINDS] = {0}, need = 0;
    const char *what = "";

    TAC_TRY(needs(run, run->replica, NULL, &need, rows));
    held[TAC__MEMORY_COMM] = rows[TAC__MEMORY_COMM];
    held[TAC__MEMORY_DATA] = rows[TAC__MEMORY_DATA];
    fill(run, rows);
    run->memory.host_predicted = need;
    run->memory.available = available(run, host_bytes(run, held), &what);
    if (need <= run->memory.available) return TAC_OK;
    if (run->config->dry_run && tac__report_speaks(run)) tac__memory_print(run);
    return refuse(run, need, run->memory.available, what);
}

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f && fscanf(f, "%llu %llu", &size, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void tac__memory_measure(tac__run *run)
{
    uint64_t held[TAC__MEMORY_KINDS];

    if (run->memory.rss_bytes > 0) return;
    tac__memory_held(run->replica, &run->data, held);
    for (int k = 0; k < TAC__MEMORY_KINDS; k++)
        run->memory_rows[k].measured = held[k];
    run->memory.host_measured = host_bytes(run, held);
    run->memory.rss_bytes = resident_bytes();
    tac__metrics_memory(run);
}
