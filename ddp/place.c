/* Each rank tells its host, process and CPUs: one small exchange. Threads of
 * one process can be told from processes of one host by the process's number.
 */
#include "place.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of one rank; compared and combined as bytes. */
typedef struct card {
    char host[256];
    char boot[64]; /* containers of one name on several machines differ here */
    int64_t pid;
    cpu_set_t cpus;
} card;

static void read_boot_id(char text[64])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (f && !fgets(text, 64, f)) text[0] = '\0';
    if (f) fclose(f);
}

static void fill(card *c)
{
    memset(c, 0, sizeof *c);
    if (gethostname(c->host, sizeof c->host - 1) != 0) c->host[0] = '?';
    read_boot_id(c->boot);
    c->pid = (int64_t)getpid();
    if (sched_getaffinity(0, sizeof c->cpus, &c->cpus) != 0) CPU_ZERO(&c->cpus);
}

static int same_host(const card *a, const card *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->boot, b->boot);
}

/* Is card i the first one of its process? */
static int is_first(const card *all, int i)
{
    for (int k = 0; k < i; k++)
        if (all[k].pid == all[i].pid && same_host(&all[k], &all[i])) return 0;
    return 1;
}

static void count(const card *all, int n, int mine, tac__place *out)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    *out = (tac__place){.first_of_process = -1,
                        .beside_first = same_host(&all[0], &all[mine])};
    for (int r = 0; r < n; r++) {
        if (!same_host(&all[r], &all[mine])) continue;
        out->host_ranks++;
        out->host_processes += is_first(all, r);
        CPU_OR(&cpus, &cpus, &all[r].cpus);
        if (all[r].pid != all[mine].pid) continue;
        out->process_ranks++;
        if (out->first_of_process < 0) out->first_of_process = r;
    }
    out->cpus = CPU_COUNT(&cpus) > 0 ? CPU_COUNT(&cpus) : 1;
}

tac_status tac__place_find(tac_comm *comm, tac__place *out)
{
    const int n = tac_comm_size(comm);
    card mine, *all = malloc((size_t)n * sizeof *all);
    tac_req *req = NULL;
    tac_status s;

    if (!all)
        return tac_fail(tac_comm_context(comm), TAC_ERR_NOMEM,
                        "no memory for the places of %d ranks", n);
    fill(&mine);
    s = tac_allgather(comm, &mine, all, sizeof mine, TAC_U8, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    if (s >= 0) count(all, n, tac_comm_rank(comm), out);
    free(all);
    return s;
}
