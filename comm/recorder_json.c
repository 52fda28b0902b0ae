/* recorder_json.c: the flight recorder as JSON: one object a communicator, the
 * format is in docs/comm.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"
#include "tacit/clock.h"
#include "tacit/json.h"

#define FORMAT_VERSION 1

static const char *state_name(tac__state s)
{
    static const char *const names[] = {"scheduled", "started", "completed",
                                        "failed"};
    return names[s];
}

static int has_op(tac_coll coll)
{
    return coll == TAC_COLL_ALLREDUCE || coll == TAC_COLL_REDUCE_SCATTER;
}

static const char *peer_key(tac_coll coll)
{
    if (coll == TAC_COLL_BROADCAST) return "root";
    return coll == TAC_COLL_SEND || coll == TAC_COLL_RECV ? "peer" : NULL;
}

/* Since the communicator was made; null: has not happened. */
static void write_time(tac_json *j, const char *key, uint64_t at,
                       uint64_t origin)
{
    if (at)
        tac_json_i64(j, key, (int64_t)(at - origin));
    else
        tac_json_null(j, key);
}

static void write_record(tac_json *j, const tac__record *e, uint64_t origin)
{
    tac_json_begin_object(j, NULL);
    tac_json_u64(j, "record", e->id);
    tac_json_u64(j, "seq", e->seq);
    tac_json_str(j, "collective", tac_coll_name(e->coll));
    tac_json_str(j, "dtype", tac_dtype_name(e->dtype));
    if (has_op(e->coll)) tac_json_str(j, "op", tac_op_name(e->op));
    if (peer_key(e->coll)) tac_json_i64(j, peer_key(e->coll), e->peer);
    tac_json_u64(j, "count", e->count);
    tac_json_u64(j, "bytes", e->bytes);
    tac_json_u64(j, "tag", e->tag);
    tac_json_str(j, "algorithm", e->algorithm);
    tac_json_str(j, "wire", e->wire);
    tac_json_i64(j, "timeout_ms", e->timeout_ms);
    write_time(j, "created_ns", e->created_ns, origin);
    write_time(j, "started_ns", e->started_ns, origin);
    write_time(j, "completed_ns", e->completed_ns, origin);
    tac_json_str(j, "state", state_name(e->state));
    tac_json_str(j, "status",
                 e->completed_ns ? tac_status_name(e->status) : NULL);
    tac_json_end_object(j);
}

static void write_error(tac_json *j, const tac_comm *c)
{
    char text[TAC__ERROR];
    const tac_status s = tac_comm_error(c, text, sizeof text);
    tac_json_str(j, "status", tac_status_name(s));
    tac_json_str(j, "error", s < 0 ? text : NULL);
}

static void write_head(tac_json *j, const tac_comm *c)
{
    char doing[256];
    tac_json_i64(j, "version", FORMAT_VERSION);
    tac_json_i64(j, "rank", c->rank);
    tac_json_i64(j, "size", c->size);
    tac_json_i64(j, "hosts", c->hosts);
    tac_json_i64(j, "pid", c->peers ? c->peers[c->rank].pid : 0);
    tac_json_str(j, "transport", c->transport->name);
    tac_json_f64(j, "created_unix_s", (double)c->recorder.created_unix * 1e-9);
    tac_json_i64(j, "now_ns",
                 (int64_t)(tac_clock_ns() - c->recorder.created_ns));
    write_error(j, c);
    tac__doing_all(c, doing, sizeof doing);
    tac_json_str(j, "ranks_are", doing);
}

/* Copied, so that nobody waits while the text is made. */
static tac__record *copy_ring(const tac_comm *comm, uint64_t *n,
                              uint64_t *first)
{
    tac__recorder *r = &((tac_comm *)(uintptr_t)comm)->recorder;
    tac__record *copy = malloc((size_t)r->capacity * sizeof *copy);
    if (!copy) return NULL;
    pthread_mutex_lock(&r->lock);
    *n = r->next < r->capacity ? r->next : r->capacity;
    *first = r->next - *n;
    for (uint64_t i = 0; i < *n; i++)
        copy[i] = r->ring[(*first + i) % r->capacity];
    pthread_mutex_unlock(&r->lock);
    return copy;
}

static tac_status write_to(const tac_comm *c, tac_json *j, const char *path)
{
    uint64_t n = 0, lost = 0;
    tac__record *copy = copy_ring(c, &n, &lost);
    if (!copy) return TAC_ERR_NOMEM;
    tac_json_begin_object(j, NULL);
    write_head(j, c);
    tac_json_u64(j, "lost", lost);
    tac_json_begin_array(j, "operations");
    for (uint64_t i = 0; i < n; i++)
        write_record(j, &copy[i], c->recorder.created_ns);
    tac_json_end_array(j);
    tac_json_end_object(j);
    free(copy);
    return tac_json_write_file(j, path);
}

static tac_status dump(const tac_comm *c, const char *path)
{
    tac_json *j = tac_json_create();
    if (!j) return TAC_ERR_NOMEM;
    const tac_status s = write_to(c, j, path);
    tac_json_destroy(j);
    return s;
}

tac_status tac_comm_dump(const tac_comm *c, const char *path)
{
    if (!c || !path)
        return tac_fail(c ? c->ctx : NULL, TAC_ERR_ARG,
                        "tac_comm_dump: no communicator or no path");
    if (!c->recorder.ring)
        return tac_fail(c->ctx, TAC_ERR_STATE,
                        "tac_comm_dump: the communicator was made with its "
                        "recorder off (tac_comm_config.recorder < 0)");
    const tac_status s = dump(c, path);
    if (s < 0)
        return tac_fail(c->ctx, s,
                        "writing the flight recorder to %s failed: %m; check "
                        "the folder and the free space",
                        path);
    return TAC_OK;
}

void tac__recorder_failed(tac_comm *c, int loud)
{
    const char *prefix = c->recorder.dump;
    if (!prefix) return;
    const size_t bytes = strlen(prefix) + 32;
    char *path = malloc(bytes);
    if (!path) return;
    snprintf(path, bytes, "%s.%d.json", prefix, c->rank);
    if (dump(c, path) < 0)
        tac_log(c->ctx, TAC_LOG_WARN,
                "the flight recorder could not be written to %s: %m", path);
    else
        tac_log(c->ctx, loud ? TAC_LOG_INFO : TAC_LOG_DEBUG,
                "flight recorder of rank %d: %s", c->rank, path);
    free(path);
}
