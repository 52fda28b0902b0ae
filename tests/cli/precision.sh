#!/bin/bash
# ddp_train in other precisions and with other optimizers: what it prints and
# writes, what it refuses and why, an inf on one rank, and giving up. Needs
# $BUILD, the build folder.
set -euo pipefail

train=${BUILD:?set BUILD to the build folder}/ddp_train
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
# shellcheck source=scripts/env
. "$source_dir/scripts/env" 2>/dev/null

tiny=(--model mlp:32 --data synth:512 --batch 8 --steps 12 --log-every 4)

fail() {
    echo "FAIL: $*"
    echo "--- command: $command_line, rc $rc"
    head -n 40 "$work/out" "$work/err"
    exit 1
}

# run RC ARGUMENT...: ddp_train, its output in $work.
run() {
    local want=$1
    shift
    command_line="$*"
    echo "- $command_line" | cut -c1-110
    rc=0
    timeout -k 5 60 "$train" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc is not $want"
}

in_out() { grep -qE -- "$1" "$work/out" || fail "stdout lacks /$1/"; }
in_file() { grep -qE -- "$1" "$2" || fail "$2 lacks /$1/"; }

once_in_err() {
    [ "$(grep -cF -- "$1" "$work/err")" -eq 1 ] || fail "not once in stderr: $1"
}

# mistake TEXT ARGUMENT...: rc 2, nothing on stdout, one line with the remedy.
mistake() {
    local text=$1
    shift
    run 2 "${tiny[@]}" "$@"
    [ ! -s "$work/out" ] || fail "stdout should be empty"
    once_in_err "$text"
}

# value KEY FILE: of an object in one line or several.
value() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1
}

expect() { # KEY VALUE, of the summary
    local got
    got=$(value "$1" "$work/run/summary.json")
    [ "$got" = "$2" ] || fail "$1 is $got, not $2"
}

echo "precisions and optimizers, two ranks"
for precision in fp32 fp16 bf16; do
    for optimizer in sgd adamw adafactor adamw8bit; do
        run 0 "${tiny[@]}" --ranks 2 --precision $precision \
            --optimizer $optimizer --run-dir "$work/run"
        in_out "precision +$precision"
        expect precision $precision
        expect optimizer $optimizer
        expect steps 12
        expect skipped_steps 0
    done
done
run 0 "${tiny[@]}" --precision bf16 --rounding stochastic
in_out 'rounded stochastically'
run 0 "${tiny[@]}" --precision fp16
in_out 'fp16 over f32 parameters.*half.*loss scale 65536, dynamic'
in_out 'loss scale 65536, 0 of 12 steps skipped'
run 0 "${tiny[@]}" --precision fp16 --loss-scale 128
in_out 'loss scale 128, static'
run 0 "${tiny[@]}" --precision fp16 --loss-scale none
if grep -q 'loss scale' "$work/out"; then fail "a scale without scaling"; fi
run 0 "${tiny[@]}" --loss-scale dynamic --growth-interval 4 --run-dir "$work/run"
expect loss_scale 524288
run 0 "${tiny[@]}" --precision fp16 --init-scale 1024 --max-scale 2048 \
    --growth-interval 4 --run-dir "$work/run"
expect loss_scale 2048

echo "the same bits with recomputation"
run 0 "${tiny[@]}" --precision fp16 --dropout 0.3 --run-dir "$work/run"
hash=$(value params_hash "$work/run/summary.json")
run 0 "${tiny[@]}" --precision fp16 --dropout 0.3 --recompute block \
    --run-dir "$work/run"
expect params_hash "$hash"

echo "an inf on one of four ranks"
run 0 "${tiny[@]}" --ranks 4 --precision fp16 --inject-inf 3:1 --clip-norm 1 \
    --schedule linear --run-dir "$work/run"
expect attempts 12
expect steps 11
expect skipped_steps 1
expect loss_scale 32768
expect syncs 12
in_out '1 of 12 steps skipped'
in_out 'equal on all ranks'
metrics=$work/run/metrics.jsonl
in_file '"kind":"train","step":3,"attempts":4,' "$metrics"
in_file '"step":11,"attempts":12,' "$metrics"
in_file '"loss_scale":32768,"skipped_steps":1,"nonfinite_losses":0' "$metrics"
# Linear from 0.003 over 12 steps: the 11th is the last that was applied.
in_file '"learning_rate":0.000[45]' "$metrics"
if grep -q '"grad_norm":null' "$metrics"; then fail "a norm is no number"; fi
run 0 "${tiny[@]}" --ranks 4 --precision fp16 --inject-inf 3:1 --sync none \
    --quiet
run 0 "${tiny[@]}" --ranks 2 --precision fp16 --inject-inf 2-4:1 \
    --compress fp16 --run-dir "$work/run"
expect skipped_steps 3
expect loss_scale 8192

# A codec spreads an inf over a block, with what pads it; that is over with the
# step.
for codec in int8 int8,noef fp4 fp16 bf16 topk:0.1 topk:0.1,bits=4 \
    powersgd:2; do
    run 0 "${tiny[@]}" --ranks 2 --precision fp16 --inject-inf 2:1 \
        --compress $codec --model mlp:8 --run-dir "$work/run"
    expect skipped_steps 1
done

echo "giving up"
run 3 "${tiny[@]}" --ranks 4 --precision fp16 --inject-inf 2-200:3 --steps 150 \
    --quiet
