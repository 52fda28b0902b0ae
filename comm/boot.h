/* boot.h: the bootstrap of a communicator.
 *
 * While a communicator is made, its ranks talk through the caller's all-gather
 * only. Every rank makes the same exchanges in the same order; a rank that has
 * failed still takes part, until the next agreement tells all. */
#ifndef TACIT_COMM_BOOT_H
#define TACIT_COMM_BOOT_H

#include <stdint.h>

#include "tacit/comm.h"

#define TAC__TEXT  256
#define TAC__ERROR 768 /* the text of a communicator's failure */

/* What a rank tells the others first. */
typedef struct tac__hello {
    uint64_t magic;
    uint32_t abi, version;
    uint64_t config; /* hash of what must be equal */
    uint64_t host;   /* equal: the ranks could share memory */
    int64_t pid;
    int32_t rank, size;
} tac__hello;

struct tac__boot;

/* What a transport in a plug-in, which links nothing of ours, may call. */
typedef struct tac__boot_ops {
    tac_status (*exchange)(struct tac__boot *b, const void *send, void *recv,
                           size_t bytes);
    tac_status (*agree)(struct tac__boot *b, tac_status mine);
    tac_status (*note)(struct tac__boot *b, tac_status s, const char *fmt, ...)
        TAC_PRINTF(3, 4);
    void *(*slot)(tac_context *ctx, const void *key, tac_slot_make *make,
                  tac_slot_free *destroy, void *arg);
    void (*log)(tac_context *ctx, tac_log_level level, const char *fmt, ...)
        TAC_PRINTF(3, 4);
} tac__boot_ops;

typedef struct tac__boot {
    const tac__boot_ops *ops;
    tac_context *ctx;
    int rank, size;
    const tac_oob *oob; /* borrowed; NULL for a world of one */
    int timeout_ms;
    int reports; /* the all-gather reports its own failures */
    uint64_t deadline_ns;
    tac__hello *peers;    /* [size], after tac__boot_hello */
    int hosts, processes; /* distinct ones */
    char *verdicts;       /* [size * TAC__TEXT], scratch of agree */
    char text[TAC__TEXT]; /* why: this rank's before, all ranks' after agree */
} tac__boot;

tac_status tac__boot_init(tac__boot *b, tac_context *ctx, int rank, int size,
                          const tac_oob *oob, int timeout_ms);
void tac__boot_free(tac__boot *b);

/* All-gather of at most 4096 bytes, bounded by the deadline. A failure here
 * (TIMEOUT, or the callback's) is this rank's own and reported here. */
tac_status tac__boot_exchange(tac__boot *b, const void *send, void *recv,
                              size_t bytes);
/* Shares a verdict: OK if all are; else the lowest failed rank's status, its
 * text in b->text. Quiet: whoever gives up reports. */
tac_status tac__boot_agree(tac__boot *b, tac_status mine);
/* Sets b->text, and returns s. */
tac_status tac__boot_note(tac__boot *b, tac_status s, const char *fmt, ...)
    TAC_PRINTF(3, 4);
/* Exchanges and compares hellos: MISMATCH on all ranks if they differ. */
tac_status tac__boot_hello(tac__boot *b, uint64_t config_hash);

/* Has rank r taken part in the exchange that this rank waits for? -1: `oob` is
 * not a thread group's, so nobody knows. */
int tac__threads_called(const tac_oob *oob, int r);

/* Equal for processes that could share memory: same boot of the same kernel,
 * same namespace of process ids. */
uint64_t tac__host_id(void);

#endif
