/* comm_family.c: a failure of a communicator reaches those split off it, with
 * ranks as threads and as processes. */
#include "comm_family.h"
#include "comm_fork.h"

int main(void)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int thread = 0; thread < 2; thread++) {
        tac_comm_config config = TAC_COMM_CONFIG_INIT;
        config.progress = thread ? TAC_PROGRESS_THREAD : TAC_PROGRESS_CALLER;
        config.timeout_ms = 60000;
        with_threads(4, &config, family_aborts, NULL);
        with_threads(4, &config, family_lives, NULL);
        with_processes(4, &config, family_aborts, NULL, b, NULL);
        with_processes(4, &config, family_lives, NULL, b, NULL);
        config.emulate = "hosts=2,rate=1gbit";
        with_threads(4, &config, family_aborts, NULL);
        with_threads(4, &config, family_lives, NULL);
    }
    munmap(b, sizeof *b);
    return tac_check_summary();
}
