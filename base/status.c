/* status.c: texts of the status list, and where failed assertions end. */
#undef NDEBUG /* tac_assert_failed exists in every build: tests call it */
#include "tacit/status.h"

#include <stdio.h>
#include <stdlib.h>

const char *tac_status_name(tac_status s)
{
    switch (s) {
#define TAC_STATUS_NAME(name, value, text, remedy) \
    case name: return #name;
        TAC_STATUS_LIST(TAC_STATUS_NAME)
#undef TAC_STATUS_NAME
    }
    return "TAC_ERR_UNKNOWN";
}

const char *tac_status_text(tac_status s)
{
    switch (s) {
#define TAC_STATUS_TEXT(name, value, text, remedy) \
    case name: return text;
        TAC_STATUS_LIST(TAC_STATUS_TEXT)
#undef TAC_STATUS_TEXT
    }
    return "unknown status";
}

const char *tac_status_remedy(tac_status s)
{
    switch (s) {
#define TAC_STATUS_REMEDY(name, value, text, remedy) \
    case name: return remedy;
        TAC_STATUS_LIST(TAC_STATUS_REMEDY)
#undef TAC_STATUS_REMEDY
    }
    return "please report it: no function of tacit returns this value";
}

void tac_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: a caller's error: %s does not hold\n", file, line,
            cond);
    abort(); /* debug builds only, like assert() */
}
