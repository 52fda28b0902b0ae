/* --config: an INI file, into the option table of ddp_train. */
#include "fuzz.h"

#include "tacit/options_ini.h"
#include "tacit/train_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tac_train_config c;
    const tac_options_config oc = {"fuzz", "", NULL, tac_train_config_options(),
                                   &c};
    tac_options *o = NULL;

    memset(&c, 0, sizeof c);
    if (tac_options_create(fuzz_context(), &oc, &o) < 0) abort();
    if (tac_options_read_ini(fuzz_context(), o, fuzz_file(data, bytes)) >= 0)
        tac_train_config_resolve(fuzz_context(), &c, 4);
    tac_options_destroy(o);
    return 0;
}

static const char *const texts[] = {
    "# a run\n[model]\nmodel = mlp:32\nbatch = 16\nlr=1e-3\n; end\n",
    "sync = diloco\nsync_every = 8\nouter-lr = 0.7\ncompress = int8\n"
    "run-dir = x\nsave-every = 3\n",
    "quiet = true\nmemory-limit = 1G\neval-every = epoch\nloss-scale = 128\n"
    "precision = fp16\nparam-groups = *.bias:wd=0;fc*:lr=0.5,bits=32\n",
    "sync = streaming\nsync-levels = 2:4,4:16\nsync-schedule = "
    "qsr:0.1,3\nlate = drop:0.5\nshards = dirichlet:0.3\n"
    "inject-inf = 3-5:1\n",
    "compress = topk:0.01,min=64,warmup=8\noptimizer = adafactor\n"
    "relative-step = yes\ntransport = thread\nemulate = hosts=2,rate=1gbit\n",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
