// The C interface from C++17: a world of one, through every header that is
// installed with comm.
#include <tacit/clock.h>
#include <tacit/codec.h>
#include <tacit/comm.h>
#include <tacit/context.h>
#include <tacit/reducer.h>
#include <tacit/transport.h>

#include <cstdio>
#include <memory>
#include <vector>

struct closer {
    void operator()(tac_context *c) const { tac_context_destroy(c); }
    void operator()(tac_comm *c) const { tac_comm_destroy(c); }
};

int main()
{
    tac_context *raw = nullptr;
    if (tac_context_create(nullptr, &raw)) return 1;
    const std::unique_ptr<tac_context, closer> ctx(raw);
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *one = nullptr;
    if (tac_comm_create_self(ctx.get(), &config, &one)) return 1;
    const std::unique_ptr<tac_comm, closer> comm(one);
    std::vector<float> x(5, 2.0f);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.postscale = 0.5;
    tac_req *req = nullptr;
    if (tac_allreduce(comm.get(), nullptr, x.data(), x.size(), TAC_F32, TAC_SUM,
                      &opt, &req) ||
        tac_wait(req, 0))
        return 1;
    if (x[4] != 1.0f) return 1;
    std::puts("ok");
    return 0;
}
