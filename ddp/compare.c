/* Ranks started with different options would wait for each other for ever, or
 * train different models. Eight bytes a rank tell that they differ; only then
 * rank 0's options travel as text, to say in what. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"

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

void tac__lines_add(tac__lines *l, const char *name, const char *value)
{
    const size_t room = sizeof l->text - l->used;
    const int n = snprintf(l->text + l->used, room, "%s=%s\n", name, value);

    if (n > 0 && (size_t)n < room)
        l->used += (size_t)n;
    else
        memset(l->text + l->used, 0, room);
}

void tac__lines_config(tac__lines *l, const tac_train_config *c)
{
    char value[TAC__VALUE_BYTES];

    for (const tac_option *row = tac_train_config_options(); row->key; row++) {
        if (is_local(row->key)) continue;
        tac__config_value(c, row, value);
        tac__lines_add(l, row->key, value);
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
                            "%s; give all ranks the same",
                            tac_comm_rank(comm), m, value ? value + 1 : t);
        }
        m += lm + 1;
        t += lt + 1;
    }
    return tac_fail(tac_comm_context(comm), TAC_ERR_MISMATCH,
                    "ranks disagree on their settings; rank %d differs from "
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

tac_status tac__compare_lines(tac_comm *comm, const tac__lines *l)
{
    tac__lines mine = *l, theirs = *l;
    tac_req *req = NULL;
    int equal = 0;

    TAC_TRY(hashes_equal(comm, mine.text, &equal));
    if (equal) return TAC_OK;
    TAC_TRY(tac_broadcast(comm, theirs.text, sizeof theirs.text, TAC_U8, 0,
                          NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (!memcmp(mine.text, theirs.text, sizeof mine.text)) return TAC_OK;
    return report(comm, mine.text, theirs.text);
}
