# Local modes of ddp_train: what is refused, and how; what is told before and
# after; the same bits from threads and processes; a rank that is killed.
set -u
: "${BUILD:?set BUILD to the build folder}"
train=$BUILD/ddp_train
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
export LC_ALL=C
for name in $(compgen -e | grep '^TACIT_'); do unset "$name"; done

# What ctest sets, when the script is run by hand.
# shellcheck source=scripts/env
. "${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}/scripts/env" 2>/dev/null

common="--model mlp:24 --data synth:400 --threads 1 --batch 8"

fail() {
    echo "FAILED: $*"
    [ -f "$out/log" ] && tail -n 15 "$out/log"
    failed=1
}

run() { # run NAME ARGUMENTS...: the summary is $out/NAME.json
    local name=$1
    shift
    # shellcheck disable=SC2086
    timeout 60 "$train" $common --json "$out/$name.json" "$@" >"$out/log" 2>&1 ||
        fail "rc $?: $*"
}

get() { # get NAME KEY
    sed -n "s/.*\"$2\":\([^,}]*\).*/\1/p" "$out/$1.json" | tr -d '"'
}

expect() { # expect WHAT GOT WANT
    [ -n "$2" ] && [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"
}

has() { # has TEXT FILE
    grep -qF -- "$1" "$2" || fail "no '$1' in $(head -c 2000 "$2")"
}

# --- allowed, but hardly meant: a warning ---

warned() { # warned TEXT ARGUMENTS...
    local text=$1
    shift
    run warned --ranks 2 "$@"
    has "$text" "$out/log"
}

warned "longer than the run, which has 4 steps" --sync local --sync-every 5 --steps 4
warned "longer than an epoch" --sync local --sync-every 24 --steps 30
warned "not before the end of the run" --sync post-local --sync-start 4 --steps 4
run size --ranks 2 --steps 4 --sync local --sync-schedule budget:2M

# --- refusals: exit code 2, one message, and what to do ---

refused() { # refused TEXT ARGUMENTS...
    local text=$1 rc=0 lines
    shift
    # shellcheck disable=SC2086
    timeout 20 "$train" $common --ranks 4 --steps 20 "$@" >"$out/log" 2>&1 || rc=$?
    lines=$(grep -c . "$out/log")
    [ $rc -eq 2 ] && [ "$lines" -eq 1 ] && grep -qF -- "$text" "$out/log" ||
        fail "rc $rc, $lines lines, expected 2, 1 and '$text': $*"
}

for option in "sync-every 4" "sync-start 3" "sync-schedule adacomm" "sync-min 2" \
    "sync-max 9" "sync-levels 2:1,4:4" "worker-size 2" "outer sgd" \
    "outer-lr 0.5" "outer-momentum 0.5" "fragments 2" "sync-delay 1" \
    "sync-alpha 0.5" "stale eager" "weighting samples" "moments average" \
    "late drop:1" "drop-deltas 0.1"; do
    # shellcheck disable=SC2086
    refused "--${option% *} means nothing to --sync grad: leave it out" --$option
done
refused "--outer-lr means nothing to --sync none" --sync none --outer-lr 0.5
for option in "sync-every 4" "sync-start 3" "sync-levels 2:1,4:4" "fragments 2" \
    "sync-delay 1" "drop-deltas 0.1"; do
    # shellcheck disable=SC2086
    refused "--${option% *} means nothing to --sync oneshot" --sync oneshot --$option
done
refused "--worker-size 3 does not divide the 4 ranks" --sync local --worker-size 3
refused "--record needs gradients that are averaged" --sync local --record "$out/r"
refused "--outer-lr means nothing to the outer optimizer average" \
    --sync local --outer-lr 0.5
refused "--outer-momentum means nothing to the outer optimizer sgd" \
    --sync diloco --outer sgd --outer-momentum 0.5
refused "--sync-min limits an interval that changes" --sync local --sync-min 2
refused "leave out --sync-every" --sync local --sync-every 4 --sync-levels 2:1,4:4
refused "--sync-levels 2-1 is not WORKERS:EVERY" --sync local --sync-levels 2-1
refused "--sync-levels 2:1, is not WORKERS:EVERY" --sync local --sync-levels 2:1,
refused "must have all" --sync local --sync-levels 1:2,2:4
refused "the last level has groups of 4, and there are 2 workers" \
    --sync local --sync-levels 2:1,4:4 --worker-size 2
refused "--sync-schedule qsr is not fixed, qsr:ALPHA" --sync local --sync-schedule qsr
refused "--sync-schedule budget:-1 is not" --sync local --sync-schedule budget:-1
refused "--sync-schedule budget:1X is not" --sync local --sync-schedule budget:1X
refused "means nothing to --sync none, which sends nothing" --sync none --compress int8
refused "a setting a second time" --param-groups "fc1.*:lr=1,lr=2"
refused "a pattern a second time" --param-groups "fc1.*:lr=1;fc1.*:wd=0"
refused "--late drop:0 is neither wait nor drop:SECONDS" --sync local --late drop:0
refused "--sync-delay 1.5 is no whole number" --sync local --sync-delay 1.5
refused "a delay of 9 attempts can't be" --sync local --sync-every 8 --sync-delay 9
refused "eager updates need a delay of one interval (8 attempts)" \
    --sync local --sync-every 8 --stale eager
refused "3 fragments of a model of 2 layers" --sync streaming --fragments 3
refused "powersgd needs the shapes" --sync local --compress powersgd:2
refused "--moments average needs moments that are f32 arrays" \
    --sync local --moments average --optimizer adafactor
refused "which --optimizer adamw8bit has not" \
    --sync local --moments reset --optimizer adamw8bit
refused "--optimizer sgd --momentum 0 has not" \
    --sync local --moments reset --optimizer sgd --momentum 0
[ $failed -ne 0 ] || echo "ok: refusals"

# --- divergence with averages under way: exit code 3, one message ---

for mode in "streaming --sync-every 2 --sync-delay 2" "local --sync-every 3 --sync-delay 1"; do
    rc=0
    # shellcheck disable=SC2086
    timeout 60 "$train" $common --ranks 3 --steps 20 --optimizer sgd --lr 1e5 \
        --log-every 1 --quiet --sync $mode >"$out/log" 2>&1 || rc=$?
    expect "code of $mode" $rc 3
    expect "messages of $mode" "$(grep -c . "$out/log")" 1
    has "no longer a number" "$out/log"
done

# --- what is told ---

run plan --ranks 4 --sync streaming --steps 40 --run-dir "$out/run"
has "replicas   streaming, 4 workers: every 16, 40 attempts in all; nesterov lr 0.4" "$out/log"
has "2 strided fragments; delay 1; alpha 0.5" "$out/log"
has "averaging  " "$out/log"
has "equal on all ranks" "$out/log"
has "# --sync streaming: 4 workers: every 16, 40 attempts in all" "$out/run/config.ini"
[ "$(grep -c '"syncs":[0-9]*,"bytes_sync_wire":[0-9]*,"train_s":' \
    "$out/run/metrics.jsonl")" -ge 3 ] || fail "metrics.jsonl: $(cat "$out/run/metrics.jsonl")"
expect "bytes of the last line" "$(tail -n 1 "$out/run/metrics.jsonl" |
    sed -n 's/.*"bytes_sync_wire":\([0-9]*\).*/\1/p')" "$(get plan bytes_sync_wire)"
