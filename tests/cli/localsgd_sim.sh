#!/bin/bash
# localsgd_sim as its user meets it: the published tables, one model, networks,
# keys of its JSON, a trace, mistakes and exit codes.
set -euo pipefail

sim=${BUILD:?set BUILD to the build folder}/bench/localsgd_sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

fail() {
    echo "FAIL: $*"
    head -n 60 "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

# run RC COMMAND...: output in $work/out and $work/err.
run() {
    local want=$1 rc=0
    shift
    timeout 120 "$@" >"$work/out" 2>"$work/err" || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc $rc, not $want: $*"
}

has() {
    grep -q -- "$2" "$1" || fail "no '$2' in $1"
}

hasnt() {
    ! grep -q -- "$2" "$1" || fail "'$2' in $1"
}

# Numbers in the line that counts cells: exact, all, within one cell, further.
tally() {
    sed -n 's/^= \([0-9]*\) of \([0-9]*\) exact.*below: \([0-9]*\) within one cell; ! \([0-9]*\) further$/\1 \2 \3 \4/p' \
        "$work/out"
}

echo "- help and configuration"
run 0 "$sim" --help
has "$work/out" --sync-every
has "$work/out" 'is fitted: it reproduces'
run 0 "$sim" --version
run 0 "$sim" --print-config --bits 4
has "$work/out" '^bits = 4 .*command line'
printf '[sim]\nbits = 3\nmethod = dp\n' >"$work/a.ini"
run 0 "$sim" --config "$work/a.ini" --print-config
has "$work/out" '^bits = 3'

echo "- the table of Streaming DiLoCo"
run 0 "$sim" --table streaming-diloco --json "$work/t.json"
has "$work/out" '^16 bits a parameter (FP4: 4), 1000 steps'
hasnt "$work/out" FITTED
read -r exact all near far < <(tally)
((all == 75 && near >= 74 && near + far == 75)) ||
    fail "16 bits: $exact exact, $near of $all within one cell"
for key in model method sync_every target gbps published; do
    [ "$(grep -o "\"$key\":" "$work/t.json" | wc -l)" -eq 75 ] ||
        fail "not 75 times $key"
done
has "$work/t.json" '"model":"100B","method":"diloco","sync_every":100,"target":50,'
has "$work/t.json" '"published":184.2'
run 0 "$sim" --table streaming-diloco --bits 13.4
has "$work/out" 'FITTED to this table'
read -r exact all near far < <(tally)
((exact >= 67 && near == 75 && far == 0)) ||
    fail "13.4 bits: $exact exact, $near of $all within one cell"
run 0 "$sim" --table streaming-diloco --quiet
[ ! -s "$work/out" ] || fail "--quiet prints"

echo "- the table of eager updates, as measured"
run 0 "$sim" --table eager --json "$work/e.json"
read -r exact all near far < <(tally)
[ "$all" -eq 45 ] || fail "$all cells"
has "$work/e.json" '"method":"1-outer-step+fp4","sync_every":100,'

echo "- one model"
# 0.5 s of compute and 8 Gbit, one layer: 49 % need 15.4 Gbit/s; the grid has
# 13.3 and 16.0. All of it needs infinitely many.
run 0 "$sim" --method dp --layers 1 --params 1e9 --bits 8 --step-seconds 0.5 \
    --targets 49,99.99999 --json "$work/m.json"
has "$work/out" '^1B: '
has "$work/out" ' 49 % *16.0$'
has "$work/out" ' never$'
has "$work/m.json" '"model":"1B","method":"dp","sync_every":1,"target":49,"gbps":15.9'
has "$work/m.json" '"gbps":null'
run 0 "$sim" --params 124e6 --model mine --method streaming --overlap 1 \
    --json "$work/m.json"
has "$work/out" '^mine: .*streaming every 100, overlap 1, 16 bits'
has "$work/m.json" '"model":"mine","method":"streaming","sync_every":100,"target":99,'
run 0 "$sim" --bits 13.4
has "$work/out" '13.4 bits a parameter (fitted)'

run 0 "$sim" --sync-every 500
has "$work/out" ', 5000 steps'

echo "- networks"
run 0 "$sim" --method local --sync-every 4 --codec none --params 1e6 \
    --layers 4 --sending after-step --topology ring --workers 4 --steps 8 \
    --network all --json "$work/n.json"
[ "$(grep -c '%' "$work/out")" -eq 6 ] || fail "not six networks"
# 10 times 0.1 s, twice 1.5 x 32 Mbit at 1 Gbit/s and 6 hops of 0.1 ms.
has "$work/n.json" '"gbps":1,"network":"eth-1g","latency_s":0.0001,"utilisation":0.89'
has "$work/n.json" '"bits_sent":64000000,"bits_link":96000000,'
run 0 "$sim" --bandwidth 100 --up-bandwidth 10 --latency 0.001 --jitter 0.001 \
    --straggler 1.5 --straggler-share 0.1 --workers 10000 \
    --levels 8:10,10000:100 --trace "$work/trace.json" --trace-steps 12
has "$work/out" '^- *10 '
has "$work/trace.json" '"a slow worker"'
has "$work/trace.json" '"channel of level 1"'
run 0 "$sim" --network eth-10g,wan-100m
[ "$(grep -c '%' "$work/out")" -eq 2 ] || fail "not two networks"

echo "- mistakes"
# mistake PATTERN OPTION...: rc 2, one line that says what to do.
mistake() {
    local pattern=$1
    shift
    run 2 "$sim" "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $*"
    has "$work/err" "$pattern"
}
mistake 'sync-every' --sync-evry 3
mistake 'streaming-diloco' --table diloco
mistake 'eth-1g, wan-100m' --network ethernet
mistake 'with commas' --targets 50,x
mistake 'up to 100' --targets 101
mistake 'give one' --network eth-1g --bandwidth 3
mistake 'by --bandwidth' --up-bandwidth 3
mistake 'WORKERS:STEPS' --levels 8x10
mistake 'it must have all' --levels 2:1,4:10 --workers 8
mistake 'levels are for' --method dp --levels 2:1
mistake 'give --bandwidth' --trace "$work/x.json"
mistake 'leave out --table' --table eager --trace "$work/x.json"
mistake 'name one' --network all --trace "$work/x.json"
mistake 'topk' --codec zip
mistake 'a delay of 200' --overlap 200
run 1 "$sim" --json /nowhere/x.json
has "$work/err" "can't write /nowhere/x.json"

echo "localsgd_sim: ok"
