#!/bin/bash
# localsgd_experiments as its user meets it: names and mistakes; each experiment
# in a tiny version on generated data, with what its table, its JSON and its
# Markdown must have; runs that are there are not done again; the line of E3
# fitted once more by awk; stopping and going on; exit codes.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
program=$build/bench/localsgd_experiments
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
tiny=(--quick --steps 20 --ranks 2 --data synth:600 --model mlp:16
    --out "$work/runs" --quiet)
names="E1 E2 E3 E5 E6 E7 E8 E9 E10"

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

# count FILE PATTERN NUMBER
count() {
    local n
    n=$(grep -c -- "$2" "$1" || true)
    [ "$n" -eq "$3" ] || fail "$n times '$2' in $1, not $3"
}

echo "- names and mistakes"
run 0 "$program" --help
for name in $names; do has "$work/out" "^  $name "; done
run 0 "$program" --print-config --seeds 2
has "$work/out" '^seeds = 2 .*command line'
# mistake PATTERN ARGUMENT...: rc 2, one line that says what to do.
mistake() {
    local pattern=$1
    shift
    run 2 "$program" "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $*"
    has "$work/err" "$pattern"
}
mistake 'Give names, or all'
mistake 'no experiment E4; there are E1, E2' E4
mistake 'seeds' E1 --sedes 3
mistake 'ranks 2 or more' E1 --quiet --ranks 1
mistake 'an even number' E2 --quiet --ranks 3
mistake 'ranks 2 or more' E3 --quiet --ranks 1
mistake "model" E5 "${tiny[@]}" --model mpl
mistake 'there is no program there' E5 "${tiny[@]}" --program "$work/nothing"
mistake 'with {} for their number' E10 "${tiny[@]}" --launch "env"
mistake 'no data folder' E5 "${tiny[@]}" --data-dir "$work/nothing" \
    --data fashion-mnist

echo "- each of them, tiny"
# Names may stand anywhere, in any case, and twice.
run 0 "$program" all "${tiny[@]}" e1 --json "$work/all.json"
cp "$work/out" "$work/all.txt"
[ ! -s "$work/err" ] || fail "--quiet, but messages"
for name in $names; do
    count "$work/all.txt" "^$name: .*, as measured" 1
    count "$work/all.json" "\"experiment\": \"$name\"" 1
    count "$work/all.txt" "^$name  *[a-zA-Z:].* \(holds\|does not hold\)$" 1
done
for key in claim pass ran tables conditions holds seconds seeds; do
    count "$work/all.json" "^  \"$key\":" 9
done
# A claim holds if all of its conditions do.
awk '/^  "conditions"/ { all = 1; n = 0 }
     /^    "holds": / { n++; if (!/true/) all = 0 }
     /^  "holds": / { if (n == 0 || all != ($2 ~ /true/)) exit 1; seen++ }
     END { exit seen != 9 }' "$work/all.json" ||
    fail "holds is not what the conditions say"
# 5 variants of E5 with the columns that all trained experiments have.
sed -n '/"experiment": "E5"/,/"conditions"/p' "$work/all.json" >"$work/e5"
for key in variant eval_loss eval_accuracy syncs bytes lr; do
    count "$work/e5" "^      \"$key\": " 5
done
# 20 steps and H = 1, 5, 10, 30; 784*16+16 + 16*10+10 parameters of 4 bytes.
n=$((4 * (784 * 16 + 16 + 16 * 10 + 10)))
for syncs in 20 4 2 1; do
    has "$work/e5" "^      \"bytes\": $((syncs * n)).0,"
done

echo "- printed from the file"
run 0 "$program" --print "$work/all.json"
cmp "$work/out" "$work/all.txt" || fail "--print says something else"
run 0 "$program" --print "$work/all.json" e5 --markdown
count "$work/out" '^## ' 1
mistake 'no file of --json' --print "$work/all.txt"

