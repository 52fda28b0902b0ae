#!/bin/bash
# 03_trainer as threads and as processes: the same parameters, and the files of
# a run. SIGUSR1, as batch systems send it before the end, is SIGTERM: a
# checkpoint, exit code 75, and the run goes on as if nothing had been. Needs
# $BUILD.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
example=$BUILD/examples/03_trainer
train=$BUILD/ddp_train
cd "$out" || exit 1

fail() {
    echo "FAILED: $*"
    failed=1
}

# hash COMMAND...: the params_hash that it prints.
hash() {
    timeout 100 "$@" >log 2>&1 || { fail "rc $?: $*"; head -n 20 log; }
    sed -n 's/^params_hash //p' log
}

if [ -e /usr/share/datasets/fashion-mnist ]; then
    threads=$(hash "$example" --ranks 2 --threads 1)
    [ -n "$threads" ] || fail "03_trainer prints no params_hash"
    for file in config.ini metrics.jsonl summary.json checkpoints; do
        [ -e "run/$file" ] || fail "no run/$file"
    done
    grep -q '"kind":"eval".*"eval_accuracy":0\.[5-9]' run/metrics.jsonl ||
        fail "no evaluation in metrics.jsonl"
    if command -v mpirun >/dev/null && nm "$example" | grep -q tac_comm_create_mpi; then
        processes=$(hash mpirun -np 2 "$example" --threads 1)
        [ "$threads" = "$processes" ] || fail "threads $threads, processes $processes"
    fi
else
    echo "not run: 03_trainer (dataset-fashion-mnist is not installed)"
fi

# story FILE: what is told of the run in the end, without times.
story() { grep -oE '"(params_hash|eval_loss|steps|samples)":"?[^,}]*' "$1/summary.json"; }

options="--data synth:4000 --model mlp:64 --ranks 2 --threads 1 --quiet --epochs 3 --save-every 1000"
# shellcheck disable=SC2086
timeout 100 "$train" $options --run-dir whole || fail "rc $?"
# shellcheck disable=SC2086
"$train" $options --run-dir part &
pid=$!
for _ in $(seq 400); do
    [ -s part/metrics.jsonl ] && break
    sleep 0.01
done
kill -USR1 $pid
wait $pid
rc=$?
# A fast machine may have been done by then.
[ $rc -eq 75 ] || [ $rc -eq 0 ] || fail "rc $rc after SIGUSR1"
[ $rc -eq 75 ] && [ ! -e part/checkpoints/latest ] && fail "no checkpoint"
# shellcheck disable=SC2086
timeout 100 "$train" $options --run-dir part --resume auto || fail "rc $?: resuming"
[ "$(story whole)" = "$(story part)" ] || {
    fail "the resumed run is another one"
    story whole
    story part
}
exit $failed
