/* The machine: processor, cores that this process may use, memory that ranks
 * can share. Read from /proc and /sys; what is not there is "unknown". */
#include "tacit_info.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tacit/cpu.h"

/* First line of a file without its newline; NULL if there is none. */
static const char *first_line(const char *path, char *text, size_t bytes)
{
    FILE *f = fopen(path, "r");
    const char *line = f ? fgets(text, (int)bytes, f) : NULL;

    if (f) fclose(f);
    if (line) text[strcspn(text, "\n")] = '\0';
    return line;
}

/* What follows "key : " in a file of such lines. */
static const char *field(const char *path, const char *key, char *text,
                         size_t bytes)
{
    FILE *f = fopen(path, "r");
    const size_t n = strlen(key);
    const char *found = NULL;

    while (f && !found && fgets(text, (int)bytes, f)) {
        const char *colon = strchr(text, ':');

        if (strncmp(text, key, n) != 0 || !colon) continue;
        found = colon + 1 + strspn(colon + 1, " \t");
        text[strcspn(text, "\n")] = '\0';
    }
    if (f) fclose(f);
    return found;
}

static void show_features(tac__info *i)
{
    const tac_cpu_features c = tac_cpu_detect();
    const struct {
        const char *name;
        int there;
    } all[] = {{"avx2", c.avx2},         {"fma", c.fma},
               {"f16c", c.f16c},         {"avx512f", c.avx512f},
               {"avx512bw", c.avx512bw}, {"avx512vl", c.avx512vl},
               {"avx512dq", c.avx512dq}, {"avx512_bf16", c.avx512_bf16},
               {"amx_bf16", c.amx_bf16}};
    char text[160] = "";

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if (!all[k].there) continue;
        if (text[0]) strcat(text, " ");
        strcat(text, all[k].name);
    }
    tac__info_str(i, "features", text[0] ? text : "none of interest");
}

/* "0-3,8": the CPUs of the affinity mask. */
static void show_affinity(tac__info *i)
{
    cpu_set_t set;
    char text[256] = "";
    size_t used = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        tac__info_str(i, "affinity", NULL);
        return;
    }
    for (int c = 0; c < CPU_SETSIZE && used < sizeof text - 16; c++) {
        int end = c;

        if (!CPU_ISSET(c, &set)) continue;
        while (end + 1 < CPU_SETSIZE && CPU_ISSET(end + 1, &set)) end++;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 end > c ? "%s%d-%d" : "%s%d", used ? "," : "",
                                 c, end);
        c = end;
    }
    tac__info_int(i, "cpus_usable", CPU_COUNT(&set), "");
    tac__info_str(i, "affinity", text);
}

static int numa_nodes(void)
{
    char path[64];
    int n = 0;

    for (; n < 1024; n++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", n);
        if (access(path, F_OK) != 0) break;
    }
    return n ? n : 1;
}

void tac__info_machine(tac__info *i)
{
    char host[256] = "", text[512];

    tac__info_begin(i, "machine", "machine");
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    tac__info_str(i, "host", host[0] ? host : NULL);
    tac__info_str(i, "cpu",
                  field("/proc/cpuinfo", "model name", text, sizeof text));
    show_features(i);
    tac__info_int(i, "cpus_online", sysconf(_SC_NPROCESSORS_ONLN), "");
    show_affinity(i);
    tac__info_int(i, "numa_nodes", numa_nodes(), "");
    tac__info_str(i, "last_level_cache",
                  first_line("/sys/devices/system/cpu/cpu0/cache/index3/size",
                             text, sizeof text));
    tac__info_int(i, "memory_mib",
                  (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) /
                      1048576,
                  "MiB");
    tac__info_end(i);
}

/* The chosen one of "always [madvise] never". */
static const char *chosen(char *text)
{
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

    if (!close) return text;
    *close = '\0';
    return open + 1;
}

static void show_choice(tac__info *i, const char *key, const char *path)
{
    char text[256];
    const char *line = first_line(path, text, sizeof text);

    tac__info_str(i, key, line ? chosen(text) : NULL);
}

static void show_limit(tac__info *i)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        tac__info_str(i, "lockable", "unlimited");
    else
        tac__info_int(i, "lockable_kib", (long long)(r.rlim_cur >> 10), "KiB");
}

void tac__info_memory(tac__info *i)
{
    struct statvfs v;
    char text[256];
    const char *pages;

    tac__info_begin(i, "shared_memory", "shared memory");
    if (statvfs("/dev/shm", &v) == 0) {
        tac__info_int(i, "dev_shm_mib",
                      (long long)(v.f_blocks * v.f_frsize >> 20), "MiB");
        tac__info_int(i, "dev_shm_free_mib",
                      (long long)(v.f_bavail * v.f_frsize >> 20), "MiB");
    } else {
        tac__info_str(i, "dev_shm", "not there");
    }
    show_choice(i, "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    show_choice(i, "huge_pages_shm",
                "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    pages = field("/proc/meminfo", "HugePages_Total", text, sizeof text);
    tac__info_int(i, "huge_pages_reserved", pages ? atoll(pages) : 0, "");
    show_limit(i);
    tac__info_end(i);
}
