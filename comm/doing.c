/* doing.c: what the ranks are doing, as words and in words (recorder.h).
 *
 * The word: sequence number + 1 in the upper 48 bits, then the collective, and
 * in the lowest bit whether it is finished. A rank that starts a collective has
 * finished all before it. */
#include <stdio.h>
#include <string.h>

#include "comm_impl.h"

#define SEQ_SHIFT  16
#define COLL_SHIFT 1

uint64_t tac__doing_word(tac_coll coll, uint64_t seq, int finished)
{
    return (seq + 1) << SEQ_SHIFT | (uint64_t)coll << COLL_SHIFT |
           (uint64_t)(finished != 0);
}

static uint64_t seq_of(uint64_t word)
{
    return (word >> SEQ_SHIFT) - 1;
}

static tac_coll coll_of(uint64_t word)
{
    return (tac_coll)((word >> COLL_SHIFT) & 0x7f);
}

uint64_t tac__doing_of(const tac_comm *c, int r)
{
    const tac_transport *t = c->transport;
    return r == c->rank ? atomic_load(&((tac_comm *)(uintptr_t)c)->doing)
           : t->heard   ? t->heard(c->link, r)
                        : 0;
}

int tac__doing_entered(const tac_comm *c, int r, uint64_t seq)
{
    const uint64_t word = tac__doing_of(c, r);
    return word != 0 && seq_of(word) >= seq;
}

int tac__doing_finished(const tac_comm *c, int r, uint64_t seq)
{
    const uint64_t word = tac__doing_of(c, r);
    if (word == 0) return 0;
    return seq_of(word) > seq || (seq_of(word) == seq && (word & 1u));
}

/* The words of peers are true at once, or only what they have told. */
static int knows_all(const tac_comm *c)
{
    return c->size == 1 || (c->transport->flags & TAC_TRANSPORT_TELLS) != 0;
}

static void say(const tac_comm *c, uint64_t word, int several, int mine,
                char *buf, size_t bytes)
{
    const char *are = several ? "are" : "is", *have = several ? "have" : "has";
    if (word == 0 && (mine || knows_all(c)))
        snprintf(buf, bytes, "%s entered nothing yet", have);
    else if (word == 0)
        snprintf(buf, bytes, "%s told nothing", have);
    else if (word & 1u)
        snprintf(buf, bytes, "%s finished %s #%llu and entered nothing since",
                 have, tac_coll_name(coll_of(word)),
                 (unsigned long long)seq_of(word));
    else
        snprintf(buf, bytes, "%s in %s #%llu", are,
                 tac_coll_name(coll_of(word)),
                 (unsigned long long)seq_of(word));
}

void tac__doing_mine(const tac_comm *c, char *buf, size_t bytes)
{
    char what[96];
    say(c, tac__doing_of(c, c->rank), 0, 1, what, sizeof what);
    snprintf(buf, bytes, "rank %d %s", c->rank, what);
}

/* Adds text while there is room; the position after it. */
static size_t add(char *buf, size_t bytes, size_t at, const char *text)
{
    if (at >= bytes) return at;
    return at + (size_t)snprintf(buf + at, bytes - at, "%s", text);
}

void tac__name_ranks(const unsigned char *in, int size, char *buf, size_t bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int r = 0; r < size; r++) {
        char part[48];
        const int first = r;
        if (!in[r]) continue;
        while (r + 1 < size && in[r + 1]) r++;
        const char *comma = at ? "," : "";
        if (r - first < 2) /* "1, 2" is no longer than "1-2" */
            r = first;
        if (r == first)
            snprintf(part, sizeof part, "%s %d", comma, r);
        else
            snprintf(part, sizeof part, "%s %d-%d", comma, first, r);
        if (at + strlen(part) + 6 > bytes) {
            add(buf, bytes, at, ", ...");
            return;
        }
        at = add(buf, bytes, at, part);
    }
}

/* Words are read once: they change meanwhile. */
typedef struct words {
    int n;
    uint64_t word[TAC__RANKS_SHOWN];
    unsigned char told[TAC__RANKS_SHOWN];
} words;

/* The ranks of this word, as a clause. */
static size_t add_group(const tac_comm *c, words *w, uint64_t word, char *buf,
                        size_t bytes, size_t at)
{
    unsigned char in[TAC__RANKS_SHOWN] = {0};
    char ranks[96], what[96], clause[224];
    int several = 0, mine = 0;
    for (int r = 0; r < w->n; r++) {
        if (w->told[r] || w->word[r] != word) continue;
        in[r] = w->told[r] = 1;
        several++;
        mine |= r == c->rank;
    }
    tac__name_ranks(in, w->n, ranks, sizeof ranks);
    say(c, word, several > 1, mine && several == 1, what, sizeof what);
    snprintf(clause, sizeof clause, "%s%s%s %s", at ? ", " : "",
             several > 1 ? "ranks" : "rank", ranks, what);
    return add(buf, bytes, at, clause);
}

void tac__doing_all(const tac_comm *c, char *buf, size_t bytes)
{
    words w = {.n = c->size < TAC__RANKS_SHOWN ? c->size : TAC__RANKS_SHOWN};
    size_t at = 0;
    buf[0] = '\0';
    for (int r = 0; r < w.n; r++) w.word[r] = tac__doing_of(c, r);
    for (int r = 0; r < w.n; r++)
        if (!w.told[r]) at = add_group(c, &w, w.word[r], buf, bytes, at);
}
