/* mpi_transport.c: messages through any MPI >= 3.1.
 *
 * Isend, Irecv and Test on a duplicate of the caller's communicator; never a
 * blocking call. Every tac_comm has two tags: one for data (messages of a pair
 * stay in order) and one for the news that a rank gives up (mpi_news.c). MPI's
 * errors are returned, not fatal. */
#include <stdio.h>
#include <stdlib.h>

#include "transports/mpi/mpi.h"

enum { MANY = 64 }; /* messages looked at in one call of MPI */

/* Below the eager limit of Open MPI's TCP (64 KiB). The handshake of longer
 * messages waits behind the data in the sockets, and the link runs empty: of
 * 1 Gbit/s pieces of 256 KiB get 60-90 %, of 32 KiB 95 %. */
#define FAR_PIECE ((size_t)32 << 10)

static int usable(const tac__boot *b, void *arg, const tac_comm_config *config,
                  char *why, size_t bytes)
{
    const tac__mpi_world *w = arg;
    (void)b;
    if (w->level < MPI_THREAD_SERIALIZED)
        snprintf(why, bytes,
                 "MPI was started with less than "
                 "MPI_THREAD_SERIALIZED: use MPI_Init_thread");
    else if (config->progress == TAC_PROGRESS_THREAD &&
             w->level < MPI_THREAD_MULTIPLE)
        snprintf(why, bytes,
                 "progress by a thread needs MPI_THREAD_MULTIPLE: "
                 "use MPI_Init_thread, or progress by the caller");
    else
        return 1;
    return 0;
}

/* Three tags that no member of the group has used; everybody's world rank. */
static tac_status exchange_places(tac__boot *b, tac__mpi_link *l)
{
    typedef struct place {
        int32_t rank, tag;
    } place;
    tac__mpi_world *w = l->world;
    const place mine = {w->rank, w->next_tag};
    place *all = calloc((size_t)b->size, sizeof *all);
    tac_status s = all ? TAC_OK : b->ops->note(b, TAC_ERR_NOMEM, "no memory");
    s = b->ops->agree(b, s);
    if (s == TAC_OK) s = b->ops->exchange(b, &mine, all, sizeof mine);
    for (int r = 0; r < b->size && s == TAC_OK; r++) {
        l->peer[r] = all[r].rank;
        if (all[r].tag > l->tag) l->tag = all[r].tag;
    }
    free(all);
    if (s == TAC_OK && l->tag > w->tag_ub - 2)
        s = b->ops->note(b, TAC_ERR_UNSUPPORTED,
                         "more communicators than MPI has tags (%d)",
                         w->tag_ub);
    if (s == TAC_OK) w->next_tag = l->tag + 3;
    return s;
}

static void free_link(tac__mpi_link *l)
{
    if (!l) return;
    while (l->store) {
        tac__mpi_message *m = l->store;
        l->store = m->next;
        free(m);
    }
    free(l->word);
    free(l->saying);
    free(l->telling);
    free(l->peer);
    free(l);
}

static tac__mpi_link *new_link(const tac__boot *b, tac__mpi_world *w)
{
    const size_t n = (size_t)b->size;
    tac__mpi_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->world = w;
    l->rank = b->rank;
    l->size = b->size;
    l->peer = calloc(n, sizeof *l->peer);
    l->telling = calloc(n, sizeof *l->telling);
    l->saying = calloc(n, sizeof *l->saying);
    l->word = calloc(n, sizeof *l->word);
    if (!l->peer || !l->telling || !l->saying || !l->word) {
        free_link(l);
        return NULL;
    }
    for (size_t r = 0; r < n; r++)
        l->telling[r] = l->saying[r] = MPI_REQUEST_NULL;
    return l;
}

static tac_status open_mpi(tac__boot *b, void *arg,
                           const tac_comm_config *config, void **state)
{
    (void)config;
    tac__mpi_link *l = new_link(b, arg);
    tac_status s = l ? TAC_OK : b->ops->note(b, TAC_ERR_NOMEM, "no memory");
    s = b->ops->agree(b, s);
    if (s == TAC_OK) s = exchange_places(b, l);
    if (s == TAC_OK)
        *state = l;
    else
        free_link(l);
    return s;
}

/* ---- messages ---------------------------------------------------------------
 */

static tac__mpi_message *new_message(tac__mpi_link *l)
{
    tac__mpi_message *m = l->store;
    if (m)
        l->store = m->next;
    else
        m = malloc(sizeof *m);
    if (m) m->failed = 0;
    return m;
}

static void release(tac__mpi_link *l, tac__mpi_message *m)
{
    m->next = l->store;
    l->store = m;
}

static tac_status finish_start(tac__mpi_link *l, tac__mpi_message *m, int rc,
                               void **op)
{
    if (rc == MPI_SUCCESS) {
        *op = m;
        return TAC_OK;
    }
    release(l, m);
    return TAC_ERR_PEER;
}

/* News travel with the tag between the two. */
static int tag_of(const tac__mpi_link *l, int channel)
{
    return channel == TAC_CHANNEL_USER ? l->tag + 2 : l->tag;
}

