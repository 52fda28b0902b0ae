/* N ranks as N threads of this process: no launcher, no MPI. */
#include "launch_impl.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A rank that has failed waits so long for the others before it speaks. */
enum { PATIENCE_S = 5 };

typedef struct team {
    const tac__world *world;
    tac_thread_group *group;
    struct member *members;
    int size, done;
    int spoken;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} team;

typedef struct member {
    tac__one_rank rank;
    team *team;
    pthread_t thread;
} member;

static tac_status connect_thread(tac__one_rank *self, tac_context *ctx,
                                 tac_comm **out)
{
    return tac_comm_create_threads(ctx, self->connect_arg, self->rank,
                                   &self->world->config->comm, out);
}

/* One message, whoever comes first to say it. Under the lock. */
static tac_status speak(team *t)
{
    tac__fate *fates = calloc((size_t)t->size, sizeof *fates);
    int failed = 0, speaker = -1;

    if (!fates) return TAC_ERR_NOMEM;
    for (int r = 0; r < t->size; r++) fates[r] = t->members[r].rank.fate;
    speaker = tac__launch_speaker(fates, t->size, &failed);
    free(fates);
    if (speaker < 0) return TAC_OK;
    if (!t->spoken) tac__launch_speak(&t->members[speaker].rank, failed);
    t->spoken = 1;
    return (tac_status)t->members[speaker].rank.fate.status;
}

static void finish(member *m, const tac__one_rank *result)
{
    team *t = m->team;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&t->lock);
    m->rank = *result; /* now others may read it */
    t->done++;
    pthread_cond_broadcast(&t->changed);
    while (m->rank.fate.status < 0 && t->done < t->size)
        if (pthread_cond_timedwait(&t->changed, &t->lock, &until) == ETIMEDOUT)
            break;
    if (m->rank.fate.status < 0) speak(t);
    pthread_mutex_unlock(&t->lock);
}

static void *thread_main(void *arg)
{
    member *m = arg;
    tac__one_rank *own = malloc(sizeof *own);

    if (!own) abort(); /* two kilobytes, at the start of everything */
    *own = (tac__one_rank){.world = m->team->world,
                           .rank = (int)(m - m->team->members),
                           .size = m->team->size,
                           .local_ranks = m->team->size,
                           .connect = connect_thread,
                           .connect_arg = m->team->group};
    tac__launch_rank(own);
    finish(m, own);
    free(own);
    return NULL;
}

/* Starts ranks 1.., runs rank 0 here, waits for all. */
static int run_all(team *t)
{
    int started = 1;

    for (; started < t->size; started++)
        if (pthread_create(&t->members[started].thread, NULL, thread_main,
                           &t->members[started]) != 0)
            break;
    if (started < t->size) {
        fprintf(stderr,
                "%s: cannot start thread rank %d of %d; use fewer --ranks\n",
                t->world->program, started, t->size);
        exit(1); /* the ranks that run would wait for it */
    }
    thread_main(&t->members[0]);
    for (int r = 1; r < t->size; r++) pthread_join(t->members[r].thread, NULL);
    return tac__launch_code(t->world, speak(t));
}

static int run_team(team *t)
{
    int code;

    for (int r = 0; r < t->size; r++) t->members[r].team = t;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    code = run_all(t);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    return code;
}

int tac__launch_threads(const tac__world *w)
{
    team t = {.world = w, .size = w->config->ranks > 0 ? w->config->ranks : 1};
    int code = 1;

    if (w->config->refused < 0) {
        fprintf(stderr, "%s: %s\n", w->program, w->config->message);
        return tac_launch_exit_code(w->config->refused);
    }
    if (w->config->print) {
        w->config->print(w->config);
        return 0;
    }
    t.members = calloc((size_t)t.size, sizeof *t.members);
    if (!t.members || tac_thread_group_create(t.size, &t.group) < 0)
        fprintf(stderr, "%s: no memory for %d ranks\n", w->program, t.size);
    else
        code = run_team(&t);
    tac_thread_group_destroy(t.group);
    free(t.members);
    return code;
}
