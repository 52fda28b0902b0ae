#!/bin/bash
# scripts/soak localsgd: its options, and a tiny run of the part that needs no
# root. What the times are is not looked at; what is made of them is.
set -euo pipefail

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$BUILD/bench/comm_bench" ] || { echo "SKIP: no comm_bench"; exit 77; }

fail() {
    echo "FAIL: $*"
    cat "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

soak() { # RC ARGUMENTS...
    local want=$1 rc=0
    shift
    "$source_dir/scripts/soak" localsgd "$@" >"$work/out" 2>"$work/err" \
        </dev/null || rc=$?
    [[ $rc =~ ^($want)$ ]] || fail "rc $rc, not $want: $*"
}

echo "help and mistakes"
soak 0 --help
for word in bytes wall target --quick --over --learning-rates; do
    grep -q -- "$word" "$work/out" || fail "--help does not mention $word"
done
soak 0 wall --help
soak 2
soak 2 speed
grep -q 'bytes, wall or target' "$work/err" || fail "the parts are not named"
soak 2 wall --evry 4
grep -q -- '--evry' "$work/err" || fail "the unknown option is not named"
soak 2 wall --over carrier-pigeon
soak 2 bytes --over threads --build "$BUILD" --out "$work/b"
grep -q 'needs --over netlab' "$work/err" || fail "bytes without interfaces"

echo "wall time, tiny"
soak '0|1' wall --quick --build "$BUILD" --out "$work/w" --model mlp:16 \
    --data synth:600 --batch 4 --attempts 8 --every 1,3,8 --rates 1gbit,10gbit
[ "$(grep -cE '^ +1(0)?gbit +[138] ' "$work/out")" -eq 6 ] ||
    fail "not a line for each H and rate"
grep -qE '^(holds|DOES NOT HOLD): all within 15 %' "$work/out" || fail "no verdict"
! grep -q 'failed with' "$work/out" || fail "a run has failed"
lines=$(diff "$work/w/report.txt" "$work/out" | grep -c '^<' || true)
[ "$lines" -eq 0 ] || fail "the report is not what was printed"

# The prediction is older than every run that it is about, and is what the
# attempts of the run without communication say.
for run in "$work"/w/wall-*gbit-[138]-*.json; do
    [ "$run" -nt "$work/w/predicted.csv" ] || fail "$run ran before the prediction"
done
awk -F , 'NR > 1 { for (i = 2; i <= NF; i++) {
        whole[i] += $i; if ($i > most[NR]) most[NR] = $i } each += most[NR] }
    END { for (i in whole) if (whole[i] > all) all = whole[i]
          printf("%.6f %.6f\n", each, all) }' "$work/w/wall-compute-1.csv" \
    >"$work/sums"
read -r each all <"$work/sums"
awk -F , -v each="$each" -v all="$all" '
    function off(a, b) { return a > b + 2e-6 || b > a + 2e-6 }
    NR == 1 { next }
    off($8, $4 + $5 + $6 * $7) { print "sum: " $0; bad = 1 }
    $6 != int((8 + $2 - 1) / $2) { print "averages: " $0; bad = 1 }
    $2 == 1 && off($4, each) { print "each attempt, " each ": " $0; bad = 1 }
    $2 == 8 && off($4, all) { print "one interval, " all ": " $0; bad = 1 }
    END { exit bad || NR != 7 }' "$work/w/predicted.csv" ||
    fail "predicted.csv is not what the attempts say"
echo "ok"
