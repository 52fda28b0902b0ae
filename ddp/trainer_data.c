/* The data of a trainer. Data known by name is loaded by the first rank of each
 * process, which lends it to the others: datasets count their owners. */
#include "trainer_impl.h"

#include <stdlib.h>
#include <string.h>

static tac_status agree(tac_trainer *t, tac_status mine)
{
    return tac__agree_verdict(t->rank.comm, t->rank.capture, mine);
}

static tac_dataset *retain(tac_dataset *set)
{
    return set ? tac_dataset_retain(set) : NULL;
}

static tac_data retain_all(const tac_data *d)
{
    return (tac_data){retain(d->train), retain(d->val), retain(d->test)};
}

static tac_status check_shape(tac_trainer *t, const tac_dataset *set,
                              const char *what)
{
    const tac_dataset_info a = tac_dataset_get_info(t->config.train_dataset);
    tac_dataset_info b;

    if (!set) return TAC_OK;
    b = tac_dataset_get_info(set);
    if (a.h == b.h && a.w == b.w && a.c == b.c && a.classes == b.classes)
        return TAC_OK;
    return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                    "the %s dataset has samples of %zux%zux%zu in %zu classes, "
                    "the training dataset %zux%zux%zu in %zu",
                    what, b.h, b.w, b.c, b.classes, a.h, a.w, a.c, a.classes);
}

static tac_status open_named(tac_trainer *t)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;

    if (t->rank.rank != t->rank.place.first_of_process) return TAC_OK;
    dc.dir = t->rank.config.data_dir;
    return tac_data_open(t->rank.ctx, t->rank.config.data, &dc, &t->run.data);
}

/* Addresses mean something to ranks of the same process alone. */
static tac_status borrow(tac_trainer *t, const tac_data *all)
{
    const int from = t->rank.place.first_of_process;

    if (t->rank.rank != from) t->run.data = retain_all(&all[from]);
    return TAC_OK;
}

static tac_status share(tac_trainer *t)
{
    const int n = tac_comm_size(t->rank.comm);
    tac_data *all = calloc((size_t)n, sizeof *all);
    tac_req *req = NULL;
    tac_status s = all ? TAC_OK
                       : tac_fail(t->rank.ctx, TAC_ERR_NOMEM,
                                  "no memory for the data of %d ranks", n);

    s = agree(t, s);
    if (s >= 0)
        s = tac_allgather(t->rank.comm, &t->run.data, all, sizeof *all, TAC_U8,
                          NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    /* Nobody may give his up before the others have theirs. */
    if (s >= 0) s = agree(t, borrow(t, all));
    free(all);
    return s;
}

tac_status tac__trainer_data(tac_trainer *t)
{
    const tac_trainer_config *c = &t->config;
    const tac_data own = {c->train_dataset, c->eval_dataset, c->test_dataset};
    tac_status s;

    if (c->train_dataset) {
        s = check_shape(t, c->eval_dataset, "evaluation");
        if (s >= 0) s = check_shape(t, c->test_dataset, "test");
        if (s >= 0) t->run.data = retain_all(&own);
        return agree(t, s);
    }
    TAC_TRY(agree(t, open_named(t)));
    return share(t);
}
