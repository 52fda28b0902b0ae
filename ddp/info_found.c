/* What this build finds on this machine, and why not the rest: transports,
 * algorithms, devices, data. Where a thing can be tried, it is tried. */
#include "tacit_info.h"

#ifdef TAC_HAVE_MPI
#include <mpi.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tacit/comm.h"
#include "tacit/data.h"
#include "tacit/device.h"
#include "tacit/kernels.h"
#include "tacit/plugin.h"

/* ---- transports ----------------------------------------------------------
 */

/* Memory without a name; /dev/shm matters only where that is refused. */
static void find_shm(tac__info *i)
{
    struct statvfs v;
    char text[160];
    const int fd = memfd_create("tacit", MFD_CLOEXEC);

    if (fd >= 0) {
        close(fd);
        tac__info_item(i, "shm", 1,
                       "processes of one host, over anonymous memory (memfd)");
        return;
    }
    if (access("/dev/shm", W_OK) != 0 || statvfs("/dev/shm", &v) != 0) {
        tac__info_item(i, "shm", 0,
                       "memfd_create is refused, and /dev/shm is not there or "
                       "not writable");
        return;
    }
    snprintf(text, sizeof text,
             "processes of one host, over /dev/shm (%llu MiB free), because "
             "memfd_create is refused",
             (unsigned long long)(v.f_bavail * v.f_frsize >> 20));
    tac__info_item(i, "shm", 1, text);
}

static void find_mpi(tac__info *i)
{
#ifdef TAC_HAVE_MPI
    char version[MPI_MAX_LIBRARY_VERSION_STRING], text[256];
    int n = 0;

    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = '\0';
    snprintf(text, sizeof text, "processes anywhere: %.200s", version);
    tac__info_item(i, "mpi", 1, text);
#else
    tac__info_item(i, "mpi", 0,
                   "built without MPI: apt install libopenmpi-dev openmpi-bin "
                   "and build again");
#endif
}

/* A plug-in that can be loaded is there. */
static void find_plugin(tac__info *i, const char *name, const char *file,
                        const char *text, const char *remedy)
{
    char why[512] = "", line[640];
    const tac_plugin *p = NULL;

    if (tac_plugin_load(i->ctx, file, &p) >= 0 && p->transport) {
        tac__info_item(i, name, 1, text);
        return;
    }
    tac_context_error(i->ctx, why, sizeof why);
    snprintf(line, sizeof line, "%s%s%s", why, why[0] ? "; " : "", remedy);
    tac__info_item(i, name, 0, line);
}

void tac__info_transports(tac__info *i)
{
    tac__info_begin_list(i, "transports", "transports");
    tac__info_item(i, "self", 1, "one rank alone");
    tac__info_item(i, "thread", 1, "threads of one process");
    find_shm(i);
    find_mpi(i);
    find_plugin(i, "ucx", "libtacit_ucx.so",
                "processes anywhere, over UCX (plug-in libtacit_ucx.so)",
                "apt install libucx-dev and build again");
    tac__info_item(i, "nccl", 0, "not in this version");
    tac__info_end_list(i);
}

/* ---- algorithms ----------------------------------------------------------
 */

void tac__info_algorithms(tac__info *i)
{
    tac_algorithm_info a;

    tac__info_begin_list(i, "algorithms", "algorithms");
    for (size_t k = 0; tac_algorithm_list(k, &a) >= 0; k++) {
        char name[80];

        snprintf(name, sizeof name, "%s=%s", tac_coll_name(a.coll), a.name);
        tac__info_item(i, name, 1, a.doc);
    }
    tac__info_end_list(i);
}

/* ---- devices -------------------------------------------------------------
 */

static void find_kernels(tac__info *i, const char *isa)
{
    char name[32], text[512] = "";
    tac_device *dev = NULL;
    const tac_kernels *k = NULL;

    snprintf(name, sizeof name, "cpu, %s", isa);
    if (tac_device_open(i->ctx, "cpu", isa, &dev) < 0) {
        tac_context_error(i->ctx, text, sizeof text);
        tac__info_item(i, name, 0, text);
        return;
    }
    k = tac_device_kernels(dev, TAC_F32);
    snprintf(text, sizeof text, "kernels %.400s", k ? k->names : "none");
    tac__info_item(i, name, k != NULL, text);
    tac_device_close(dev);
}

void tac__info_devices(tac__info *i)
{
    static const char *const isas[] = {"ref", "avx2", "avx512", "onednn"};

    tac__info_begin_list(i, "devices", "devices");
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
        find_kernels(i, isas[k]);
    tac__info_item(i, "cuda", 0,
                   "not in this version, which computes on the CPU");
    tac__info_end_list(i);
}

/* ---- data ----------------------------------------------------------------
 */

/* Is one of the names, as it is or compressed, in the folder? */
static int has_file(const char *dir, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, R_OK) == 0) return 1;
    snprintf(path, sizeof path, "%s/%s.gz", dir, name);
    return access(path, R_OK) == 0;
}

static void find_fashion(tac__info *i)
{
    static const char *const files[] = {
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        if (!has_file(TAC_FASHION_MNIST_DIR, files[k])) {
            char text[256];

            snprintf(text, sizeof text,
                     "%s lacks %s: apt install dataset-fashion-mnist, or "
                     "--data-dir",
                     TAC_FASHION_MNIST_DIR, files[k]);
            tac__info_item(i, "fashion-mnist", 0, text);
            return;
        }
    tac__info_item(i, "fashion-mnist", 1, TAC_FASHION_MNIST_DIR);
}

void tac__info_data(tac__info *i)
{
    tac__info_begin_list(i, "data", "data sets");
    find_fashion(i);
    for (const tac_data_family *f = tac_data_families(); f->name; f++)
        if (strcmp(f->name, "fashion-mnist") != 0)
            tac__info_item(i, f->name, 1, f->doc);
    tac__info_end_list(i);
}
