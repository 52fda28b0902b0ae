/* coll_check.c: what must be true of a collective's arguments before anything
 * is submitted. A refusal leaves the communicator healthy. */
#include "coll_check.h"

#include <stdint.h>
#include <string.h>

tac_coll_opt tac__opt_fill(const tac_coll_opt *in)
{
    tac_coll_opt o = TAC_COLL_OPT_INIT;
    if (!in) return o;
    if (in->struct_size < sizeof in->struct_size) {
        o.struct_size = 0; /* refused by tac__check_opt */
        return o;
    }
    memcpy(&o, in, in->struct_size < sizeof o ? in->struct_size : sizeof o);
    o.struct_size = sizeof o;
    return o;
}

/* Which calls can send something else than their elements. */
static tac_status check_wire(tac_comm *c, const tac_req *want,
                             const tac_coll_opt *o)
{
    const char *what = tac_coll_name(want->coll);
    const int same =
        o->wire_dtype == TAC_WIRE_SAME || o->wire_dtype == (int)want->dtype;
    const int reduces = want->coll == TAC_COLL_ALLREDUCE ||
                        want->coll == TAC_COLL_REDUCE_SCATTER;
    if (same && !o->codec) return TAC_OK;
    if (!same && o->codec)
        return tac_fail(c->ctx, TAC_ERR_ARG,
                        "%s: a wire_dtype and a codec: use one of them", what);
    if (!same &&
        (!tac__wire_of(o->wire_dtype) || want->dtype != TAC_F32 || !reduces))
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "%s of %s: wire_dtype %s is not possible; allreduce "
                        "and reduce_scatter of f32 can travel as f16 or bf16",
                        what, tac_dtype_name(want->dtype),
                        tac_dtype_name((tac_dtype)o->wire_dtype));
    if (o->codec &&
        (want->dtype != TAC_F32 || want->coll != TAC_COLL_ALLREDUCE ||
         (want->op != TAC_SUM && want->op != TAC_AVG)))
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "%s of %s, %s: codecs compress sum and avg allreduces "
                        "of f32",
                        what, tac_dtype_name(want->dtype),
                        tac_op_name(want->op));
    return TAC_OK;
}

tac_status tac__check_opt(tac_comm *c, const tac_req *want,
                          const tac_coll_opt *o)
{
    const char *what = tac_coll_name(want->coll);
    if (o->struct_size == 0)
        return tac_fail(c->ctx, TAC_ERR_ARG,
                        "%s: tac_coll_opt.struct_size is not set: start from "
                        "TAC_COLL_OPT_INIT",
                        what);
    TAC_TRY(check_wire(c, want, o));
    if (o->stream)
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "%s: transport %s works on host memory: stream must "
                        "be NULL",
                        what, c->transport->name);
    if (o->flags)
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "%s: there are no flags 0x%x", what, o->flags);
    return TAC_OK;
}

static tac_status check_kinds(tac_comm *c, const tac_req *want)
{
    const char *what = tac_coll_name(want->coll);
    if (want->esize == 0)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: there is no dtype %d", what,
                        (int)want->dtype);
    if ((unsigned)want->op >= TAC_OP_COUNT)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: there is no op %d", what,
                        (int)want->op);
    if (want->root < 0 || want->root >= c->size)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: there is no root %d in 0..%d",
                        what, want->root, c->size - 1);
    return TAC_OK;
}

/* The largest buffer holds `blocks` times the count. */
static tac_status check_sizes(tac_comm *c, const tac_req *want, size_t blocks)
{
    const char *what = tac_coll_name(want->coll);
    const size_t most = PTRDIFF_MAX / want->esize / blocks;
    if (want->count > most)
        return tac_fail(c->ctx, TAC_ERR_ARG,
                        "%s: %zu elements of %zu bytes on %zu ranks are more "
                        "than memory can hold",
                        what, want->count, want->esize, blocks);
    if (want->count > 0 && (!want->src || !want->dst))
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: a buffer is NULL", what);
    return TAC_OK;
}

static int overlap(const char *a, size_t na, const char *b, size_t nb)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + nb && y < x + na;
}

static tac_status check_overlap(tac_comm *c, const tac_req *want)
{
    const size_t one = want->count * want->esize, all = one * (size_t)c->size;
    const size_t mine = one * (size_t)c->rank;
    size_t src_bytes = one, dst_bytes = one;
    int in_place = want->src == want->dst;
    if (one == 0 || want->coll == TAC_COLL_BROADCAST) return TAC_OK;
    if (want->coll == TAC_COLL_REDUCE_SCATTER) {
        src_bytes = all;
        in_place = want->dst == want->src + mine;
    } else if (want->coll == TAC_COLL_ALLGATHER) {
        dst_bytes = all;
        in_place = want->src == want->dst + mine;
    }
    if (in_place || !overlap(want->src, src_bytes, want->dst, dst_bytes))
        return TAC_OK;
    return tac_fail(c->ctx, TAC_ERR_ARG,
                    "%s: source and destination overlap, but not as the "
                    "header allows in place",
                    tac_coll_name(want->coll));
}

tac_status tac__check_buffers(tac_comm *c, const tac_req *want)
{
    const int blocks = want->coll == TAC_COLL_REDUCE_SCATTER ||
                       want->coll == TAC_COLL_ALLGATHER;
    TAC_TRY(check_kinds(c, want));
    TAC_TRY(check_sizes(c, want, blocks ? (size_t)c->size : 1));
    return check_overlap(c, want);
}
