#!/bin/bash
# Plug-ins: one that loads, from each place where it is searched, one of another
# ABI, one that lies about its ABI, one that catches signals, a library that is
# none, and a file that does not exist. $BUILD is the build folder, $SOURCE the
# source tree.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
flags="-std=c11 -fPIC -I$SOURCE/base/include"
if ! command -v "$cc" > /dev/null; then
    echo "skipped: no C compiler ($cc) to build plug-ins with"
    exit 77
fi
# The library may have been built with a sanitizer; so must the program be.
sanitize=$(sed -n 's/^TACIT_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
if [ -n "$sanitize" ]; then
    echo "skipped: the build is sanitized"
    exit 77
fi

cat > "$work/plugin.c" <<'END'
#include "tacit/plugin.h"
static const tac_plugin plugin = {CLAIMED, "example", 0, 0};
TAC_API const tac_plugin *tac_plugin_open(unsigned abi);
const tac_plugin *tac_plugin_open(unsigned abi)
{
    return abi == (ANSWERED) ? &plugin : 0;
}
END
cat > "$work/load.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include "tacit/plugin.h"
int main(int argc, char **argv)
{
    const tac_plugin *p = 0;
    tac_status s = tac_plugin_load(0, argv[argc - 1], &p);
    printf("%s %s", tac_status_name(s), p ? p->name : "-");
    printf(", SIGHUP %s\n",
           signal(SIGHUP, SIG_DFL) == SIG_DFL ? "as before" : "caught");
    return 0;
}
END
make_plugin() {
    $cc $flags -shared "-DCLAIMED=$2" "-DANSWERED=$3" "$work/plugin.c" \
        -o "$work/$1"
}
make_plugin good.so TAC_ABI TAC_ABI
make_plugin newer.so TAC_ABI+6 TAC_ABI+6
make_plugin liar.so TAC_ABI+6 TAC_ABI
echo 'int unrelated;' > "$work/none.c"
$cc $flags -shared "$work/none.c" -o "$work/none.so"
$cc $flags "$work/load.c" "$BUILD/base/libtacit_base.a" -o "$work/load" \
    -ldl -lpthread -lm

failed=0
passed=0
load=$work/load
expect() { # plug-in, expected text on stdout and stderr
    local got
    got=$("$load" "$1" 2>&1)
    if [[ $got == *$2* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1: \"$got\" lacks \"$2\""
    fi
}
expect "$work/good.so" "TAC_OK example"
expect good.so "TAC_OK example" # beside the program
abi=$(sed -n 's/^#define TAC_ABI \([0-9]*\)$/\1/p' \
    "$SOURCE/base/include/tacit/export.h")
expect "$work/newer.so" "TAC_ERR_UNSUPPORTED -"
expect "$work/newer.so" "has ABI number $((abi + 6)), this program $abi"
expect "$work/liar.so" "has ABI number $((abi + 6)), this program $abi"
expect "$work/none.so" "it has no function tac_plugin_open"
mkdir "$work/bin" "$work/elsewhere"
cp "$work/load" "$work/bin/load"
mv "$work/good.so" "$work/above.so"
cp "$work/above.so" "$work/elsewhere/listed.so"
load=$work/bin/load
expect above.so "TAC_OK example" # in the folder above the program's
mkdir -p "$work/prefix/bin" "$work/prefix/lib/tacit" "$work/lone/tacit"
cp "$work/load" "$work/prefix/bin/load"
cp "$work/above.so" "$work/prefix/lib/tacit/installed.so"
cp "$work/load" "$work/lone/load"
cp "$work/above.so" "$work/lone/tacit/below.so"
load=$work/prefix/bin/load
expect installed.so "TAC_OK example" # ../lib/tacit
load=$work/lone/load
expect below.so "TAC_OK example" # tacit/, where a library is installed
load=$work/bin/load
export TACIT_PLUGIN_PATH=/nowhere::$work/elsewhere
expect listed.so "TAC_OK example"
unset TACIT_PLUGIN_PATH
expect listed.so "can't load plug-in listed.so"
load=$work/load

# One whose libraries catch signals as they are loaded: put back.
cat > "$work/catches.c" <<'END'
#include <signal.h>
static void caught(int n) { (void)n; }
__attribute__((constructor)) static void start(void) { signal(SIGHUP, caught); }
END
$cc $flags -D_GNU_SOURCE -shared -DCLAIMED=TAC_ABI -DANSWERED=TAC_ABI \
    "$work/plugin.c" "$work/catches.c" -o "$work/catches.so"
expect "$work/catches.so" "TAC_OK example, SIGHUP as before"

expect missing.so "can't load plug-in missing.so: missing.so: cannot open"
expect "$work/none.c" "TAC_ERR_UNSUPPORTED -"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