once_in_err 'rank 3, step 101: 100 steps in a row were skipped'
once_in_err 'gradient of fc2.'
once_in_err 'loss scale of 1.'
run 3 "${tiny[@]}" --ranks 4 --precision fp16 --inject-inf 2-200:3 --quiet \
    --max-skips 5 --sync none
once_in_err 'rank 3, step 6: 5 steps in a row'
# In the first steps, too, only the rank whose gradients are bad is to blame.
run 3 "${tiny[@]}" --ranks 4 --precision fp16 --inject-inf 1-200:2 --quiet \
    --max-skips 2
once_in_err 'rank 2, step 2: 2 steps in a row were skipped: the gradient of fc2.'
run 3 "${tiny[@]}" --precision fp16 --inject-inf 1 --quiet --max-skips 1 \
    --loss-scale 1024
once_in_err 'averaged gradient of fc2.'
once_in_err 'Lower --loss-scale, or'
run 0 "${tiny[@]}" --precision fp16 --inject-inf 1-200 --max-skips 0 --quiet
run 3 "${tiny[@]}" --ranks 4 --inject-inf 2:1 --quiet
once_in_err 'the training loss is no longer a number'

echo "underflow"
run 0 "${tiny[@]}" --ranks 2 --precision fp16 --underflow-every 3 \
    --run-dir "$work/under"
in_out 'f32 gradients: % of the nonzero values, 4 steps'
in_out '^ +fc1.weight +[0-9.]+ +[0-9.]+'
in_out 'underflow.svg'
[ "$(grep -c '"kind":"underflow"' "$work/under/metrics.jsonl")" -eq 4 ] ||
    fail "not a line a tensor"
in_file '"tensor":"fc1.weight","values":100352,' "$work/under/metrics.jsonl"
in_file '^<svg xmlns' "$work/under/underflow.svg"
in_file '>fc2.bias<' "$work/under/underflow.svg"
in_file 'loss scale 65536' "$work/under/underflow.svg"
in_file '</svg>$' "$work/under/underflow.svg"
run 0 "${tiny[@]}" --run-dir "$work/plain"
[ ! -e "$work/plain/underflow.svg" ] || fail "a picture of nothing"
# Without a scaler --init-scale is the scale of the report.
run 0 "${tiny[@]}" --underflow-every 4 --init-scale 1048576
in_out 'at loss scale 1048576$'
[ ! -s "$work/err" ] || fail "a warning of what is used"
run 0 "${tiny[@]}" --underflow-every 100
in_out 'no step was looked at: --underflow-every 100'

echo "parameter groups"
run 0 "${tiny[@]}" --dry-run --optimizer adamw8bit --weight-decay 0.1 \
    --param-groups 'fc1.*:lr=0.5,bits=32;*.bias:wd=0.2'
in_out 'fc1.weight: lr x 0.5, weight decay 0.1, state exp_avg f32.*\(fc1\.\*\)'
in_out 'fc2.bias: lr x 1, weight decay 0.2, .*\(\*\.bias\)'
in_out 'fc2.weight: lr x 1, weight decay 0.1, .*\(no group\)'

echo "mistakes"
mistake 'that sets the rate by itself. Leave out --lr, or leave out --relative-step' \
    --optimizer adafactor --relative-step --lr 0.1
mistake 'add --relative-step, or leave out --warmup-init' --optimizer adafactor \
    --warmup-init
run 0 "${tiny[@]}" --optimizer adafactor --lr 1e-3 --quiet
run 0 "${tiny[@]}" --optimizer adafactor --relative-step --scale-parameter \
    --warmup-init --quiet
mistake '--momentum means nothing to --optimizer adamw' --momentum 0.5
mistake 'leave it out, or use adamw or adamw8bit' --optimizer adafactor --eps 1
mistake '--nesterov means nothing' --nesterov
mistake '--scale-parameter means nothing' --scale-parameter
mistake '--loss-scale huge is neither dynamic' --loss-scale huge
mistake '--init-scale 0.5 is not between' --precision fp16 --init-scale 0.5
mistake '--init-scale 33554432 is not between --min-scale 1 and --max-scale 16777216' \
    --precision fp16 --init-scale 33554432
# What only a dynamic scale has is not ignored silently without one.
unused() {
    local text=$1
    shift
    run 0 "${tiny[@]}" --dry-run --ranks 2 "$@"
    once_in_err "$text"
}
unused '--growth-interval is not used: --loss-scale auto with --precision bf16' \
    --precision bf16 --growth-interval 4
unused '--min-scale is not used' --min-scale 8 --max-scale 4
unused '--max-skips is not used' --max-skips 4
unused '--init-scale is not used: --loss-scale 64' --loss-scale 64 --init-scale 8
run 0 "${tiny[@]}" --dry-run --precision fp16 --growth-interval 4 --max-skips 4
[ ! -s "$work/err" ] || fail "a warning of what is used"
mistake 'add --precision fp16 or bf16' --rounding stochastic
mistake 'not STEP[-STEP][:RANK]' --inject-inf 0
mistake 'no rank 2 among 2' --ranks 2 --inject-inf 1:2
mistake 'a group is GLOB:lr=X,wd=X,bits=32' --param-groups '*:momentum=1'
mistake 'fits none of' --param-groups 'conv*:lr=2'
mistake 'accepted: fp32, fp16, bf16' --precision fp8
mistake 'accepted: auto, or 0 to' --lr fast
mistake 'accepted: none, block' --recompute all
echo "ok"
