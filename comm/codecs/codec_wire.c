/* codec_wire.c: fp16, bf16, int8 and fp4 as codecs: one allreduce with a wire
 * format and, if asked for, with feedback of what each encoding loses. Costs
 * nothing beside: rounding errors are found while a block is in the L1 cache.
 */
#include "codecs/codec_impl.h"

float tac__codec_scale(const tac_req *req)
{
    const double s = req->layout ? req->layout->grad_scale : 1.0;
    return s > 0 ? (float)s : 1.0f;
}

void tac__codec_prepare(const tac_req *req, tac__codec_set *set)
{
    req->comm->codec_kernels->prepare(
        set->lost.next, (const float *)(const void *)req->src,
        (float)req->prescale, set->lost.old, tac__codec_scale(req), req->count);
}

tac_req tac__codec_inner_like(const tac_req *req)
{
    return (tac_req){.coll = TAC_COLL_ALLREDUCE,
                     .src = req->src,
                     .dst = req->dst,
                     .count = req->count,
                     .dtype = TAC_F32,
                     .op = req->op,
                     .prescale = req->prescale,
                     .postscale = req->postscale};
}

static tac_status open(tac_codec *c, tac__codec_set *set, int size)
{
    (void)c, (void)set, (void)size;
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    tac_codec *c = req->codec;
    const tac__codec_set *set = req->plan;
    if (req->turn++ > 0) return TAC_OK;
    c->inner = tac__codec_inner_like(req);
    c->inner.wire = c->spec.method->wire;
    c->inner.feedback =
        (tac__feedback){.old = set->lost.old,
                        .next = set->lost.next,
                        .sum_old = set->result.old,
                        .sum_next = set->result.next,
                        .grad_scale = tac__codec_scale(req),
                        .dither = {c->spec.stochastic ? c->spec.seed + 1 : 0,
                                   tac__codec_calls(set)}};
    TAC_TRY(tac__inner_begin(req, &c->inner));
    return TAC_INPROGRESS;
}

const tac__codec_method tac__codec_fp16 = {
    .name = "fp16",
    .doc = "halves, with a power-of-two scale for each 1024",
    .options = "",
    .keeps_result = 1,
    .wire = &tac__wire_fp16,
    .open = open,
    .step = step,
};

const tac__codec_method tac__codec_bf16 = {
    .name = "bf16",
    .doc = "bfloat16",
    .options = "",
    .keeps_result = 1,
    .wire = &tac__wire_bf16,
    .open = open,
    .step = step,
};

const tac__codec_method tac__codec_int8 = {
    .name = "int8",
    .doc = "bytes, with a scale for each 256",
    .options = "stochastic seed=N",
    .feedback = 1,
    .keeps_result = 1,
    .wire = &tac__wire_int8,
    .open = open,
    .step = step,
};

const tac__codec_method tac__codec_fp4 = {
    .name = "fp4",
    .doc = "a sign and three bits of exponent, with a scale for each 256",
    .options = "stochastic seed=N",
    .feedback = 1,
    .keeps_result = 1,
    .wire = &tac__wire_fp4,
    .open = open,
    .step = step,
};
