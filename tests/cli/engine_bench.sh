#!/bin/bash
# engine_bench as its user meets it: a short run of both modes, the keys of its
# JSON, mistakes and exit codes. Nothing is said about speed.
set -euo pipefail

bench=${BUILD:?set BUILD to the build folder}/bench/engine_bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

fail() {
    echo "FAIL: $*"
    head -n 40 "$work/out" "$work/err" 2>/dev/null || true
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

echo "- help and configuration"
run 0 "$bench" --help
has "$work/out" --batch
has "$work/out" mlp
run 0 "$bench" --version
run 0 "$bench" --print-config --batch 3
has "$work/out" '^batch = 3 .*command line'

echo "- a model"
run 0 "$bench" --model mlp:8 --batch 4 --steps 8 --threads 1 --seconds 0.001 \
    --json "$work/m.json"
has "$work/out" '^peak '
has "$work/out" '% of the peak$'
for key in model batch seq precision threads step_ms forward_ms backward_ms \
    update_ms flop_per_step gflops peak_gflops peak_share; do
    has "$work/m.json" "\"$key\":"
done
# 2 x (784 x 8 + 8 x 10) forward and for weights, 2 x 80 for data, 4 samples.
has "$work/m.json" '"flop_per_step":102272'
run 0 "$bench" --model mlp:8 --batch 4 --steps 8 --threads 1 --seconds 0.001 \
    --optimizer adamw --quiet
[ ! -s "$work/out" ] || fail "--quiet prints"

echo "- optimizers"
run 0 "$bench" --optimizers --small --threads 1 --seconds 0.001 \
    --json "$work/o.json"
has "$work/out" '^cnn *adamw8bit '
for key in shape optimizer parameters state_bytes state_bytes_per_parameter \
    state_bytes_per_matrix_parameter scratch_bytes resident_growth_bytes \
    heap_growth_after_first_step_bytes pass_seconds pass_bytes pass_gb_per_s \
    update_gb_per_s share_of_update; do
    has "$work/o.json" "\"$key\":"
done
has "$work/o.json" '"parameters":421642'
has "$work/o.json" '"optimizer":"adamw","parameters":421642,"state_bytes":33'

echo "- precisions in turns"
run 0 "$bench" --model mlp:8 --batch 4 --steps 8 --threads 1 --seconds 0.001 \
    --precision fp32,fp16,bf16 --optimizer adamw --json "$work/p.json"
has "$work/out" '^ratio  bf16 takes '
has "$work/p.json" '"rows":\['
for name in fp32 fp16 bf16; do
    has "$work/p.json" "\"precision\":\"$name\""
done
has "$work/p.json" '"step_ratio":'
run 0 "$bench" --model mlp:8 --batch 4 --steps 8 --threads 1 --seconds 0.001 \
    --precision bf16 --json "$work/b.json"
has "$work/b.json" '^{"model":"mlp:8","batch":4,"seq":null,"precision":"bf16"'

echo "- kernels"
run 0 "$bench" --ops --batch 2 --threads 2 --seconds 0.001 --json "$work/o.json"
for name in linear_forward conv2d_backward_weights conv2d_pool_backward adamw; do
    has "$work/out" "^$name "
    has "$work/o.json" "\"op\":\"$name\""
done
run 0 "$bench" --ops --batch 2 --threads 2 --seconds 0.001 --precision bf16 \
    --json "$work/h.json"
has "$work/h.json" '"precision":"bf16"'
has "$work/h.json" '"kernels":"half('

echo "- a configuration file"
printf '[bench]\nmodel = mlp:4\nbatch = 2\n' >"$work/a.ini"
run 0 "$bench" --config "$work/a.ini" --print-config
has "$work/out" '^model = mlp:4'

echo "- mistakes"
run 2 "$bench" --bach 3
has "$work/err" batch
run 2 "$bench" --batch 0
run 2 "$bench" --model transformer --steps 8
has "$work/err" cnn
run 2 "$bench" --precision fp32,fp8 --steps 8
has "$work/err" bf16
run 2 "$bench" --precision , --steps 8
run 2 "$bench" --ops --precision fp32,bf16
run 2 "$bench" --config "$work/missing.ini"
run 2 env TACIT_ISA=mmx "$bench" --steps 8
has "$work/err" avx512
run 1 "$bench" --model mlp:4 --batch 1 --steps 8 --threads 1 --seconds 0.001 \
    --json "$work/missing/x.json"
has "$work/err" missing/x.json
echo "passed"
