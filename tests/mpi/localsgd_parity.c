// np: 2 4
/* localsgd_parity.c: processes started by mpirun, over mpi and in shared
 * memory, and threads: the same bits, bytes and synchronisations. */
#include "localsgd_trial.h"
#include "tacit/comm_mpi.h"

typedef struct outcome {
    uint64_t hash, bytes;
    int64_t syncs;
} outcome;

static void configure(tac_comm *comm, int kind, tac_localsgd_config *c)
{
    static const char *const names[] = {"local", "slowmo", "streaming",
                                        "diloco"};
    *c = preset(comm, names[kind], 4);
    if (kind == 2) c->fragments = 3, c->codec = "fp4";
    if (kind == 3) {
        c->codec = "int8";
        c->n_levels = 2;
        c->levels[0] = (tac_sync_level){2, 2};
        c->levels[1] = (tac_sync_level){tac_comm_size(comm), 4};
        if (tac_comm_size(comm) == 2) c->levels[0].ranks = 1;
    }
}

static void run(tac_comm *comm, int kind, outcome *out)
{
    trial t;
    tac_localsgd_config c;
    configure(comm, kind, &c);
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_run(&t, 14, 0.1f);
    CHECK_OK(tac_localsgd_finish(t.l));
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK(all_equal(comm, trial_hash(&t)));
    *out = (outcome){trial_hash(&t), s.bytes_wire, s.syncs};
    trial_close(&t);
}

static void as_thread(tac_comm *comm, void *arg)
{
    outcome o[4] = {{0}};
    for (int k = 0; k < 4; k++) run(comm, k, &o[k]);
    if (tac_comm_rank(comm) == 0) memcpy(arg, o, sizeof o);
}

static void as_process(tac_context *ctx, const char *transport,
                       const outcome *want)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *comm = NULL;
    config.transport = transport;
    config.deterministic = 1;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &comm));
    for (int k = 0; k < 4 && comm; k++) {
        outcome got = {0};
        run(comm, k, &got);
        CHECK_MSG(memcmp(&got, &want[k], sizeof got) == 0,
                  "%s, configuration %d: other bits or bytes than threads",
                  transport, k);
    }
    tac_comm_destroy(comm);
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    outcome want[4] = {{0}};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    config.deterministic = 1;
    with_threads(size, &config, as_thread, want);
    tac_context *ctx = rank_context(rank, size);
    as_process(ctx, "shm", want);
    as_process(ctx, "mpi", want);
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
