# Checkpoints as their user meets them: a run that is stopped by a signal or
# killed goes on, under threads and mpirun, and ends as one that was not; a full
# disk and wrong folders are told in one line.
set -u
: "${BUILD:?set BUILD to the build folder}"
train=$BUILD/ddp_train
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
for name in $(compgen -e | grep '^TACIT_'); do unset "$name"; done

# What ctest sets, when the script is run by hand.
# shellcheck source=scripts/env
. "${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}/scripts/env" 2>/dev/null

common="--model mlp:32,16 --data synth:2000 --batch 8 --dropout 0.2 --threads 1
        --log-every 1 --eval-every 100 --precision fp16 --init-scale 512
        --growth-interval 40"

fail() {
    echo "FAILED: $*"
    [ -f "$out/log" ] && tail -n 15 "$out/log"
    failed=1
}

# want RC TEXT COMMAND...: exit code, and TEXT in exactly one line.
want() {
    local rc=$1 text=$2 got=0
    shift 2
    timeout 60 "$@" >"$out/log" 2>&1 || got=$?
    if [ "$got" -ne "$rc" ]; then
        fail "rc $got, not $rc: $*"
    elif [ -n "$text" ] && [ "$(grep -cF -- "$text" "$out/log")" -ne 1 ]; then
        fail "not one line with '$text': $*"
    else
        echo "ok: $*" | tr -s ' \n' ' ' | cut -c1-150
    fi
}

# What a run comes to, without times: hash, counts, losses of all steps.
digest() {
    grep -oE '"(params_hash|steps|attempts|skipped_steps|samples|train_loss|eval_loss|test_loss|loss_scale|syncs)":[^,}]*' "$1/summary.json"
    grep -oE '"(kind|step|attempts|epoch|loss|accuracy|learning_rate|loss_scale|eval_loss|eval_accuracy)":[^,}]*' "$1/metrics.jsonl"
}

same() { # same NAME FOLDER FOLDER
    if digest "$2" >"$out/a" && digest "$3" >"$out/b" && [ -s "$out/a" ] &&
        cmp -s "$out/a" "$out/b"; then
        echo "same: $1"
    else
        fail "$1: $3 is not $2"
        diff "$out/a" "$out/b" | head -n 5
    fi
}

# interrupt SIGNAL FOLDER COMMAND...: sends it once a checkpoint was saved;
# sets rc.
interrupt() {
    local signal=$1 folder=$2 pid i
    shift 2
    "$@" >"$out/log" 2>&1 &
    pid=$!
    for i in $(seq 600); do
        [ -e "$folder/checkpoints/latest" ] && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill "-$signal" "$pid" 2>/dev/null
    wait "$pid"
    rc=$?
}

# ---- threads ----------------------------------------------------------------

run="$train --ranks 2 $common --epochs 2 --save-every 20"
want 0 "summary.json, report.html, checkpoints/" $run --run-dir "$out/whole"
want 0 "nothing is left to train: --epochs ends at step" $run --run-dir "$out/whole" --resume auto
want 0 "resumed" $run --run-dir "$out/part" --resume "$out/whole/checkpoints/step-00000020"
grep -q "step-00000020: step 20, epoch 0.17" "$out/log" || fail "the banner does not say where it goes on"
[ "$(grep -c '"kind":"train"' "$out/part/metrics.jsonl")" -eq "$(($(grep -c '"kind":"train"' "$out/whole/metrics.jsonl") - 20))" ] ||
    fail "lines of metrics.jsonl after resuming"
# Into the same folder: the lines after step 40 come anew.
cp -r "$out/whole" "$out/again"
printf '{"cut by a cra' >>"$out/again/metrics.jsonl"
want 0 "step 40" $run --run-dir "$out/again" --resume "$out/again/checkpoints/step-00000040"
same "resumed in its own folder" "$out/whole" "$out/again"
# Nothing left to do: the same result once more.
want 0 "resumed" $run --run-dir "$out/again" --resume auto
same "resumed at its end" "$out/whole" "$out/again"

# A long run that a signal ends, then goes on to an end that comes sooner.
long="$train --ranks 2 $common --schedule constant --save-every 20"
interrupt TERM "$out/term" $long --steps 100000000 --run-dir "$out/term" --resume auto
[ $rc -eq 75 ] || fail "SIGTERM: rc $rc, not 75"
grep -q "to go on from step [0-9]*: the same command with --resume auto" "$out/log" || fail "SIGTERM: how to resume"
stopped=$(sed -n 's/^to go on from step \([0-9]*\).*/\1/p' "$out/log")
end=$((stopped + 30))
want 0 "step $stopped, epoch" $long --steps "$end" --run-dir "$out/term" --resume auto
want 0 "" $long --steps "$end" --run-dir "$out/straight" --quiet
same "stopped by SIGTERM at step $stopped" "$out/straight" "$out/term"

