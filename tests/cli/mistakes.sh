# Mistakes that once went unnoticed, hung, or were told too late.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
train=$BUILD/ddp_train
tiny="--data synth:200 --model mlp:8 --steps 4 --quiet"

# want RC TEXT COMMAND...: exit code, and TEXT somewhere in the output.
want() {
    local rc=$1 text=$2 got=0
    shift 2
    timeout 60 "$@" >"$out/log" 2>&1 || got=$?
    if [ "$got" -ne "$rc" ] || { [ -n "$text" ] && ! grep -qF -- "$text" "$out/log"; }; then
        echo "FAILED: rc $got, not $rc, or no '$text': $*"
        head -n 20 "$out/log"
        failed=1
    else
        echo "ok: $*" | cut -c1-150
    fi
}

# A folder, or binary garbage, is no configuration file.
want 2 "--config" "$train" $tiny --config "$out"
want 2 "longer than" "$train" $tiny --config /dev/zero
# A long value is refused by line, not cut in two; a long comment is fine.
printf '# %0300d\nmodel = mlp:%0300d\n' 0 1 >"$out/long.ini"
want 2 "line 2 of" "$train" $tiny --config "$out/long.ini"
printf '# %0300d\nsteps = 3\n' 0 >"$out/comment.ini"
want 0 "" "$train" --data synth:200 --model mlp:8 --quiet --config "$out/comment.ini"
# Files that can't be written are found out before training, not after.
want 2 "--json" "$train" --data synth:200 --model mlp:8 --steps 4 --json "$out/none/s.json"
grep -q '^epoch' "$out/log" && { echo "FAILED: it trained first"; failed=1; }
want 2 "--trace" "$train" $tiny --trace "$out/none/t.json"
want 2 "--run-dir is empty" "$train" $tiny --run-dir=
# Steps are written as numbers are; 00 once divided by zero.
want 2 "--save-every 00 is neither" "$train" $tiny --run-dir "$out/run" --save-every 00
want 2 "--eval-every +3 is neither" "$train" $tiny --eval-every +3
# The second run in a folder is told so, and the first is not disturbed.
"$train" $tiny --steps 100000000 --run-dir "$out/run" --save-every 1000000 &
first=$!
for _ in $(seq 200); do [ -s "$out/run/metrics.jsonl" ] && break; sleep 0.05; done
want 2 "another run is writing into the run folder $out/run" "$train" $tiny --run-dir "$out/run"
kill -TERM $first
wait $first
[ $? -eq 75 ] || { echo "FAILED: the first run of a folder was disturbed"; failed=1; }
want 0 "" "$train" $tiny --run-dir "$out/run"
# Nothing was skipped but losses: a mean of none is nan, not -nan.
want 0 "train loss nan" "$train" $tiny --no-quiet --precision fp16 --lr 1e6 --steps 60 --max-skips 0
grep -q -e -nan "$out/log" && { echo "FAILED: -nan"; failed=1; }
# Evaluation between two lines of metrics has losses to show.
want 0 "train loss 2." "$train" --data synth:400 --model mlp:8 --steps 8 --eval-every 2 --log-every 1000
grep -q nan "$out/log" && { echo "FAILED: nan"; failed=1; }
want 2 "out of range" "$train" $tiny --ranks 4096
# "-" is standard output, which then has nothing else.
"$train" $tiny --no-quiet --json - >"$out/log" 2>/dev/null
[ "$(wc -l <"$out/log")" -eq 1 ] && grep -q '^{.*"params_hash"' "$out/log" && [ ! -e - ] ||
    { echo "FAILED: --json - printed something else"; failed=1; }
# What is printed has arrived, or the program says that it has not.
for program in "$train $tiny --steps 3 --no-quiet" "$BUILD/tacit_info" \
    "$BUILD/bench/localsgd_sim --table streaming-diloco" \
    "$BUILD/bench/comm_bench --help" "$BUILD/bench/efficiency --help"; do
    rc=0
    $program >/dev/full 2>"$out/log" || rc=$?
    [ $rc -eq 1 ] && grep -q "could not be written" "$out/log" ||
        { echo "FAILED: $program >/dev/full: exit code $rc"; failed=1; }
done
want 2 "12 (fewer" "$train" --model mlp:8 --data synth:11

if command -v mpirun >/dev/null && nm "$train" | grep -q tac_comm_create_mpi; then
    want 2 "some ranks were given --help" mpirun -np 2 "$train" $tiny : -np 1 "$train" --help
    want 0 "Examples:" mpirun -np 2 "$train" --help
    want 2 "isa=ref" mpirun -np 2 "$train" $tiny : -np 1 "$train" $tiny --isa ref
    want 2 "trace=" mpirun -np 2 "$train" $tiny : -np 1 "$train" $tiny --trace "$out/t.json"
fi
exit $failed
