#!/bin/bash
# comm_bench as its user meets it: the table, the keys of its JSON, correct
# results for every operation and type, replay and recording, an interrupted
# run, pictures, mistakes. Nothing is said about speed.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
bench=$build/bench/comm_bench
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null; rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
# shellcheck source=scripts/env
. "$source_dir/scripts/env" 2>/dev/null

fail() {
    echo "FAIL: $*"
    head -n 40 "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

# run RC COMMAND...: output in $work/out and $work/err.
run() {
    local want=$1 rc=0
    shift
    timeout -k 5 100 "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc $rc, not $want: $*"
}

has() {
    grep -qE -- "$2" "$1" || fail "no /$2/ in $1"
}

# Values of a key in a file of JSON, one a line.
values() {
    tr '{,}' '\n' <"$2" | sed -n "s/^\"$1\"://p"
}

# All values of a key are this text, and there are that many.
all_are() {
    local n
    n=$(values "$1" "$4" | wc -l)
    [ "$n" -eq "$3" ] || fail "$n values of $1 in $4, not $3"
    if values "$1" "$4" | grep -vqx -- "$2"; then
        fail "$1 is not always $2: $(values "$1" "$4" | sort | uniq -c)"
    fi
}

have_mpi() {
    command -v mpirun >/dev/null && ldd "$bench" | grep -q 'libmpi\.so'
}

quick=(--iters 2 --warmup 1 --rotate-mib 4)

echo "- help and configuration"
run 0 "$bench" --help
has "$work/out" --replay
has "$work/out" 'allreduce,reduce_scatter'
run 0 "$bench" --version
run 0 "$bench" --print-config --max 1M
has "$work/out" '^max = 1M .*command line'
has "$work/out" '^rotate-mib = 512 .*default'

echo "- a table and its JSON"
run 0 "$bench" --ranks 2 "${quick[@]}" --min 4K --max 64K --json "$work/a.json"
has "$work/out" '^# .*2 ranks on 1 host.*thread'
has "$work/out" '^ +16K +4096 +f32 allreduce +sum +in '
for key in op dtype wire memory in_place transport world hosts oversubscribed \
    bytes time_us p99_us algbw_gbs busbw_gbs wrong baseline_us ratio; do
    [ "$(values "$key" "$work/a.json" | wc -l)" -eq 6 ] ||
        fail "not 6 rows with $key"
done
all_are op '"allreduce"' 6 "$work/a.json"
all_are wrong 0 6 "$work/a.json"
all_are baseline_us null 6 "$work/a.json"
all_are world 2 6 "$work/a.json"
[ "$(values bytes "$work/a.json" | sort -nu | tr '\n' ' ')" = \
    "4096 16384 65536 " ] || fail "other sizes"
run 0 "$bench" --ranks 2 "${quick[@]}" --max 4K --quiet
[ ! -s "$work/out" ] || fail "--quiet prints"

echo "- one rank: busbw is 0"
run 0 "$bench" "${quick[@]}" --min 0 --max 4 --json "$work/one.json"
all_are busbw_gbs 0 6 "$work/one.json"
all_are transport '"self"' 6 "$work/one.json"

echo "- busbw of 4 ranks is algbw x 3/2"
run 0 "$bench" --ranks 4 "${quick[@]}" --sizes 64K --in-place out \
    --json "$work/b.json"
awk -v a="$(values algbw_gbs "$work/b.json")" \
    -v b="$(values busbw_gbs "$work/b.json")" \
    'BEGIN { r = b / a; exit !(r > 1.499 && r < 1.501) }' || fail "other factor"

# Every operation, type and reduction: 4 x 7 types, of which two operations
# reduce in 5 ways; all but broadcast in two places; for each count.
everything() {
    local counts=$1 n=$2 rows
    shift 2
    run 0 "$@" "$bench" --op all --dtype all --redop all --counts "$counts" \
        --iters 1 --warmup 1 --rotate-mib 1 --json "$work/all.json" \
        "${extra[@]}"
    rows=$((n * 7 * (2 * 5 * 2 + 2 + 1)))
    all_are wrong 0 "$rows" "$work/all.json"
}

echo "- every operation, type and reduction, on threads"
extra=(--ranks 3)
everything 0,1,17,4095 4 env
extra=(--ranks 2 --memory symmetric)
everything 3,4096 2 env

echo "- a wrong result is noticed"
# One element of the last rank, in each of two operations a line.
run 1 "$bench" --ranks 2 "${quick[@]}" --op all --dtype all --counts 17 \
    --corrupt --json "$work/w.json"
all_are wrong 2 49 "$work/w.json"
has "$work/err" '98 elements are wrong'

wires() {
    local w
    for w in fp16 bf16 int8 topk:0.1 powersgd:2; do
        run 0 "$@" "$bench" "${extra[@]}" "${quick[@]}" --counts 1,4095,65536 \
            --wire "$w" --json "$work/wire.json"
        all_are wrong 0 6 "$work/wire.json"
    done
}

echo "- wire formats and codecs"
extra=(--ranks 3)
wires env

if have_mpi; then
    echo "- processes, with MPI as the baseline"
    run 0 mpirun -np 2 "$bench" "${quick[@]}" --min 4K --max 64K \
        --baseline mpi --json "$work/m.json" --svg "$work/m.svg"
    has "$work/out" 'baseline: Open MPI|baseline: '
    all_are wrong 0 6 "$work/m.json"
    if values ratio "$work/m.json" | grep -q null; then fail "no ratio"; fi
    has "$work/m.svg" '^<svg xmlns'
    has "$work/m.svg" '>MPI, in place<'
    has "$work/m.svg" '</svg>$'
    extra=()
    everything 0,17,4095 3 mpirun -np 2
    run 0 mpirun -np 4 "$bench" --op all --dtype f32,f16 --redop avg \
        --counts 3,4096 "${quick[@]}" --baseline mpi --json "$work/n.json"
    all_are wrong 0 28 "$work/n.json"
    # 16-bit floats have no MPI type.
    [ "$(values ratio "$work/n.json" | grep -c null)" -eq 14 ] ||
        fail "not 14 rows without a baseline"
    run 2 mpirun -np 2 "$bench" --ranks 2 --max 4K
    has "$work/err" '--ranks'
    run 2 mpirun -np 2 "$bench" --opp allreduce
    [ "$(grep -c 'did you mean\|--op' "$work/err")" -ge 1 ] || fail "no hint"
else
    echo "- no mpirun: the parts with processes are left out"
fi

if have_mpi; then
    echo "- a stopped rank ends the run"
    cat >"$work/rank" <<'END'
#!/bin/bash
echo $$ >"$1/pid.$OMPI_COMM_WORLD_RANK"
exec "${@:2}"
END
    chmod +x "$work/rank"
    timeout -k 5 100 mpirun -np 2 "$work/rank" "$work" "$bench" --timeout 2 \
        --sizes 64K,1M --seconds 40 --rotate-mib 8 \
        >"$work/out" 2>"$work/err" </dev/null &
    child=$!
    for _ in $(seq 200); do
        grep -q '^# wire' "$work/out" && break
        sleep 0.1
    done
    stopped=$(cat "$work/pid.1")
    kill -STOP "$stopped"
    rc=0
    wait "$child" || rc=$?
    child=
    if grep -qs comm_bench "/proc/$stopped/cmdline"; then
        kill -KILL "$stopped" || true
    fi
    [ "$rc" -eq 124 ] || fail "rc $rc with a stopped rank"
    has "$work/err" 'timed out|waited 4 s in its barrier or in MPI'
fi

echo "- an interrupted run keeps what it had"
"$bench" --ranks 2 --sizes 4K,8K,16K,32K,64K,128K,256K --seconds 0.5 \
    --rotate-mib 8 --json "$work/i.json" >"$work/out" 2>"$work/err" &
child=$!
for _ in $(seq 200); do
    [ -s "$work/i.json" ] && break
    sleep 0.1
done
kill -TERM "$child"
rc=0
wait "$child" || rc=$?
child=
[ "$rc" -eq 1 ] || fail "rc $rc after a signal"
has "$work/out" 'stopped by a signal'
n=$(values op "$work/i.json" | wc -l)
if [ "$n" -lt 1 ] || [ "$n" -ge 14 ]; then fail "$n rows after a signal"; fi

echo "- replay of a file"
cat >"$work/r.jsonl" <<'END'
{"replay":1,"forward_us":1000,"backward_us":20000,"update_us":500}
{"name":"a","bytes":4000,"ready_us":100}

{"name":"b","bytes":400000,"ready_us":5000.5}
{"name":"c","bytes":0,"ready_us":6000}
{"name":"d","bytes":40000,"ready_us":20000}
END
run 0 "$bench" --ranks 2 --replay "$work/r.jsonl" --iters 3 \
    --json "$work/r.json"
has "$work/out" '^exposed'
all_are compute_us 21500 1 "$work/r.json"
all_are bytes_logical 444000 1 "$work/r.json"
all_are tensors 4 1 "$work/r.json"
# Sleeping takes at least its time, and d is ready at the very end.
awk -v t="$(values total_us "$work/r.json")" \
    -v e="$(values exposed_us "$work/r.json")" \
    -v b="$(values bound_us "$work/r.json")" \
    'BEGIN { exit !(t >= 21500 && e >= 0 && e < t && b > 0) }' ||
    fail "times that can't be"
run 0 "$bench" --ranks 2 --replay "$work/r.jsonl" --iters 2 --compute spin \
    --compute-ms 4 --json "$work/r.json" --bucket-mb 0.001 \
    --first-bucket-mb 0.001
awk -v c="$(values compute_us "$work/r.json")" \
    'BEGIN { exit !(c > 3999.9 && c < 4000.1) }' || fail "compute is not 4 ms"
all_are buckets 3 1 "$work/r.json"

echo "- replay with codecs: the bytes are theirs"
printf '%s\n' '{"backward_us":1000}' \
    '{"name":"m","bytes":16384,"ready_us":1,"shape":[64,64]}' \
    '{"name":"v","bytes":256,"ready_us":9}' >"$work/m.jsonl"
# Rank 1: a column of 64 and a row of 64, the vector as it is.
run 0 "$bench" --ranks 2 --replay "$work/m.jsonl" --iters 2 \
    --wire powersgd:1 --json "$work/r.json"
all_are bytes_wire $((4 * (64 + 64) + 256)) 1 "$work/r.json"
run 0 "$bench" --ranks 2 --replay "$work/m.jsonl" --iters 2 --wire bf16 \
    --json "$work/r.json"
all_are bytes_wire $((16640 / 2)) 1 "$work/r.json"

echo "- the built-in step"
run 0 "$bench" --replay gpt2-124M --iters 1 --compute-ms 1 --json "$work/g.json"
all_are tensors 148 1 "$work/g.json"
all_are bytes 497903616 1 "$work/g.json"

# bad LINE TEXT...: a file of these lines is refused, naming the line.
bad() {
    local line=$1
    shift
    printf '%s\n' "$@" >"$work/bad.jsonl"
    run 2 "$bench" --replay "$work/bad.jsonl"
    has "$work/err" "line $line of .*bad\.jsonl"
}

echo "- recordings that are wrong"
head='{"backward_us":10}'
bad 2 ''
bad 1 'no json'
bad 1 '[1]'
bad 1 '{"forward_us":1}'
bad 1 '{"replay":2,"backward_us":1}'
bad 1 '{"backward_us":-1}'
bad 1 '{"name":"a","bytes":4,"ready_us":1}'
bad 2 "$head"
bad 2 "$head" '{"name":"a","bytes":5,"ready_us":1}'
bad 2 "$head" '{"name":"a","bytes":-4,"ready_us":1}'
bad 2 "$head" '{"name":"a","bytes":4e0,"ready_us":1}'
bad 2 "$head" '{"name":7,"bytes":4,"ready_us":1}'
bad 2 "$head" '{"name":"a","bytes":4,"ready_us":"1"}'
bad 2 "$head" '{"name":"a","bytes":9223372036854775804,"ready_us":1}'
bad 2 "$head" '{"name":"a","bytes":4,"ready_us":1e300}'
bad 2 "$head" '{"name":"a","bytes":24,"ready_us":1,"shape":[2,2]}'
bad 2 "$head" '{"name":"a","bytes":24,"ready_us":1,"shape":[0,6]}'
bad 2 "$head" '{"name":"a","bytes":24,"ready_us":1,"shape":"6"}'
bad 3 "$head" '{"name":"a","bytes":4,"ready_us":2}' \
    '{"name":"b","bytes":4,"ready_us":1}'
bad 3 "$head" '{"name":"a","bytes":4,"ready_us":2}' '{"name":"b","bytes":'
bad 2 "$head" "$(head -c 70000 /dev/zero | tr '\0' 'x')"
run 2 "$bench" --replay "$work/nowhere.jsonl"
has "$work/err" 'nowhere\.jsonl.*gpt2-124M'

echo "- recorded, then replayed"
run 0 "$build/ddp_train" --ranks 2 --model mlp:16 --data synth:512 --batch 8 \
    --steps 6 --quiet --record "$work/rec.jsonl"
[ "$(wc -l <"$work/rec.jsonl")" -eq 5 ] || fail "not a header and 4 tensors"
head -n 1 "$work/rec.jsonl" >"$work/out"
has "$work/out" '"forward_us":[0-9].*"backward_us":[0-9].*"update_us":[0-9]'
# 784 x 16 + 16 + 16 x 10 + 10 f32.
[ "$(values bytes "$work/rec.jsonl" | awk '{ s += $1 } END { print s }')" \
    -eq 50920 ] ||
    fail "other bytes than the model's"
values ready_us "$work/rec.jsonl" | sort -c -g || fail "not in order"
run 0 "$bench" --ranks 2 --replay "$work/rec.jsonl" --iters 3 \
    --json "$work/r.json"
all_are bytes_logical 50920 1 "$work/r.json"
run 2 "$build/ddp_train" --sync none --record "$work/x.jsonl" --steps 1
has "$work/err" '--record.*--sync'

echo "- tuning"
run 0 "$bench" --ranks 2 --tune "$work/tune.txt"
has "$work/tune.txt" '^tacit-tune 1$'
has "$work/tune.txt" '^local\.alpha [0-9.]+e'
has "$work/out" 'the model takes'
run 0 "$bench" --ranks 2 "${quick[@]}" --max 4K --tune-file "$work/tune.txt"
run 2 "$bench" --ranks 2 --max 4K --tune-file "$work/nowhere.txt"
has "$work/err" 'nowhere\.txt'
printf 'tacit-tune 1\nlocal.alhpa 1\n' >"$work/tune.txt"
run 2 "$bench" --ranks 2 --max 4K --tune-file "$work/tune.txt"
has "$work/err" 'tune\.txt'

echo "- mistakes"
run 2 "$bench" --opp allreduce
has "$work/err" '--op'
run 2 "$bench" --op allreduc
has "$work/err" 'allreduc.*reduce_scatter'
run 2 "$bench" --dtype f33
has "$work/err" 'f33.*bf16'
run 2 "$bench" --min 1M --max 4K
has "$work/err" '--min.*--max'
run 2 "$bench" --sizes 4K,x
has "$work/err" '--sizes'
run 2 "$bench" --sizes 4K --counts 3
run 2 "$bench" --wire fp16 --dtype f64
has "$work/err" '--dtype f32'
run 2 "$bench" --wire int9 --ranks 2
has "$work/err" 'int9'
run 2 "$bench" --baseline mpi --ranks 2
has "$work/err" 'mpirun'
run 2 "$bench" --compute-ms soon --replay gpt2-124M
has "$work/err" 'soon'
run 2 "$bench" --algorithm quick --ranks 2 --max 4K
has "$work/err" 'quick.*recursive_doubling'
[ ! -s "$work/out" ] || fail "a table before the algorithm is refused"
for option in json svg dump; do
    run 1 "$bench" --ranks 2 "${quick[@]}" --max 4K \
        "--$option" "$work/missing/x"
    has "$work/err" "--$option.*missing/x"
    [ ! -s "$work/out" ] || fail "a table before --$option is refused"
done
run 1 "$bench" "${quick[@]}" --max 4K --json "$work/missing/x.json"
has "$work/err" 'missing/x\.json'
echo "passed"
