#!/bin/bash
# localsgd_sweep as its user meets it: the plan and its rows, bytes against a
# closed form, fairness, going on after SIGKILL and Ctrl-C, runs that diverge or
# fail, mistakes.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
sweep=$build/bench/localsgd_sweep
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
export LC_ALL=C

# What ctest sets, when the script is run by hand.
# shellcheck source=scripts/env
. "$source_dir/scripts/env" 2>/dev/null

# 2 epochs of 8 micro-steps of 2 x 35 samples of 550; 12,730 parameters.
tiny=(--model mlp:16 --data synth:600 --ranks 2 --threads 1 --batch 35
    --steps 16 --sync-every 1,4 --seeds 1 --lrs 0.01 --networks eth-1g,wan-100m)
one=50920 # bytes of one synchronisation of a rank

fail() {
    echo "FAIL: $*"
    tail -n 30 "$work/out" "$work/err" 2>/dev/null || true
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

# rows FILE: one row a line.
rows() {
    sed 's/^\[//; s/\]$//; s/},{"case"/}\n{"case"/g' "$1"
}

# row FILE CASE [SEED], field KEY: of the row on stdin.
row() {
    rows "$1" | grep -F "{\"case\":\"$2\"," | grep "\"seed\":${3-1}," ||
        fail "no row of $2"
}

field() {
    sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"
}

# is FILE CASE KEY VALUE
is() {
    local got
    got=$(row "$1" "$2" | field "$3")
    [ "$got" = "$4" ] || fail "$2: $3 is $got, not $4"
}

echo "- help and configuration"
run 0 "$sweep" --help
has "$work/out" --baseline-compress
has "$work/out" 'Exit codes'
run 0 "$sweep" --version
run 0 "$sweep" --print-config --quick
has "$work/out" '^sync-every = 1,4,16,64'
has "$work/out" '^seeds = 1'
run 0 "$sweep" --print-config --quick --seeds 4
has "$work/out" '^seeds = 4 .*command line'

echo "- mistakes"
# mistake PATTERN OPTION...: rc 2, one line that says what to do.
mistake() {
    local pattern=$1
    shift
    run 2 "$sweep" "${tiny[@]}" --out "$work/mistake" "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $*"
    has "$work/err" "$pattern"
}
mistake 'did you mean --sync-every' --sync-evry 3
mistake "did you mean 'local'" --sync lokal
mistake "'slowmo' is twice" --sync slowmo,slowmo
mistake 'whole numbers' --sync-every 1.5
mistake 'no number above 0' --lrs 0
mistake "did you mean 'eth-1g'" --networks eth
mistake "int7" --compress none,int7
mistake 'baseline-compress' --compress powersgd:2
mistake 'did you mean mlp' --model mpl
mistake 'known are' --data nothing
mistake 'decides --lr' --extra="--warmup-steps 2 --lr 1"
mistake 'give another --out' --out /proc/nowhere
mistake 'unknown option --nope' --extra=--nope
mistake 'there is no program there' --program "$work/nothing"

echo "- the plan"
run 0 "$sweep" "${tiny[@]}" --out "$work/plan" --dry-run --seeds 3 --lrs 0.01,0.02
has "$work/out" '^48 runs, and up to 72 '
has "$work/out" '^local H=4 *16 *4 *0.20$'
[ ! -e "$work/plan/sweep.json" ] || fail "--dry-run writes results"
# What does not divide is raised, and says so.
run 0 "$sweep" "${tiny[@]}" --out "$work/plan" --dry-run --steps 13
has "$work/out" '16 micro-steps a rank, 2 epochs'
has "$work/out" 'not 13, so that every H divides'
has "$work/out" '^accumulate 4 *4 *4'
# A step does not cross the end of an epoch, here of 10 micro-steps.
run 0 "$sweep" "${tiny[@]}" --out "$work/plan" --dry-run --sync-every 1,4,4096
has "$work/out" 'no accumulation from H = 4096 on'
has "$work/out" 'accumulate 4 '
! grep -q 'accumulate 4096' "$work/out" || fail "a baseline that can't be run is planned"
run 0 "$sweep" "${tiny[@]}" --out "$work/plan" --dry-run --batch 30
has "$work/out" '18 micro-steps a rank, 1.8 epochs'
has "$work/out" '^accumulate 4 *5 *5'

echo "- a sweep"
run 0 "$sweep" "${tiny[@]}" --compress "none,int8,noef" --out "$work/a"
[ ! -s "$work/err" ] || fail "messages"
a=$work/a/sweep.json
for f in sweep.json sweep.csv sweep.html; do
    [ -s "$work/a/$f" ] || fail "no $f"
done
[ "$(rows "$a" | wc -l)" -eq 18 ] || fail "not 18 rows"
[ "$(wc -l <"$work/a/sweep.csv")" -eq 19 ] || fail "not 18 lines in the CSV"
for key in sync sync_every accumulate compress seed lr steps samples syncs \
    bytes_predicted bytes_counted wall_s wall_predicted_s modelled_s train_loss \
    eval_loss eval_accuracy test_accuracy local_accuracy consensus_distance; do
    [ "$(rows "$a" | grep -c "\"$key\":")" -eq 18 ] || fail "not 18 times $key"
    head -n 1 "$work/a/sweep.csv" | grep -q "$key" || fail "no $key in the CSV"
done
has "$a" '"modelled_s":{"eth-1g":[0-9.e-]*,"wan-100m":[0-9.e-]*}'
while read -r line; do
    [ "$(field samples <<<"$line")" = 1100 ] || fail "other samples: $line"
    [ "$(field bytes_predicted <<<"$line")" = "$(field bytes_counted <<<"$line")" ] ||
        fail "bytes differ: $line"
done < <(rows "$a")
for method in local slowmo diloco; do
    is "$a" "$method H=1" bytes_counted $((16 * one))
    is "$a" "$method H=4" bytes_counted $((4 * one))
    is "$a" "$method H=4" syncs 4
    is "$a" "$method int8,noef H=4" syncs 4
done
is "$a" one-shot bytes_counted $one
is "$a" 'no averaging' bytes_counted 0
is "$a" 'accumulate 4' steps 4
is "$a" 'accumulate 4' syncs 4
is "$a" per-step syncs 16
for text in 'batch: 35 a rank' '0.01 for all cases, as given' \
    'alone: computing a micro-step takes' 'local: .* % at H = 1; H = 4:' \
    'against accumulation at the same samples and bytes:'; do
    has "$work/out" "$text"
done

echo "- found again, not run again"
cp "$a" "$work/first.json"
stat -c '%n %i %y' "$work"/a/runs/*/done >"$work/runs.before"
run 0 "$sweep" "${tiny[@]}" --compress "none,int8,noef" --out "$work/a" --quiet
[ ! -s "$work/out" ] || fail "--quiet prints"
cmp "$a" "$work/first.json" || fail "other rows the second time"
stat -c '%n %i %y' "$work"/a/runs/*/done | cmp - "$work/runs.before" ||
    fail "runs were made again"

echo "- damaged by a power cut, made again"
damaged=$work/a/runs/local-h4-none-lr0.01-seed1/summary.json
for bytes in 0 100; do
    truncate -s $bytes "$damaged"
    run 0 "$sweep" "${tiny[@]}" --compress "none,int8,noef" --out "$work/a" --quiet
    has "$damaged" '}$'
done

# What does not depend on time.
results() {
    rows "$1" | sed 's/"wall[a-z_]*":[^,]*,//g; s/"modelled_s":{[^}]*},//;
        s/"sync_alone_s":[^,]*,//'
}

# start OPTION...: in the background, until some of its runs are there.
start() {
    rm -rf "$work/b"
    "$sweep" "${tiny[@]}" --out "$work/b" "$@" >"$work/out" 2>"$work/err" &
    child=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(find "$work/b/runs" -name done 2>/dev/null | wc -l)" -lt 12 ] || return 0
        sleep 0.02
    done
    fail "no runs after 12 s"
}

echo "- SIGKILL, and on"
run 0 "$sweep" "${tiny[@]}" --seeds 2 --out "$work/c"
start --seeds 2
kill -KILL $child
wait $child 2>/dev/null || true
stat -c '%n %i %y' "$work"/b/runs/*/done >"$work/runs.before"
run 0 "$sweep" "${tiny[@]}" --seeds 2 --out "$work/b"
while read -r line; do
    stat -c '%n %i %y' "$work"/b/runs/*/done | grep -qxF "$line" ||
        fail "made again: $line"
done <"$work/runs.before"
results "$work/b/sweep.json" >"$work/b.rows"
results "$work/c/sweep.json" | cmp - "$work/b.rows" ||
    fail "other rows after SIGKILL"

echo "- Ctrl-C, and on"
start --seeds 2
kill -INT $child
rc=0
wait $child || rc=$?
[ $rc -eq 75 ] || fail "rc $rc after Ctrl-C"
has "$work/out" 'the same command goes on'
has "$work/out" '--seeds 2'
n=$(rows "$work/b/sweep.json" | wc -l)
((n > 0 && n < 24)) || fail "$n rows after Ctrl-C"
run 0 "$sweep" "${tiny[@]}" --seeds 2 --out "$work/b"
results "$work/b/sweep.json" | cmp - "$work/b.rows" ||
    fail "other rows after Ctrl-C"

echo "- one folder, one sweep"
exec 9<"$work/b"
flock 9
run 2 "$sweep" "${tiny[@]}" --out "$work/b"
has "$work/err" 'another program is at work'
# One that is about to let go is waited for.
(sleep 0.3; flock -u 9) &
run 0 "$sweep" "${tiny[@]}" --out "$work/b"
exec 9<&-

echo "- the learning rate is searched, beyond the list, too"
run 0 "$sweep" "${tiny[@]}" --sync local --baseline-compress "" \
    --lrs 0.0001,0.0002 --out "$work/d"
is "$work/d/sweep.json" 'local H=4' lr 0.0008
is "$work/d/sweep.json" 'local H=4' lr_at_edge 1
[ -e "$work/d/runs/local-h4-none-lr0.0001-seed1/done" ] || fail "0.0001 left out"
has "$work/out" 'a better one may lie beyond'

echo "- what diverges is a row"
run 0 "$sweep" "${tiny[@]}" --sync local --optimizer sgd --lrs 1e5 --out "$work/e"
is "$work/e/sweep.json" 'local H=4' diverged true
is "$work/e/sweep.json" 'local H=4' eval_loss null
is "$work/e/sweep.json" per-step test_accuracy null
has "$work/out" 'diverged'
head -n 1 "$work/e/sweep.csv" >/dev/null

echo "- what fails is told, and the rest goes on"
cat >"$work/train" <<END
#!/bin/bash
case "\$*" in *"--sync slowmo --sync-every 4"*) echo "out of luck" >&2; exit 1 ;; esac
exec "$build/ddp_train" "\$@"
END
chmod +x "$work/train"
run 1 "$sweep" "${tiny[@]}" --program "$work/train" --out "$work/f"
has "$work/err" 'run slowmo-h4-none-lr0.01-seed1 ended with code 1: out of luck'
[ "$(rows "$work/f/sweep.json" | wc -l)" -eq 11 ] || fail "not 11 rows"
# A command that can't train at all ends the sweep at once.
run 2 "$sweep" "${tiny[@]}" --extra=--clip-norm=-1 --out "$work/f"
has "$work/err" 'clip-norm'

if [ -n "${MPIEXEC-$(command -v mpirun || true)}" ]; then
    echo "- under mpirun"
    run 0 mpirun -np 2 "$sweep" "${tiny[@]}" --sync local --sync-every 4 \
        --baseline-compress "" --out "$work/g"
    [ "$(grep -c '^local H=4 *1 ' "$work/out")" -eq 1 ] || fail "not one rank prints"
    has "$work/out" '2 ranks (processes)'
    grep -qx mpirun "$work/g/runs/grad-h1-none-lr0.01-seed1/done" || fail "not by mpirun"
    results "$work/g/sweep.json" | grep -F '"case":"local H=4"' >"$work/g.row"
    grep -qxF -f "$work/g.row" "$work/b.rows" || fail "processes train otherwise than threads"
else
    echo "NOT TESTED: mpirun is not installed"
fi

echo "localsgd_sweep: ok"