echo "- runs that are there are reused"
find "$work/runs" -name done -printf '%p %T@\n' | sort >"$work/before"
[ "$(wc -l <"$work/before")" -gt 60 ] || fail "few runs"
run 0 "$program" E5 E9 "${tiny[@]}"
find "$work/runs" -name done -printf '%p %T@\n' | sort >"$work/after"
cmp "$work/before" "$work/after" || fail "runs were done again"
for name in E5 E9; do
    cmp <(sed -n "/^$name: /,/^$name: /p" "$work/out" | grep -v measured) \
        <(sed -n "/^$name: /,/^$name: /p" "$work/all.txt" | grep -v measured) ||
        fail "$name says something else the second time"
done
run 0 "$program" E5 "${tiny[@]}" --markdown
has "$work/out" '^## E5: '
has "$work/out" '^| H = 30 | '
has "$work/out" '^build/bench/localsgd_experiments E5 --quick$'
count "$work/out" '^- \(yes\|\*\*no\*\*\): ' 3

echo "- behind a launcher, with the number of ranks in its command"
run 0 "$program" E10 "${tiny[@]}" --out "$work/launched" --launch "env WORLD={}"
[ "$(grep -lx 'WORLD=1' "$work"/launched/runs/*/done | wc -l)" -eq 6 ] ||
    fail "the launcher was not told that there is one rank"

echo "- the line through E3's seconds"
# Least squares of seconds against 1/H by the normal equations.
sed -n '/"experiment": "E3"/,/"conditions"/p' "$work/all.json" |
    awk -F'[:,]' '/"variant": "H = / { split($2, w, "[ \"]+"); h = w[4] }
        /"train_s": / { x = 1 / h; y = $2; n++; sx += x; sy += y
            sxx += x * x; sxy += x * y; syy += y * y }
        END { b = (n * sxy - sx * sy) / (n * sxx - sx * sx); a = (sy - b * sx) / n
            r = (n * sxy - sx * sy)^2 / (n * sxx - sx^2) / (n * syy - sy^2)
            printf "%d %.6f %.6f %.6f\n", n, a, b, r }' >"$work/line"
read -r n a b r <"$work/line"
[ "$n" -eq 4 ] || fail "$n points"
told=$(tr '\n' ' ' <"$work/all.txt" | sed -nE \
    's/.*seconds = (-?[0-9.]+) \+ (-?[0-9.]+)\/H +with +R\^2 = ([0-9.]+).*/\1 \2 \3/p')
read -r ta tb tr <<<"$told" && [ -n "$tr" ] || fail "no line in E3's text"
awk -v a="$a" -v b="$b" -v r="$r" -v ta="$ta" -v tb="$tb" -v tr="$tr" \
    'function off(x, y) { return x > y ? x - y : y - x }
     BEGIN { exit !(off(a, ta) < 0.006 && off(b, tb) < 0.006 && off(r, tr) < 2e-4) }' ||
    fail "fitted $a + $b/H, R^2 $r; told $ta + $tb/H, R^2 $tr"

echo "- a claim that does not hold is no failure, but with --strict"
holds=$(sed -n '/"experiment": "E5"/,/^  "holds"/s/^  "holds": \([a-z]*\),*$/\1/p' "$work/all.json")
run "$([ "$holds" = true ] && echo 0 || echo 1)" "$program" E5 "${tiny[@]}" --strict
# Never true of two workers: one average costs 1.2 times as much in 16 steps.
run 1 "$program" E1 "${tiny[@]}" --strict
has "$work/out" '^E1: the claim does not hold, as measured'

echo "- stopped, and on"
"$program" E5 "${tiny[@]}" --steps 4000 --out "$work/stopped" \
    >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 400); do
    [ -z "$(find "$work/stopped" -name done 2>/dev/null)" ] || break
    sleep 0.05
done
kill -INT $pid
rc=0
wait $pid || rc=$?
[ $rc -eq 75 ] || fail "rc $rc after Ctrl-C"
has "$work/err" 'goes on from the runs'
find "$work/stopped" -name done | sort >"$work/kept"
[ -s "$work/kept" ] || fail "nothing is kept"
run 1 "$program" E5 "${tiny[@]}" --json /nowhere/x.json
has "$work/err" "can't write /nowhere/x.json"

echo "localsgd_experiments: ok"
