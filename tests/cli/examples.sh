#!/bin/bash
# The programs of examples/: 06_localsgd links localsgd/, comm/ and base/ alone;
# its workers with H = 1 find what one worker with the whole batch finds, which
# is synchronous training; a larger H sends as many fewer bytes and learns about
# as well; mistakes are told. Needs $BUILD.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    exit 1
}

# cached NAME: a variable of the build's configuration.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

# As docs/localsgd.md says, in strict C11, without the build system.
compile() {
    local flags=() libs=() name
    [ -z "$(cached TACIT_SANITIZE)" ] || flags=("-fsanitize=$(cached TACIT_SANITIZE)")
    for name in localsgd comm base; do
        flags+=("-I$source_dir/$name/include")
        libs+=("$build/$name/libtacit_$name.a")
    done
    "$(cached CMAKE_C_COMPILER)" -std=c11 -pedantic -Wall -Wextra -Werror -O1 \
        "${flags[@]}" -o "$work/own" "$source_dir/examples/06_localsgd.c" \
        "${libs[@]}" -lm -pthread >"$work/log" 2>&1 || {
        head -n 20 "$work/log"
        fail "06_localsgd.c does not compile or link by hand"
    }
}

# learn WORKERS H: prints synchronisations, bytes, test loss, accuracy.
learn() {
    timeout 60 "$work/own" "$@" >"$work/out" 2>"$work/err" || {
        cat "$work/out" "$work/err"
        fail "06_localsgd $*: rc is not 0"
    }
    [ ! -s "$work/err" ] || fail "messages: $(cat "$work/err")"
    sed -nE 's/.* ([0-9]+) synchronisations, ([0-9]+) bytes .* loss ([0-9.]+), accuracy ([0-9.]+) %$/\1 \2 \3 \4/p' \
        "$work/out"
}

# near A B LIMIT: |A - B| <= LIMIT.
near() {
    awk -v a="$1" -v b="$2" -v limit="$3" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(d <= limit) }' ||
        fail "$1 is not within $3 of $2"
}

compile
[ -x "$build/examples/06_localsgd" ] || fail "the build has no 06_localsgd"

read -r syncs bytes loss accuracy < <(learn 1 1)
[ "$syncs" -eq 320 ] || fail "$syncs synchronisations with H = 1"
# 105 parameters of four bytes each time.
[ "$bytes" -eq $((105 * 4 * 320)) ] || fail "$bytes bytes"
awk -v a="$accuracy" 'BEGIN { exit !(a > 75) }' || fail "accuracy $accuracy"

# 3 and 5 do not divide the batch.
for workers in 2 3 5 8; do
    read -r s b l a < <(learn "$workers" 1)
    [ "$s $b" = "$syncs $bytes" ] || fail "$workers workers: $s syncs, $b bytes"
    near "$l" "$loss" 0.00002
    near "$a" "$accuracy" 0.1
done

read -r s b l a < <(learn 4 16)
[ "$s" -eq 20 ] && [ "$b" -eq $((bytes / 16)) ] || fail "H = 16: $s syncs, $b bytes"
near "$a" "$accuracy" 1
[ "$l" != "$loss" ] || fail "H = 16 changes nothing"
# The end is synchronised, also where H does not divide the steps.
read -r s b l a < <(learn 4 100)
[ "$s" -eq 4 ] || fail "H = 100: $s synchronisations, not 4"
read -r s b l a < <(learn 2 1000)
[ "$s" -eq 1 ] || fail "H = 1000: $s synchronisations, not 1"

for mistake in "0" "65" "4 0" "1 1 1"; do
    rc=0
    # shellcheck disable=SC2086
    "$work/own" $mistake >"$work/out" 2>"$work/err" || rc=$?
    [ "$rc" -eq 2 ] && grep -q '^usage: ' "$work/err" || fail "$mistake: rc $rc"
done
echo "ok"
