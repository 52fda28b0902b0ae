#!/bin/bash
# examples/04 and 05: arrays added up by threads, by processes that find each
# other by a means of their own, and under mpirun; a trainer that knows nothing
# of tacit, and the few lines that make it parallel: they are few; averaging
# gradients finds what the trainer alone finds, averaging parameters learns as
# well. Needs $BUILD and $SOURCE.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
examples=$build/examples
most_lines=15
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# out PROGRAM...: what it prints; its messages are a failure.
out() {
    timeout 100 "$@" >"$work/out" 2>"$work/err" || {
        cat "$work/out" "$work/err" >&2
        fail "$*: rc is not 0"
    }
    [ ! -s "$work/err" ] || fail "$*: $(cat "$work/err")"
    cat "$work/out"
}

has_mpi=0
if [ -e "$build/comm/libtacit_comm_mpi.a" ] && command -v mpirun >/dev/null; then
    has_mpi=1
fi

expect() { # TEXT PROGRAM...
    local text=$1
    shift
    out "$@" >/dev/null
    grep -qF "$text" "$work/out" || fail "$*: no '$text' in $(cat "$work/out")"
}

expect "4 ranks, 1000003 elements, transport thread" "$examples/04_allreduce"
expect ": 0 wrong" "$examples/04_allreduce" 3
expect "1 ranks, 1000003 elements, transport self" "$examples/04_allreduce" 1
expect "5 processes, transport shm: the sum of 1 to 5 is 15" \
    "$examples/04_allreduce_oob" 5
expect "1 processes, transport self" "$examples/04_allreduce_oob" 1
[ "$has_mpi" = 0 ] || expect "3 ranks, 1000003 elements, transport shm" \
    mpirun -np 3 "$examples/04_allreduce"
for mistake in 0 65 x "1 2"; do
    rc=0
    # shellcheck disable=SC2086
    "$examples/04_allreduce" $mistake >/dev/null 2>"$work/err" || rc=$?
    [ "$rc" -eq 2 ] && grep -q '^usage: ' "$work/err" || fail "$mistake: rc $rc"
done

# Lines of the difference, both sides.
for way in comm localsgd; do
    diff "$source_dir/examples/05_embed_trainer.c" \
        "$source_dir/examples/05_embed_trainer_$way.c" >"$work/diff" || true
    lines=$(grep -c '^[<>]' "$work/diff")
    [ "$lines" -le "$most_lines" ] || fail "$way needs $lines lines"
    [ "$lines" -ge 5 ] || fail "$way: diff was misread"
    echo "$way: $lines lines of difference"
done
! grep -q '"tacit/' "$source_dir/examples/05_embed_trainer.c" ||
    fail "05_embed_trainer.c includes tacit"
! nm "$examples/05_embed_trainer" | grep -q ' [Tt] tac_' ||
    fail "05_embed_trainer links tacit"

# Prints loss, accuracy, length.
numbers() {
    sed -nE 's/^test loss ([0-9.]+), accuracy ([0-9.]+) %, .* length ([0-9.]+)$/\1 \2 \3/p'
}

near() { # A B LIMIT
    awk -v a="$1" -v b="$2" -v limit="$3" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(d <= limit) }' ||
        fail "$1 is not within $3 of $2"
}

out "$examples/05_embed_trainer" | numbers >"$work/plain"
read -r loss accuracy length <"$work/plain"
awk -v a="$accuracy" 'BEGIN { exit !(a > 90) }' || fail "accuracy $accuracy"

same() { # as the trainer alone
    out "$@" | numbers >"$work/other"
    [ "$(wc -l <"$work/other")" -eq 1 ] || fail "$*: not one line of numbers"
    read -r l a p <"$work/other"
    near "$l" "$loss" 0.00001
    near "$p" "$length" 0.00001
    near "$a" "$accuracy" 0.1
}

as_well() {
    out "$@" | numbers >"$work/other"
    [ "$(wc -l <"$work/other")" -eq 1 ] || fail "$*: not one line of numbers"
    read -r l a p <"$work/other"
    near "$a" "$accuracy" 1
    [ "$l" != "$loss" ] || fail "$*: averaging changes nothing"
}

same "$examples/05_embed_trainer_comm"
same env TACIT_RANKS=4 "$examples/05_embed_trainer_comm"
as_well env TACIT_RANKS=4 "$examples/05_embed_trainer_localsgd"
if [ "$has_mpi" = 1 ]; then
    same mpirun -np 2 "$examples/05_embed_trainer_comm"
    as_well mpirun -np 2 "$examples/05_embed_trainer_localsgd"
fi
echo "ok"