expect "predicted" "$(get plan bytes_predicted)" "$(get plan bytes_sync_wire)"
for pair in sync_every:16 workers:4 worker_size:1 fragments:2 outer:nesterov \
    shards:iid target_step:0; do
    expect "${pair%:*}" "$(get plan "${pair%:*}")" "${pair#*:}"
done
# config.ini is a configuration: the same run again.
timeout 60 "$train" --config "$out/run/config.ini" --run-dir "$out/again" \
    --json "$out/again.json" --quiet >"$out/log" 2>&1 || fail "rc $? from config.ini"
expect "hash of the run from config.ini" "$(get again params_hash)" "$(get plan params_hash)"

# The dry run knows the bytes of the real one.
run dry --ranks 4 --sync diloco --sync-every 10 --compress int8 --steps 40 --dry-run
has "an average is of" "$out/log"
has "the run    averages 4 times" "$out/log"
run wet --ranks 4 --sync diloco --sync-every 10 --compress int8 --steps 40
expect "averages" "$(get wet syncs)" 4
mib=$(awk -v b="$(get wet bytes_sync_wire)" 'BEGIN {printf "%.2f KiB", b / 1024}')
# shellcheck disable=SC2086
"$train" $common --ranks 4 --sync diloco --sync-every 10 --compress int8 \
    --steps 40 --dry-run >"$out/log"
has "all ranks send $mib" "$out/log"

