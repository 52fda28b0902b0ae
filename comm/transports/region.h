/* region.h: memory that all ranks of a communicator see.
 *
 * Each rank makes one region of its own and maps everybody's, at addresses that
 * differ between processes. Regions are populated when made, so running out of
 * memory is an error here and never a signal later. Nothing has a name for
 * longer than the mapping takes, so nothing survives a SIGKILL. */
#ifndef TACIT_COMM_REGION_H
#define TACIT_COMM_REGION_H

#include "boot.h"

typedef enum tac__region_kind {
    TAC__REGION_PRIVATE = 0, /* ranks are threads: one address space */
    TAC__REGION_MEMFD,       /* anonymous, opened by peers through /proc */
    TAC__REGION_POSIX        /* /dev/shm, unlinked when all have mapped */
} tac__region_kind;

typedef struct tac__regions {
    tac__region_kind kind;
    int rank, size;
    size_t bytes; /* of each rank's, without the header page */
    char **base;  /* [size], page aligned, zeroed at first */
} tac__regions;

/* Collective over the boot. `threads`: all ranks are in this process. All ranks
 * get the same verdict, reason in b->text. Errors: NOMEM with the bytes needed,
 * UNSUPPORTED. */
tac_status tac__regions_share(tac__boot *b, int threads, size_t bytes,
                              tac__regions *out);
/* Local. The memory itself goes with its last user. */
void tac__regions_release(tac__regions *g);

#define TAC__REGION_HEADER 4096u

/* How one rank makes a region (region_make.c) and maps a peer's. */
typedef struct tac__ticket {
    int64_t pid, fd;
    uint64_t nonce;
    uint64_t address; /* of the header, for ranks in the same process */
    char name[48];    /* POSIX */
    int32_t status;
    char text[132]; /* why not */
} tac__ticket;

/* Populating more than there is would wake the kernel's out-of-memory killer
 * rather than fail, so that is refused: before any rank allocates. */
tac_status tac__region_check_memory(tac__boot *b, size_t bytes);
tac_status tac__region_make(tac__boot *b, tac__region_kind kind, size_t bytes,
                            tac__ticket *t, char **header);
tac_status tac__region_map(tac__boot *b, tac__region_kind kind, size_t bytes,
                           const tac__ticket *t, char **header);
void tac__region_unmap(tac__region_kind kind, char *header, size_t bytes);
/* After an agreed failure: nobody uses it. */
void tac__region_discard(tac__region_kind kind, char *header, size_t bytes,
                         int own);
/* Closes the descriptor and removes the name: after all have mapped. */
void tac__region_seal(tac__region_kind kind, const tac__ticket *t);

#endif
