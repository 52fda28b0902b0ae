# Local modes that are killed at any moment, again and again, and go on: threads
# and mpirun end with the model of a run that nothing happened to. The same for
# SIGTERM, which saves first and averages nothing for it. Files of other runs
# and damaged ones are told in one line.
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

common="--model mlp:32 --data synth:600 --batch 8 --dropout 0.2 --threads 1
        --log-every 5 --eval-every 25 --steps 60 --quiet"

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
        echo "ok: ... $(echo "$*" | tr -s ' \n' ' ' | grep -oE '.{0,120}$')"
    fi
}

# What a run comes to, without times.
digest() {
    grep -oE '"(params_hash|steps|attempts|skipped_steps|samples|syncs|bytes_sync_logical|bytes_sync_wire|bytes_predicted|train_loss|eval_loss|test_loss|local_loss|consensus_distance|delta_norm|loss_scale)":[^,}]*' "$1/summary.json"
    grep -oE '"(kind|step|attempts|epoch|loss|accuracy|learning_rate|loss_scale|eval_loss|eval_accuracy|syncs)":[^,}]*' "$1/metrics.jsonl"
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

# A process of the job to be killed: itself, or one of mpirun's ranks.
victim() {
    local ranks
    case $2 in
    mpirun)
        mapfile -t ranks < <(ps --ppid "$1" -o pid= | tr -d ' ')
        [ ${#ranks[@]} -gt 0 ] && echo "${ranks[RANDOM % ${#ranks[@]}]}"
        ;;
    *) echo "$1" ;;
    esac
}

# killed TIMES FOLDER LEAST SPAN COMMAND...: SIGKILL after LEAST ms and a random
# part of SPAN, until it has reached its end; at most so many times.
killed() {
    local most=$1 folder=$2 least=$3 span=$4 times=0 rc=1 pid who
    shift 4
    while [ $rc -ne 0 ] && [ $times -lt $((most + 2)) ]; do
        "$@" --run-dir "$folder" --resume auto >"$out/log" 2>&1 &
        pid=$!
        if [ $times -lt "$most" ]; then
            sleep "$(printf '0.%03d' $((least + RANDOM % span)))"
            who=$(victim $pid "$1")
            [ -n "$who" ] && kill -KILL "$who" 2>/dev/null
        fi
        wait $pid
        rc=$?
        # 2: whatever state was left must be one to go on from.
        case $rc in 0 | 1 | 137) ;; *) fail "killed: rc $rc" ;; esac
        times=$((times + 1))
    done
    [ $rc -eq 0 ] || fail "never ended"
    echo "killed $((times - 1)) times, last checkpoint $(cat "$folder/checkpoints/latest")"
}

# try NAME TIMES FOLDER LEAST SPAN COMMAND...
try() {
    local name=$1 most=$2 folder=$3 least=$4 span=$5
    shift 5
    want 0 "" "$@" --save-every 0 --run-dir "$folder-straight"
    killed "$most" "$folder" "$least" "$span" "$@" 2>/dev/null
    same "$name" "$folder-straight" "$folder"
}

# ---- killed -----------------------------------------------------------------

try "delayed deltas, int8" 4 "$out/late" 60 400 "$train" --ranks 4 $common \
    --sync diloco --sync-every 8 --sync-delay 5 --compress int8 --save-every 1
try "workers, a scaler" 4 "$out/workers" 60 400 "$train" --ranks 4 $common \
    --sync streaming --sync-every 6 --worker-size 2 --precision fp16 \
    --init-scale 1024 --growth-interval 9 --inject-inf 11:1 --save-every 3
mpi=0
if command -v mpirun >/dev/null && nm "$train" 2>/dev/null | grep -q tac_comm_create_mpi; then
    mpi=1
    try "mpirun, eager" 3 "$out/eager" 300 600 mpirun -np 2 "$train" $common \
        --sync diloco --sync-every 4 --sync-delay 4 --stale eager --save-every 2
else
    echo "not tested: mpirun (built without MPI)"
fi

# ---- stopped ----------------------------------------------------------------

# Signals it once there is a checkpoint; then it goes on to its end.
stopped() { # stopped NAME FOLDER COMMAND...
    local name=$1 folder=$2 pid rc i
    shift 2
    "$@" --steps 100000000 --save-every 5 --run-dir "$folder" >"$out/log" 2>&1 &
    pid=$!
    for i in $(seq 600); do
        [ -e "$folder/checkpoints/latest" ] && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.03
    done
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"
    rc=$?
    [ $rc -eq 75 ] || { [ "$1" = mpirun ] && [ $rc -eq 1 ]; } || fail "$name: SIGTERM: rc $rc"
    i=$((10#$(sed 's/step-0*//' "$folder/checkpoints/latest") + 7))
    want 0 "" "$@" --steps $i --save-every 5 --run-dir "$folder" --resume auto
    want 0 "" "$@" --steps $i --run-dir "$folder-straight"
    same "$name, stopped at step $((i - 7))" "$folder-straight" "$folder"
}

small="$common --log-every 1 --eval-every 1000000 --schedule constant"
stopped "threads" "$out/term" "$train" --ranks 4 $small --sync slowmo --sync-every 7
[ $mpi -eq 0 ] ||
    stopped "mpirun" "$out/mpiterm" mpirun -np 4 "$train" $small --sync streaming --sync-every 7 --sync-delay 3 --worker-size 2

# ---- refused ----------------------------------------------------------------

run="$train --ranks 4 $common --sync diloco --sync-every 8 --sync-delay 5 --compress int8"
at=$out/late/checkpoints/step-00000030
want 2 "give --sync diloco" "$train" --ranks 4 $common --sync slowmo --sync-every 8 --resume "$at"
want 2 "give --sync diloco" "$train" --ranks 4 $common --resume "$at"
want 2 "give --sync-every 8" $run --sync-every 16 --resume "$at"
want 2 "start 4 ranks" $run --ranks 2 --resume "$at"
cp -r "$out/late" "$out/mixed"
mixed=$out/mixed/checkpoints/step-00000030
cp "$out/late/checkpoints/step-00000031/rank-00001.safetensors" "$mixed/"
want 2 "rank-00001.safetensors has run.attempts 31 instead of 30" $run --resume "$mixed"
cp "$at/rank-00002.safetensors" "$mixed/rank-00001.safetensors"
want 2 "rank-00001.safetensors has run.rank 2 instead of 1" $run --resume "$mixed"
cp "$at/rank-00001.safetensors" "$mixed/rank-00001.safetensors"
want 0 "" $run --resume "$mixed"
# The latest has lost a rank's file: the one before it is taken, aloud.
truncate -s 100 "$out/mixed/checkpoints/step-00000060/rank-00003.safetensors"
want 0 "warning: $out/mixed/checkpoints/step-00000060" $run --no-quiet --run-dir "$out/mixed" --resume auto
same "from the one before" "$out/late-straight" "$out/mixed"
exit $failed
