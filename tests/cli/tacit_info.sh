#!/bin/bash
# tacit_info as its user meets it: sections, JSON, mistakes.
set -euo pipefail

info=${BUILD:?set BUILD to the build folder}/tacit_info
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

fail() {
    echo "FAIL: $*"
    head -n 40 "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

run() {
    local want=$1 rc=0
    shift
    timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc $rc, not $want: $*"
}

has() {
    grep -qE -- "$2" "$1" || fail "no /$2/ in $1"
}

echo "- the report"
run 0 "$info" --json "$work/i.json"
has "$work/out" '^tacit [0-9]+\.[0-9]+\.[0-9]+'
has "$work/out" '^  \[x\] thread '
has "$work/out" '^  \[.\] ucx '
has "$work/out" '^  \[ \] nccl +[a-z]'
has "$work/out" '^  \[x\] allreduce='
has "$work/out" '^  \[x\] cpu, ref '
has "$work/out" 'fashion-mnist'
has "$work/out" '--bucket-mb=25'
[ ! -s "$work/err" ] || fail "something on stderr"

echo "- what is not there says why"
if grep -E '^  \[ \] ' "$work/out" | grep -vqE '^  \[ \] [^ ]+( [^ ]+)? +.*[a-z]{2}'
then
    fail "an entry that is missing without a reason"
fi

echo "- JSON"
for key in version build machine shared_memory transports algorithms devices \
    data ddp_train_options features cpus_usable dev_shm_free_mib why_not; do
    has "$work/i.json" "\"$key\":"
done
run 0 "$info" --quiet
[ ! -s "$work/out" ] || fail "--quiet prints"

echo "- help and mistakes"
run 0 "$info" --help
run 0 "$info" --version
run 0 "$info" --print-config
run 2 "$info" --jsn x
has "$work/err" json
run 1 "$info" --json "$work/missing/x.json"
has "$work/err" 'missing/x\.json'
echo "passed"
