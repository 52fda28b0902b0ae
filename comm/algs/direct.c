/* direct.c: what algorithms on messages do around their messages: the check,
 * the step, and how buffers are cut (see direct.h). */
#include "algs/direct.h"

#include <string.h>

#include "algs/shared.h"

#define SHORT_PIECE ((size_t)16 << 10)
#define LONG_PIECE  ((size_t)256 << 10)

/* ---- the check, and the step around an algorithm ---------------------------
 */

tac_status tac__direct_exchange(tac_req *req, tac__piece_fn *piece)
{
    const tac_comm *c = req->comm;
    for (int i = 1; i < c->size; i++) {
        const int from = (c->rank - i + c->size) % c->size;
        const tac__piece p = piece(req, from);
        if (p.recv_bytes > 0)
            TAC_TRY(tac__direct_recv(req, from, p.recv, p.recv_bytes));
    }
    for (int i = 1; i < c->size; i++) {
        const int to = (c->rank + i) % c->size;
        const tac__piece p = piece(req, to);
        if (p.send_bytes > 0)
            TAC_TRY(tac__direct_send(req, to, p.send, p.send_bytes));
    }
    return TAC_OK;
}

static tac__piece sig_piece(tac_req *req, int peer)
{
    tac_comm *c = req->comm;
    const size_t bytes = sizeof(tac__sig);
    return (tac__piece){&c->scratch.sigs[c->size], &c->scratch.sigs[peer],
                        bytes, bytes};
}

static tac_status compare(tac_req *req)
{
    tac_comm *c = req->comm;
    const tac__sig *mine = &c->scratch.sigs[c->size];
    for (int r = 0; r < c->size; r++)
        if (r != c->rank &&
            memcmp(&c->scratch.sigs[r], mine, sizeof *mine) != 0)
            return tac__sig_mismatch(req, r, &c->scratch.sigs[r]);
    return TAC_OK;
}

/* Where ranks share memory the check is a phase, as it is for the algorithms
 * there: a rank may run one of those and another one of these. */
static tac_status check_in_memory(tac_req *req)
{
    if (req->stage == TAC__CHECK) {
        req->stage = TAC__CHECKING;
        tac__shared_announce(req);
    }
    return tac__shared_agreed(req);
}

tac_status tac__direct_check(tac_req *req)
{
    tac_comm *c = req->comm;
    if (c->domain) return check_in_memory(req);
    if (req->stage == TAC__CHECK) {
        req->stage = TAC__CHECKING;
        if (!c->config.check) return TAC_OK;
        c->scratch.sigs[c->size] = tac__req_sig(req);
        TAC_TRY(tac__direct_exchange(req, sig_piece));
    }
    const tac_status s = tac__direct_wait(req);
    if (s != TAC_OK || !c->config.check) return s;
    TAC_TRY(compare(req));
    tac__direct_reset(req);
    return TAC_OK;
}

tac_status tac__direct_run(tac_req *req, tac__advance_fn *advance)
{
    int done = 0;
    if (req->stage < TAC__DIRECT_BEGIN) {
        const tac_status s = tac__direct_check(req);
        if (s != TAC_OK) return s;
        req->stage = TAC__DIRECT_BEGIN;
    } else {
        TAC_TRY(tac__direct_poll(req));
    }
    TAC_TRY(advance(req, &done));
    if (!done || tac__direct_any_open(req)) return TAC_INPROGRESS;
    req->moved = 1;
    return TAC_OK;
}

/* ---- descriptors -----------------------------------------------------------
 */

int tac__direct_wire_applicable(const tac_comm *c, const tac_req *req)
{
    return (c->transport->flags & TAC_TRANSPORT_P2P) != 0 && !req->codec;
}

int tac__direct_applicable(const tac_comm *c, const tac_req *req)
{
    return tac__direct_wire_applicable(c, req) && !req->wire;
}

int tac__has_feedback(const tac_req *req)
{
    const tac__feedback *f = &req->feedback;
    return f->old || f->next || f->sum_old || f->sum_next ||
           f->dither.seed != 0;
}

/* ---- cutting ----------------------------------------------------------------
 */

tac__range tac__part(size_t n, size_t unit, int parts, int i)
{
    const size_t p = (size_t)parts;
    const size_t even = n / p + (n % p != 0);
    const size_t part = (even + unit - 1) / unit * unit;
    const size_t begin_at = tac__min(n, part * (size_t)i);
    return (tac__range){begin_at, tac__min(n, begin_at + part)};
}

size_t tac__direct_unit(const tac_req *req)
{
    const size_t line = 64 / req->esize;
    return req->wire && req->wire->block > line ? req->wire->block : line;
}

size_t tac__direct_fit(const tac_req *req, size_t esize, size_t bytes)
{
    const size_t unit = tac__direct_unit(req);
    const size_t n = req->wire ? bytes / req->wire->bytes(1024) * 1024
                               : bytes / esize / unit * unit;
    return n > unit ? n : unit;
}

/* A quarter of the whole, if that isn't too short for the cost of a message nor
 * too long to wait for. */
size_t tac__direct_piece(const tac_req *req, size_t esize, size_t total,
                         size_t room)
{
    const size_t unit = tac__direct_unit(req);
    const tac_comm *c = req->comm;
    const size_t most = tac__min(room, c->config.message_bytes);
    size_t bytes =
        (req->wire ? tac__wire_bytes(req, total) : total * esize) / 4;
    if (bytes < SHORT_PIECE) bytes = SHORT_PIECE;
    if (bytes > LONG_PIECE) bytes = LONG_PIECE;
    if (c->hosts > 1 && c->transport->far_piece > 0)
        bytes = tac__min(bytes, c->transport->far_piece);
    const size_t n = tac__direct_fit(req, esize, tac__min(bytes, most));
    return tac__min(n, (total + unit - 1) / unit * unit + (total == 0) * unit);
}
