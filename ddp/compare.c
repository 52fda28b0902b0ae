/* Ranks started with different options would wait for each other for ever, or
 * train different models. Eight bytes a rank tell that they differ; only then
 * rank 0's options travel as text, to say in what. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"
#include "tacit/train_config.h"

enum { TEXT_BYTES = 8192 };

/* What may differ from rank to rank. */
static const char *const local_keys[] = {
    "ranks",  "threads",  "run-dir",  "json",           "quiet",
    "config", "data-dir", "prefetch", "allow-singleton"};

static int is_local(const char *key)
{
    for (size_t i = 0; i < sizeof local_keys / sizeof *local_keys; i++)
        if (!strcmp(key, local_keys[i])) return 1;
    return 0;
}

static void write_text(const tac_options *o, char text[TEXT_BYTES])
{
    size_t used = 0;

    memset(text, 0, TEXT_BYTES);
    for (const tac_option *row = tac_train_config_options(); row->key; row++) {
        if (is_local(row->key)) continue;
        const int n = snprintf(text + used, TEXT_BYTES - used, "%s=%s\n",
                               row->key, tac_options_value(o, row->key));
        if (n < 0 || (size_t)n >= TEXT_BYTES - used) return;
        used += (size_t)n;
    }
}

/* Finds the first line that differs and reports it. */
static tac_status report(tac_comm *comm, char *mine, char *theirs)
{
    char *m = mine, *t = theirs;

    for (;;) {
        const size_t lm = strcspn(m, "\n"), lt = strcspn(t, "\n");

        if (lm == 0 || lt == 0) break;
        if (lm != lt || memcmp(m, t, lm) != 0) {
            m[lm] = t[lt] = '\0';
            const char *value = strchr(t, '=');
            return tac_fail(tac_comm_context(comm), TAC_ERR_MISMATCH,
                            "ranks disagree: rank %d runs with %s, rank 0 with "
                            "%s; give all ranks the same options",
                            tac_comm_rank(comm), m, value ? value + 1 : t);
        }
        m += lm + 1;
        t += lt + 1;
    }
    return tac_fail(tac_comm_context(comm), TAC_ERR_MISMATCH,
                    "ranks disagree on their options; rank %d differs from "
                    "rank 0",
                    tac_comm_rank(comm));
}

static tac_status hashes_equal(tac_comm *comm, const char *text, int *equal)
{
    const int world = tac_comm_size(comm);
    const int64_t mine = (int64_t)tac_hash_str(TAC_HASH_INIT, text);
    int64_t *all = malloc((size_t)world * sizeof *all);
    tac_req *req = NULL;
    tac_status s;

    if (!all) return TAC_ERR_NOMEM;
    s = tac_allgather(comm, &mine, all, 1, TAC_I64, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    *equal = 1;
    for (int r = 0; s >= 0 && r < world; r++)
        if (all[r] != all[0]) *equal = 0;
    free(all);
    return s;
}

tac_status tac__compare_options(tac_comm *comm, const tac_options *o)
{
    char mine[TEXT_BYTES], theirs[TEXT_BYTES];
    tac_req *req = NULL;
    int equal = 0;

    write_text(o, mine);
    TAC_TRY(hashes_equal(comm, mine, &equal));
    if (equal) return TAC_OK;
    memcpy(theirs, mine, sizeof theirs);
    TAC_TRY(tac_broadcast(comm, theirs, sizeof theirs, TAC_U8, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (!memcmp(mine, theirs, sizeof mine)) return TAC_OK;
    return report(comm, mine, theirs);
}
