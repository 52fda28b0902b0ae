/* mpi.h: what the files of the mpi transport share. */
#ifndef TACIT_COMM_MPI_IMPL_H
#define TACIT_COMM_MPI_IMPL_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "boot.h"
#include "tacit/transport.h"

/* Our duplicate of the caller's MPI_Comm, shared by a communicator and all its
 * children; each child has tags of its own. */
typedef struct tac__mpi_world {
    tac_context *ctx;
    MPI_Comm comm;
    int rank;
    int level;    /* of thread support */
    int tag_ub;   /* the largest tag */
    int next_tag; /* first one that no communicator of this rank has used */
    _Atomic int refs;
    _Atomic int sick;      /* messages are under way that will never complete */
    pthread_mutex_t *lock; /* the context's; NULL under MPI_THREAD_MULTIPLE */
} tac__mpi_world;

/* What a rank tells all others: that it gives up (status < 0, text), or only
 * what it is doing (INPROGRESS). */
typedef struct tac__mpi_news {
    uint64_t doing; /* tac_transport.tell's word; 0: none */
    int32_t status;
    char text[TAC__ERROR];
} tac__mpi_news;

typedef struct tac__mpi_message {
    MPI_Request request;
    int failed;                    /* seen by test_many */
    struct tac__mpi_message *next; /* in the store */
} tac__mpi_message;

/* One tac_comm's use of the world. */
typedef struct tac__mpi_link {
    tac__mpi_world *world;
    int rank, size, tag;
    int *peer; /* [size] rank in the world */
    tac__mpi_message *store;
    uint64_t polled_ns;
    tac__mpi_news told;     /* by a peer */
    tac__mpi_news tell;     /* to all */
    tac__mpi_news say;      /* the same of a rank that goes on */
    MPI_Request *telling;   /* [size] */
    MPI_Request *saying;    /* [size] */
    _Atomic uint64_t *word; /* [size] latest doing that was heard */
    _Atomic int aborting;
} tac__mpi_link;

/* Around every MPI call. */
void tac__mpi_enter(tac__mpi_world *w);
void tac__mpi_leave(tac__mpi_world *w);
/* The context's lock; NULL: no memory. */
pthread_mutex_t *tac__mpi_lock_of(tac_context *ctx);

/* Is MPI initialised and not yet finalised? */
int tac__mpi_alive(void);

extern const tac_transport tac__transport_mpi;

/* Telling the peers that a rank gives up, or what it waits in (mpi_news.c). */
void tac__mpi_tell(void *state, tac_status s, const char *text);
tac_status tac__mpi_hear(void *state, const char **text);
void tac__mpi_say(void *state, uint64_t word);
uint64_t tac__mpi_word(void *state, int r);
/* 1: all that was told has left; 0: not within 100 ms. */
int tac__mpi_flush(tac__mpi_link *l);

/* The bootstrap's all-gather over the world (mpi_boot.c). */
tac_oob tac__mpi_oob(tac__mpi_world *w);

#endif
