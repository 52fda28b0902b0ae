/* The command line as a shell reads it, and the launcher's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs_impl.h"

/* `text` and one more word as a shell reads it; frees text. */
static char *add_word(char *text, const char *word)
{
    const int plain = word[0] && !strpbrk(word, " \t\n\"'$;|&*?<>()[]{}#~!`\\");
    char *more = runs_format(plain ? "%s %s" : "%s '", text, word);

    free(text);
    if (plain) return more;
    for (text = more; *word && text; word++) {
        more = runs_format(*word == '\'' ? "%s'\\'%c" : "%s%c", text, *word);
        free(text);
        text = more;
    }
    if (!text) return NULL;
    more = runs_format("%s'", text);
    free(text);
    return more;
}

char *runs_command_line(int argc, char **argv)
{
    char *text = runs_format("%s", argv[0]);

    for (int i = 1; i < argc && text; i++) text = add_word(text, argv[i]);
    return text;
}

char *runs_launch(const char *launch, int64_t ranks)
{
    const char *hole = strstr(launch, "{}");

    if (!hole) return strdup(launch);
    return runs_format("%.*s%lld%s", (int)(hole - launch), launch,
                       (long long)ranks, hole + 2);
}
