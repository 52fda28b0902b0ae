/* comm_family.h: communicators that were split off others, when one of the
 * family fails or goes. For four ranks. */
#ifndef COMM_FAMILY_H
#define COMM_FAMILY_H

#include "comm_threads.h"
#include "tacit/clock.h"

static inline tac_status family_sum(tac_comm *c)
{
    tac_req *req = NULL;
    float x = 1;
    const tac_status s =
        tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, NULL, &req);
    if (s < 0) return s;
    const tac_status w = tac_wait(req, 0);
    if (w == TAC_OK) CHECK_EQ_F64(x, tac_comm_size(c));
    return w;
}

/* Rank 3 gives up the world. Nobody waits there, and each of the others waits
 * in a communicator in which rank 3 is not: rank 2 for rank 1, who waits for
 * rank 0 in a child, who waits for rank 1 in that child's child. */
static inline void family_aborts(tac_comm *world, void *arg)
{
    const int me = tac_comm_rank(world);
    tac_comm *three = NULL, *pair = NULL, *deep = NULL, *last = NULL;
    char text[512] = "";
    (void)arg;
    CHECK_OK(tac_comm_split(world, me < 3 ? 0 : 1, me, &three));
    CHECK_OK(tac_comm_split(three, me < 2 ? 0 : -1, me, &pair));
    if (pair) CHECK_OK(tac_comm_split(pair, 0, me, &deep));
    CHECK_OK(family_sum(three));
    if (deep) CHECK_OK(family_sum(deep));
    CHECK_OK(family_sum(world)); /* all have come so far, however slowly */
    last = me == 0 ? deep : me == 1 ? pair : three;
    if (me == 3) {
        tac_clock_sleep_ns(100000000u);
        tac_comm_abort(world, "enough");
        CHECK_STATUS(family_sum(world), TAC_ERR_ABORTED);
    } else {
        CHECK_STATUS(family_sum(last), TAC_ERR_ABORTED);
        CHECK_STATUS(tac_comm_error(last, text, sizeof text), TAC_ERR_ABORTED);
        CHECK_MSG(strstr(text, "rank 3 aborted: enough") != NULL, "%s", text);
    }
    tac_comm_destroy(deep);
    tac_comm_destroy(pair);
    tac_comm_destroy(three);
}

/* A child's failure is not its parent's, and a child outlives its parent. */
static inline void family_lives(tac_comm *world, void *arg)
{
    const int me = tac_comm_rank(world);
    tac_comm *all = NULL, *pair = NULL, *other = NULL;
    (void)arg;
    CHECK_OK(tac_comm_split(world, 0, me, &all));
    CHECK_OK(tac_comm_split(all, me / 2, me, &pair));
    CHECK_OK(tac_comm_split(all, me / 2, me, &other));
    if (me % 2) tac_comm_abort(other, "this one alone");
    CHECK_STATUS(family_sum(other), TAC_ERR_ABORTED);
    CHECK_OK(family_sum(all));
    tac_comm_destroy(other);
    tac_comm_destroy(all);
    for (int i = 0; i < 3; i++) CHECK_OK(family_sum(pair));
    CHECK_OK(family_sum(world));
    tac_comm_destroy(pair);
}

#endif