static tac_status isend(void *state, int peer, int channel, const void *buf,
                        size_t bytes, void **op)
{
    tac__mpi_link *l = state;
    tac__mpi_message *m = new_message(l);
    if (!m) return TAC_ERR_NOMEM;
    tac__mpi_enter(l->world);
    const int rc = MPI_Isend(buf, (int)bytes, MPI_BYTE, l->peer[peer],
                             tag_of(l, channel), l->world->comm, &m->request);
    tac__mpi_leave(l->world);
    return finish_start(l, m, rc, op);
}

static tac_status irecv(void *state, int peer, int channel, void *buf,
                        size_t bytes, void **op)
{
    tac__mpi_link *l = state;
    tac__mpi_message *m = new_message(l);
    if (!m) return TAC_ERR_NOMEM;
    tac__mpi_enter(l->world);
    const int rc = MPI_Irecv(buf, (int)bytes, MPI_BYTE, l->peer[peer],
                             tag_of(l, channel), l->world->comm, &m->request);
    tac__mpi_leave(l->world);
    return finish_start(l, m, rc, op);
}

static tac_status test(void *state, void **op)
{
    tac__mpi_link *l = state;
    tac__mpi_message *m = *op;
    int done = 0;
    if (!m) return TAC_OK;
    tac__mpi_enter(l->world);
    const int rc = m->failed ? MPI_ERR_OTHER
                             : MPI_Test(&m->request, &done, MPI_STATUS_IGNORE);
    tac__mpi_leave(l->world);
    if (rc == MPI_SUCCESS && !done) return TAC_INPROGRESS;
    release(l, m);
    *op = NULL;
    return rc == MPI_SUCCESS ? TAC_OK : TAC_ERR_PEER;
}

/* One look at MPI for all of them. What failed is left for test to say. */
static tac_status test_some(tac__mpi_link *l, void **const *ops, int n)
{
    MPI_Request request[MANY];
    MPI_Status status[MANY];
    int index[MANY], done = 0, failed = 0;
    for (int i = 0; i < n; i++)
        request[i] = ((tac__mpi_message *)*ops[i])->request;
    tac__mpi_enter(l->world);
    const int rc = MPI_Testsome(n, request, &done, index, status);
    tac__mpi_leave(l->world);
    for (int i = 0; i < done; i++) { /* MPI_UNDEFINED is negative */
        tac__mpi_message *m = *ops[index[i]];
        m->failed = rc != MPI_SUCCESS && status[i].MPI_ERROR != MPI_SUCCESS;
        m->request = request[index[i]];
        failed |= m->failed;
        if (m->failed) continue;
        release(l, m);
        *ops[index[i]] = NULL;
    }
    return failed ? TAC_ERR_PEER : TAC_OK;
}

static tac_status test_many(void *state, void **const *ops, int n)
{
    for (int i = 0; i < n; i += MANY)
        TAC_TRY(test_some(state, ops + i, n - i < MANY ? n - i : MANY));
    return TAC_OK;
}

/* A receive that has not begun can be taken back; a send is left to MPI. */
static void cancel(void *state, void **op)
{
    tac__mpi_link *l = state;
    tac__mpi_message *m = *op;
    *op = NULL;
    atomic_store(&l->world->sick, 1);
    if (tac__mpi_alive() && m->request != MPI_REQUEST_NULL) {
        tac__mpi_enter(l->world);
        MPI_Cancel(&m->request);
        MPI_Request_free(&m->request);
        tac__mpi_leave(l->world);
    }
    release(l, m);
}

/* ---- closing ------------------------------------------------------------ */

/* After a failure messages may be under way that nobody will receive. If the
 * world were freed, MPI could give its number to the next duplicate, which
 * would then receive them. */
static void close_mpi(void *state, int healthy)
{
    tac__mpi_link *l = state;
    if (!healthy) atomic_store(&l->world->sick, 1);
    if (tac__mpi_alive() && !tac__mpi_flush(l))
        return; /* MPI still reads the news */
    free_link(l);
}

/* ---- the world
 * --------------------------------------------------------------- */

static void retain(void *arg)
{
    tac__mpi_world *w = arg;
    atomic_fetch_add(&w->refs, 1);
}

/* A communicator with messages under way is left to MPI_Finalize. */
static void release_world(void *arg)
{
    tac__mpi_world *w = arg;
    if (atomic_fetch_sub(&w->refs, 1) != 1) return;
    if (w->comm != MPI_COMM_NULL && !atomic_load(&w->sick) &&
        tac__mpi_alive()) {
        tac__mpi_enter(w);
        MPI_Comm_free(&w->comm);
        tac__mpi_leave(w);
    }
    free(w);
}

const tac_transport tac__transport_mpi = {
    .abi = TAC_ABI,
    .name = "mpi",
    .doc = "messages through MPI, within and between hosts",
    .flags = TAC_TRANSPORT_P2P,
    .usable = usable,
    .open = open_mpi,
    .close = close_mpi,
    .abort = tac__mpi_tell,
    .poll = tac__mpi_hear,
    .tell = tac__mpi_say,
    .heard = tac__mpi_word,
    .max_message = (size_t)1 << 30,
    .far_piece = FAR_PIECE,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .test_many = test_many,
    .cancel = cancel,
    .retain = retain,
    .release = release_world,
};