# So it does with averaged gradients; a replica alone averages nothing.
for way in grad "none"; do
    # shellcheck disable=SC2086
    "$train" $common --ranks 2 --sync $way --steps 40 --dry-run >"$out/log"
    sent=$(sed -n 's/.*which all ranks send //p' "$out/log")
    [ $way = grad ] || has "the run    averages nothing" "$out/log"
    run told --ranks 2 --sync $way --steps 40
    [ $way = none ] || has "exposed; $sent sent by all ranks" "$out/log"
    [ $way = grad ] || has ", of rank 0 alone" "$out/log"
done

# What late workers drop is told.
run late --ranks 4 --sync local --late drop:1e-9 --steps 40
has "samples dropped (" "$out/log"
run in_time --ranks 4 --sync local --late drop:1000 --steps 40
! grep -q "samples dropped" "$out/log" || fail "dropped nothing, told: $(cat "$out/log")"

# At the end of oneshot nothing has been averaged before.
run oneshot --ranks 4 --sync oneshot --steps 30
expect "oneshot's averages" "$(get oneshot syncs)" 1
[ "$(get oneshot local_loss)" != "$(get oneshot eval_loss)" ] ||
    fail "own models of oneshot are as good as their average, to the bit"
run none --ranks 4 --sync none --steps 30
expect "none's own models" "$(get none local_loss)" "$(get none eval_loss)"
expect "none's bytes" "$(get none bytes_sync_wire)" 0
[ $failed -ne 0 ] || echo "ok: what is told"

# --- processes ---

if ! command -v mpirun >/dev/null ||
   ! nm "$train" 2>/dev/null | grep -q tac_comm_create_mpi; then
    echo "not tested: processes (built without MPI)"
    exit $failed
fi
modes=("local --sync-every 3" "diloco --sync-every 4 --worker-size 2 --compress fp4"
    "streaming --sync-every 4 --sync-delay 2" "local --sync-levels 2:2,4:6")
for i in "${!modes[@]}"; do
    # shellcheck disable=SC2086
    run threads$i --ranks 4 --steps 18 --deterministic --sync ${modes[$i]}
    transport=shm
    [ $((i % 2)) -eq 0 ] || transport=mpi
    # shellcheck disable=SC2086
    timeout 60 mpirun -np 4 "$train" $common --steps 18 --deterministic \
        --transport $transport --json "$out/processes$i.json" \
        --sync ${modes[$i]} >"$out/log" 2>&1 || fail "rc $?: ${modes[$i]} over $transport"
    for key in params_hash eval_loss test_accuracy local_loss syncs bytes_sync_wire \
        consensus_distance; do
        expect "${modes[$i]}, $transport: $key" "$(get processes$i $key)" \
            "$(get threads$i $key)"
    done
done
[ $failed -ne 0 ] || echo "ok: threads and processes"

# A killed rank ends all others, wherever they wait: the first rank of a worker
# (2) and one that follows (1), over shared memory and messages.
cat >"$out/rank" <<'END'
echo $$ >"$1/pid.$OMPI_COMM_WORLD_RANK"
shift
exec "$@"
END
killed() { # killed RANK ARGUMENTS...
    local rank=$1 mpi rc=0 from
    shift
    rm -f "$out"/pid.*
    # shellcheck disable=SC2086
    timeout 60 mpirun --enable-recovery -np 4 bash "$out/rank" "$out" "$train" \
        $common --steps 2000000 --eval-every 0 "$@" >"$out/log" 2>&1 &
    mpi=$!
    for _ in $(seq 100); do
        [ "$(cat "$out"/pid.* 2>/dev/null | wc -l)" -eq 4 ] &&
            grep -q memory "$out/log" && break
        sleep 0.1
    done
    sleep 0.5
    from=$(date +%s)
    kill -KILL "$(cat "$out/pid.$rank")"
    wait $mpi || rc=$?
    # With recovery mpirun waits for the others, and its own code says nothing.
    [ $rc -ne 124 ] && [ $(($(date +%s) - from)) -lt 20 ] ||
        fail "rc $rc, $(($(date +%s) - from)) s after SIGKILL of rank $rank: $*"
    grep -q "(process $(cat "$out/pid.$rank")) died" "$out/log" ||
        fail "nobody told of the death: $*"
}
killed 1 --transport shm --sync local --sync-every 1
killed 1 --transport mpi --sync diloco --sync-every 1 --worker-size 2
killed 2 --transport shm --sync diloco --sync-every 50 --worker-size 2
[ $failed -ne 0 ] || echo "ok: killed ranks"
exit $failed