# Killed: goes on from the last checkpoint.
interrupt KILL "$out/kill" $long --steps 100000000 --run-dir "$out/kill"
[ $rc -eq 137 ] || fail "SIGKILL: rc $rc"
at=$(sed 's/step-0*//' "$out/kill/checkpoints/latest")
want 0 "step $at, epoch" $long --steps "$((at + 25))" --run-dir "$out/kill" --resume auto
want 0 "" $long --steps "$((at + 25))" --run-dir "$out/straight2" --quiet
same "killed after step $at" "$out/straight2" "$out/kill"

# Without --save-every a signal ends the run as ever.
"$train" --ranks 2 $common --steps 100000000 --run-dir "$out/none" >"$out/log" 2>&1 &
pid=$!
for i in $(seq 200); do [ -s "$out/none/metrics.jsonl" ] && break; sleep 0.05; done
kill -TERM $pid
wait $pid
rc=$?
[ $rc -eq 1 ] && ! grep -q "to go on" "$out/log" || fail "without saving: rc $rc"

# ---- mistakes ---------------------------------------------------------------

plain="$train --ranks 2 $common --epochs 2"
want 2 "Can't find a valid checkpoint at $out/nowhere" $plain --resume "$out/nowhere"
mkdir "$out/empty"
want 2 "No valid checkpoint found in output directory $out/empty" $plain --resume "$out/empty"
want 0 "step 40, epoch" $run --run-dir "$out/again" --resume "$out/again/checkpoints/step-00000040" --dry-run
want 2 "was saved with 16: give --batch 8" $plain --batch 4 --resume "$out/whole"
want 2 "give --batch 4" $plain --ranks 4 --resume "$out/whole"
# A new run in an old folder is warned of what it will not continue.
want 0 "has checkpoints of an earlier run" $run --steps 1 --epochs 0 --run-dir "$out/kill"
# The latest is damaged: the one before it is taken, aloud.
printf 'x' >"$out/again/checkpoints/$(cat "$out/again/checkpoints/latest")/model.safetensors"
want 0 "warning: $out/again/checkpoints/step-" $run --run-dir "$out/again" --resume auto

# A full disk: one message, all ranks end, and what was saved is still there. A
# limit on the size of files (in KiB) does for a disk.
(
    ulimit -f 300
    failed=0
    want 0 "" $train --ranks 2 $common --model mlp:4 --steps 3 --run-dir "$out/full" --save-every 1
    want 1 "free space" $train --ranks 2 $common --model mlp:600 --steps 3 --run-dir "$out/full" --save-every 1
    exit $failed
) || failed=1
[ "$(cat "$out/full/checkpoints/latest")" = step-00000003 ] || fail "the checkpoint before a full disk is gone"
want 0 "step 3, epoch" $train --ranks 2 $common --model mlp:4 --steps 4 --run-dir "$out/full" --resume auto

# ---- processes --------------------------------------------------------------

if command -v mpirun >/dev/null && nm "$train" 2>/dev/null | grep -q tac_comm_create_mpi; then
    mpi="mpirun -np 2 $train $common --epochs 2 --save-every 20 --quiet"
    want 0 "" $mpi --run-dir "$out/mpi" --resume "$out/whole/checkpoints/step-00000060"
    digest "$out/mpi" | grep params_hash >"$out/a"
    digest "$out/whole" | grep params_hash >"$out/b"
    cmp -s "$out/a" "$out/b" && echo "same: threads' checkpoint under mpirun" || fail "mpirun goes on differently"
    # Other processes than there were threads, with the same samples in a step.
    want 0 "" mpirun -np 4 $train $common --epochs 2 --save-every 20 --quiet --batch 4 --run-dir "$out/mpi4" --resume "$out/whole/checkpoints/step-00000060"
    for key in samples steps attempts epochs; do
        for dir in mpi4 whole; do grep -o "\"$key\":[^,}]*" "$out/$dir/summary.json"; done | uniq | wc -l | grep -qx 1 ||
            fail "4 processes count other $key than 2 threads"
    done
    long="mpirun -np 2 $train $common --schedule constant --save-every 20"
    interrupt TERM "$out/mpiterm" $long --steps 100000000 --run-dir "$out/mpiterm"
    at=$(sed 's/step-0*//' "$out/mpiterm/checkpoints/latest")
    # mpirun that was itself signalled has a code of its own, and may have gone
    # before it passed the last line on.
    [ $rc -eq 1 ] || [ "$(grep -c 'to go on from step' "$out/log")" -eq 1 ] ||
        fail "mpirun, SIGTERM: rc $rc"
    [ $rc -eq 75 ] || [ $rc -eq 1 ] || fail "mpirun, SIGTERM: rc $rc"
    want 0 "" $long --steps "$((at + 15))" --run-dir "$out/mpiterm" --resume auto --quiet
    want 0 "" $long --steps "$((at + 15))" --run-dir "$out/mpistraight" --quiet
    same "mpirun, stopped at step $at" "$out/mpistraight" "$out/mpiterm"
    want 2 "No valid checkpoint found" mpirun -np 2 $train $common --resume "$out/empty"
else
    echo "not tested: mpirun (built without MPI)"
fi
exit $failed
