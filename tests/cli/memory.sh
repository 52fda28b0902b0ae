# The table of memory: predictions against what was counted after a step, for
# models, precisions, optimizers and recompute; and runs that can't fit, whose
# remedies must fit while a batch larger by one must not.
set -u
export LC_ALL=C
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
train=$BUILD/ddp_train

# field KIND COLUMN FILE
field() {
    sed -n "s/.*\"$1\":{\"predicted\":\([0-9]*\),\"measured\":\([0-9]*\)}.*/\\$2/p" "$3"
}

fail() {
    echo "FAILED: $*"
    failed=1
}

# The whole within 10 %, and what is allocated through counting allocators to
# the byte.
check() { # check NAME ARGUMENTS...
    local name=$1 host counted kind
    shift
    rm -rf "$out/run"
    timeout 60 "$train" --data synth:5000 --steps 1 --eval-every 0 --quiet \
        --run-dir "$out/run" "$@" >"$out/log" 2>&1 || {
        fail "$name: rc $?: $(head -n 3 "$out/log")"
        return
    }
    grep '"kind":"memory"' "$out/run/metrics.jsonl" >"$out/line"
    [ "$(wc -l <"$out/line")" -eq 1 ] || fail "$name: no line of memory"
    host=$(sed -n 's/.*"host_predicted":\([0-9]*\).*/\1/p' "$out/line")
    counted=$(sed -n 's/.*"host_measured":\([0-9]*\).*/\1/p' "$out/line")
    awk -v p="${host:-0}" -v m="${counted:-1}" \
        'BEGIN {exit !(p > 0.9 * m && p < 1.1 * m)}' ||
        fail "$name: $host predicted, $counted measured"
    for kind in parameters working_weights gradients optimizer_state \
        optimizer_scratch activations codec_state local_sgd averaged_model; do
        [ -n "$(field $kind 1 "$out/line")" ] &&
            [ "$(field $kind 1 "$out/line")" = "$(field $kind 2 "$out/line")" ] ||
            fail "$name: $kind $(field $kind 1 "$out/line") predicted," \
                "$(field $kind 2 "$out/line") measured"
    done
    awk -v p="$host" -v m="$counted" -v n="$name" \
        'BEGIN {printf "%-44s %9d predicted, %.3f of measured\n", n, p, p / m}'
}

# Sanitizers are slow: they see every third combination.
sanitized=0
grep -q '^TACIT_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" && sanitized=1

# Every optimizer with every precision and model; half of them recompute.
turn=0
for model in cnn mlp:300,300,300; do
    for precision in fp32 fp16 bf16; do
        for optimizer in sgd adamw adafactor adamw8bit; do
            recompute=none
            [ $((turn++ % 2)) -eq 1 ] && recompute=block
            [ $((sanitized * (turn % 3))) -eq 0 ] || continue
            check "$model $precision $optimizer $recompute" --model $model \
                --precision $precision --optimizer $optimizer --dropout 0.1 \
                --recompute $recompute --batch $((32 + turn % 3 * 16))
        done
        turn=$((turn + 1))
    done
done
for codec in fp16 int8 topk:0.01 \
    topk:0.02,bits=2,chunk=4096 powersgd:2,start=0; do
    check "2 ranks, $codec" --ranks 2 --model cnn --compress $codec
done
check "2 ranks, momentum, accumulation" --ranks 2 --model mlp:100 \
    --optimizer sgd --momentum 0.9 --accumulate 2
check "no averaging" --ranks 2 --model mlp:100 --sync none
# A thread's kernels are an estimate, and these models are small.
check "diloco, int8" --ranks 4 --model mlp:300 --sync diloco --compress int8
check "streaming, topk" --ranks 4 --model cnn --sync streaming \
    --compress topk:0.05 --sync-delay 0
check "workers of two" --ranks 4 --model mlp:300 --sync slowmo --worker-size 2
check "levels, moments" --ranks 4 --model mlp:300 --sync local \
    --sync-levels 2:1,4:2 --moments average --compress fp16,ef --steps 4
check "eager" --ranks 3 --model mlp:300 --sync streaming --stale eager \
    --sync-every 3 --sync-delay 3 --sync-alpha 0

# --- a run that does not fit ---

# refused NAME ARGUMENTS...: exit code 2 and one message, in $out/log.
refused() {
    local name=$1 rc=0
    shift
    timeout 60 $train --data synth:5000 --quiet --steps 1 "$@" >"$out/log" 2>&1 || rc=$?
    [ $rc -eq 2 ] || fail "$name: rc $rc, not 2: $(head -n 3 "$out/log")"
    [ "$(grep -c 'would need' "$out/log")" -eq 1 ] || fail "$name: $(cat "$out/log")"
    echo "$name: $(cut -c1-400 "$out/log")"
}

accepted() {
    local name=$1
    shift
    timeout 60 "$train" --data synth:5000 --steps 1 --dry-run "$@" >"$out/table" 2>&1 ||
        fail "$name: refused, too: $(cat "$out/table")"
}

# suggests TEXT
suggests() {
    grep -qF -- "$1" "$out/log" || fail "no '$1' in: $(cat "$out/log")"
}

suggested_batch() {
    sed -n 's/.*what would fit: --batch \([0-9]*\).*/\1/p' "$out/log"
}

deep="--ranks 2 --prefetch 0
      --model mlp:500,500,500,500,500,500,500,500,500,500,500,500"
limit="--memory-limit 230M"
refused "activations" $deep --batch 2000 $limit
suggests "--memory-limit"
suggests "--recompute block"
batch=$(suggested_batch)
if [ -n "$batch" ]; then
    accepted "batch $batch" $deep --batch "$batch" $limit
    refused "batch $batch and one" $deep --batch $((batch + 1)) $limit
else
    fail "no batch was suggested"
fi
# With --dry-run the table of a run that is refused is shown all the same.
timeout 60 "$train" --data synth:5000 --dry-run $deep --batch 2000 $limit \
    >"$out/table" 2>"$out/log"
[ $? -eq 2 ] || fail "a dry run that does not fit: rc is not 2"
grep -q "  activations " "$out/table" || fail "no table: $(cat "$out/table")"
suggests "what would fit"
accepted "recompute" $deep --batch 2000 --recompute block $limit
grep -q "activations" "$out/table" || fail "no table: $(cat "$out/table")"

wide="--model mlp:2000,2000 --batch 8 --memory-limit 75M"
refused "states" $wide
suggests "--optimizer adafactor"
suggests "--optimizer adamw8bit"
accepted "adafactor" $wide --optimizer adafactor
accepted "adamw8bit" $wide --optimizer adamw8bit

# No more micro-steps are suggested than the option takes.
refused "most micro-steps" --model mlp:300 --batch 2000 --accumulate 1048576 \
    --memory-limit 12M
suggests "what would fit: --batch "
grep -q -e --accumulate "$out/log" && fail "--accumulate: $(cat "$out/log")"

# Together or not at all.
refused "nothing fits" --model mlp:2000,2000 --memory-limit 1M
suggests "smaller model"
# Far beyond any machine, and nothing is allocated: the address space of the
# process is too small even for one batch.
if [ $sanitized -eq 0 ]; then
    (ulimit -v 6000000 && refused "a batch of millions" --model cnn \
        --batch 16000000 && exit $failed) || failed=1
fi
if command -v mpirun >/dev/null && nm "$train" | grep -q tac_comm_create_mpi; then
    train="mpirun -np 2 $train"
    refused "two processes" --model mlp:2000,2000 --memory-limit 100M
fi
exit $failed
