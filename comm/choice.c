/* choice.c: see choice.h. */
#include "choice.h"

#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"
#include "transports/emulate.h"
#include "tune.h"

static int ranks_a_host(const tac_comm *c)
{
    int most = 1;
    for (int r = 0; r < c->size; r++) {
        int n = 0;
        for (int q = 0; q < c->size; q++)
            n += c->peers[q].host == c->peers[r].host;
        if (n > most) most = n;
    }
    return most;
}

/* An emulated network's figures are known. */
static void adopt_network(const struct tac__net *net, tac__cost_params *p)
{
    const tac__emulate *e = tac__net_what(net);
    const size_t piece = TAC__NET_PIECE;
    const double framed = (double)tac__net_wire_bytes(piece) / (double)piece;
    p->network.alpha += (double)e->delay_ns * 1e-9;
    p->network.beta = e->rate > 0 ? framed / e->rate : p->local.beta;
}

static tac_status read_all(tac__boot *b, tac_comm *c)
{
    char why[TAC__TEXT - 16] = "";
    const tac_comm_config *k = &c->config;
    tac_status s = TAC_OK;
    c->choice = calloc(1, sizeof *c->choice);
    if (!c->choice)
        return tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a communicator");
    c->choice->ranks_a_host = ranks_a_host(c);
    c->choice->params = tac__cost_builtin(c->transport->name);
    if (c->net) adopt_network(c->net, &c->choice->params);
    if (k->tune_file && *k->tune_file)
        s = tac__tune_read(k->tune_file, &c->choice->params, why, sizeof why);
    if (s == TAC_OK && k->algorithms)
        s = tac__overrides_parse(k->algorithms, &c->choice->overrides, why,
                                 sizeof why);
    return s == TAC_OK ? s : tac__boot_note(b, s, "%s", why);
}

/* The same file may have different contents on other hosts. */
static tac_status compare(tac__boot *b, const tac_comm *c)
{
    const uint64_t mine = tac_hash_bytes(TAC_HASH_INIT, &c->choice->params,
                                         sizeof c->choice->params);
    uint64_t *all = calloc((size_t)b->size, sizeof *all);
    tac_status s = all ? TAC_OK : tac__boot_note(b, TAC_ERR_NOMEM, "no memory");
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = tac__boot_exchange(b, &mine, all, sizeof mine);
    for (int r = 1; r < b->size && s == TAC_OK; r++)
        if (all[r] != all[0])
            s = tac__boot_note(b, TAC_ERR_MISMATCH,
                               "tune_file: ranks 0 and %d read different "
                               "constants: give all hosts the same file",
                               r);
    free(all);
    return s;
}

tac_status tac__choice_open(tac__boot *b, tac_comm *c)
{
    TAC_TRY(tac__boot_agree(b, read_all(b, c)));
    const int tuned = c->config.tune_file && *c->config.tune_file;
    return tuned && b->size > 1 ? compare(b, c) : TAC_OK;
}

void tac__choice_close(tac_comm *c)
{
    free(c->choice);
    c->choice = NULL;
}
