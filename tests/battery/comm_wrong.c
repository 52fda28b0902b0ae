/* comm_wrong.c: no element is wrong (comm_wrong.h), over processes and
 * threads. */
#include "comm_wrong.h"
#include "comm_fork.h"

int main(void)
{
    static const char *const transports[] = {"shm", "ucx"};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    board *b = board_create();
    if (!CHECK(b != NULL)) return tac_check_summary();
    for (int t = 0; t < 2; t++) {
        config.transport = transports[t];
        if (!can_fork_over(transports[t], b)) continue;
        with_processes(3, &config, wrong_run, NULL, b, NULL);
        printf("%s: %ld failed so far\n", transports[t], tac_check_failed());
    }
    with_threads(2, NULL, wrong_run, NULL);
    return tac_check_summary();
}
