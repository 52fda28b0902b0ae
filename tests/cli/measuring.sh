# What ddp_train offers to those who measure: --skip-compute sends what a real
# run sends, --attempt-times adds up to the time that was computed,
# --target-accuracy ends as a run of that length does, --shards decide what a
# rank learns.
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

# 733 training samples: nothing divides.
common="--model mlp:24 --data synth:800 --threads 1 --batch 8 --ranks 4
        --optimizer sgd --schedule constant"

fail() {
    echo "FAILED: $*"
    [ -f "$out/log" ] && tail -n 15 "$out/log"
    failed=1
}

# run NAME ARGUMENTS...: the summary is $out/NAME.json.
run() {
    local name=$1
    shift
    # shellcheck disable=SC2086
    timeout 60 "$train" $common --json "$out/$name.json" "$@" >"$out/log" 2>&1 ||
        fail "rc $?: $*"
}

refused() { # refused TEXT ARGUMENTS...
    local text=$1 rc=0
    shift
    # shellcheck disable=SC2086
    timeout 20 "$train" $common "$@" >"$out/log" 2>&1 || rc=$?
    if [ $rc -eq 2 ] && grep -qF -- "$text" "$out/log"; then
        echo "ok: refused $*"
    else
        fail "rc $rc, expected 2 and '$text': $*"
    fi
}

get() { # get NAME KEY
    sed -n "s/.*\"$2\":\([^,}]*\).*/\1/p" "$out/$1.json" | tr -d '"'
}

expect() { # expect WHAT GOT WANT
    [ -n "$2" ] && [ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

same() { # same WHAT NAME NAME KEY...
    local what=$1 a=$2 b=$3 key
    shift 3
    for key; do expect "$what, $key" "$(get "$b" "$key")" "$(get "$a" "$key")"; done
}

holds() { # holds WHAT CONDITION-OF-AWK
    awk "BEGIN {exit !($2)}" || fail "$1: $2"
}

# ---- communication alone ----------------------------------------------------

# A rate of 0 computes, but learns nothing.
run initial --steps 1 --lr 0
while read -r mode; do
    # shellcheck disable=SC2086
    run real --epochs 2 --eval-every 0 $mode
    # shellcheck disable=SC2086
    run sent --epochs 2 --skip-compute $mode
    same "$mode" real sent attempts steps samples epochs syncs sync_every \
        bytes_sync_logical bytes_sync_wire bytes_predicted
    # Equal parameters, weighted and added up, are equal but for rounding.
    [ "${mode%samples}" != "$mode" ] || same "$mode" initial sent params_hash
    expect "$mode" "$(get sent bytes_sync_wire)" "$(get sent bytes_predicted)"
    expect "$mode: compute" "$(get sent compute_s)" 0
    for key in train_loss eval_loss eval_accuracy local_loss test_accuracy; do
        expect "$mode: $key" "$(get sent $key)" null
    done
    grep -qF "compute    skipped: everything is sent" "$out/log" || fail "no banner"
    [ "$mode" = "--sync none" ] ||
        holds "$mode: time" "$(get sent comm_s) > 0 && $(get sent train_s) > 0"
    echo "sent as in a real run: $mode, $(get sent bytes_sync_wire) bytes"
done <<'END'
--sync grad
--sync grad --compress int8 --accumulate 3 --bucket-mb 0.01
--sync grad --compress topk:0.01,min=0 --precision fp16
--sync local --sync-every 5
--sync diloco --sync-every 5 --compress int8
--sync streaming --sync-every 6
--sync post-local --worker-size 2
--sync local --shards sorted --weighting samples
--sync none
END
for option in "--save-every 2" "--resume auto" --target-accuracy=0.5 "--record $out/r"; do
    key=${option%%[ =]*}
    # shellcheck disable=SC2086
    refused "$key needs a run that computes" --skip-compute --run-dir "$out/dir" $option
done

# ---- times of attempts ------------------------------------------------------

# More than one piece of 1024; the columns add up to what rank 0 computed.
csv=$out/times.csv
run times --ranks 2 --batch 1 --model mlp:4 --steps 2100 --eval-every 0 --attempt-times "$csv"
expect header "$(head -n 1 "$csv")" attempt,rank0,rank1
expect lines "$(wc -l <"$csv")" 2101
expect "last line" "$(tail -n 1 "$csv" | cut -d, -f1)" 2100
holds numbering "$(awk -F, 'NR > 1 && ($1 != NR - 1 || NF != 3 || $2 <= 0 || $3 <= 0)' "$csv" | wc -l) == 0"
sum=$(awk -F, 'NR > 1 {s += $2} END {printf "%.9f", s}' "$csv")
holds "sum of times" "($sum - $(get times compute_s))^2 < 1e-12"
echo "2100 attempts of 2 ranks: $sum s"
# In all modes, and of a run that goes on for what is left.
run local --sync local --sync-every 5 --steps 9 --attempt-times "$csv"
expect "local lines" "$(wc -l <"$csv")" 10
run first --steps 9 --run-dir "$out/dir" --save-every 4 --attempt-times "$csv"
run rest --steps 11 --run-dir "$out/dir" --save-every 0 --resume auto --attempt-times "$csv"
expect "resumed" "$(cut -d, -f1 "$csv" | tr '\n' ' ')" "attempt 10 11 "
refused "check --attempt-times" --attempt-times "$out/none/t.csv"
refused "--attempt-times is empty" --attempt-times=

# ---- a target ---------------------------------------------------------------

# Ends as a run of as many steps does, after the first evaluation that is good
# enough, in the middle of an interval, too.
while read -r mode; do
    # shellcheck disable=SC2086
    run target $mode --epochs 40 --eval-every 3 --target-accuracy 0.9 --run-dir "$out/target"
    step=$(get target target_step)
    holds "$mode: reached" "${step:-0} > 0 && ${step:-1} % 3 == 0 && $(get target eval_accuracy) >= 0.9"
    holds "$mode: time" "$(get target target_s) > 0 && $(get target target_s) <= $(get target train_s)"
    early=$(grep eval_accuracy "$out/target/metrics.jsonl" | grep -v "\"step\":$step," |
        sed 's/.*"eval_accuracy":\([^,]*\).*/\1/' | awk '$1 >= 0.9' | wc -l)
    expect "$mode: good enough before" "$early" 0
    # shellcheck disable=SC2086
    run length $mode --steps "$step" --eval-every 3
    same "$mode" length target params_hash attempts samples eval_loss test_loss syncs \
        local_loss bytes_sync_wire bytes_predicted interrupted
    echo "reached at step $step: $mode"
done <<'END'
--sync grad
--sync local --sync-every 7
--sync diloco --sync-every 7 --worker-size 2
--sync none
END
# With deltas under way; their schedule is another one in a run of that length.
run target --sync streaming --sync-every 6 --epochs 40 --eval-every 3 --target-accuracy 0.9
holds "streaming: reached" "$(get target target_step) > 0 && $(get target test_accuracy) > 0.8"
expect "streaming: bytes" "$(get target bytes_sync_wire)" "$(get target bytes_predicted)"
run never --steps 4 --target-accuracy 1 --lr 0
expect "not reached" "$(get never target_step) $(get never target_s)" "0 null"
# Saved where it ended; nothing is left to do.
run target --epochs 40 --eval-every 3 --target-accuracy 0.9 --run-dir "$out/saved" --save-every 1000
run again --epochs 40 --eval-every 3 --target-accuracy 0.9 --run-dir "$out/saved" --resume auto
same "a target that was reached" target again params_hash attempts eval_loss test_loss \
    target_step target_s

# ---- shards -----------------------------------------------------------------

# Ten ranks that do not talk, ten labels: each learns its own.
for shards in iid sorted dirichlet:1000; do
    run "$shards" --ranks 10 --sync none --steps 60 --shards $shards --eval-every 0
    echo "$shards: $(get $shards eval_accuracy) alone"
done
holds "sorted" "$(get sorted eval_accuracy) < 0.3"
holds "iid" "$(get iid eval_accuracy) > 0.8"
holds "dirichlet:1000" "$(get dirichlet:1000 eval_accuracy) > 0.8"
# Bitwise from a checkpoint in the middle of an epoch; as many ranks as samples.
run whole --shards dirichlet:0.3 --steps 40 --run-dir "$out/shards" --save-every 13
rm -rf "$out/shards/checkpoints/step-00000040" "$out/shards/checkpoints/step-00000039"
run rest --shards dirichlet:0.3 --steps 40 --run-dir "$out/shards" --resume "$out/shards/checkpoints/step-00000026"
same "resumed shards" whole rest params_hash train_loss samples
refused "shards" --shards sorted --steps 40 --run-dir "$out/shards" --resume "$out/shards/checkpoints/step-00000026"
run few --data synth:12 --ranks 11 --batch 1 --shards sorted --epochs 3
expect "samples of few" "$(get few samples)" 33
refused "dirichlet:A" --shards dirichlet:0

# ---- processes --------------------------------------------------------------

if command -v mpirun >/dev/null && nm "$train" | grep -q tac_comm_create_mpi; then
    mpi="mpirun -np 2 $train $common --quiet --steps 30 --sync local --sync-every 4"
    # shellcheck disable=SC2086
    timeout 60 $mpi --attempt-times "$csv" --eval-every 3 --target-accuracy 0.7 \
        --shards sorted --json "$out/p.json" >"$out/log" 2>&1 || fail "mpirun: rc $?"
    run t --ranks 2 --steps 30 --sync local --sync-every 4 --eval-every 3 \
        --target-accuracy 0.7 --shards sorted
    same "processes" t p target_step params_hash attempts bytes_sync_wire
    expect "lines of processes" "$(wc -l <"$csv")" "$(($(get p attempts) + 1))"
    echo "processes: reached at step $(get p target_step)"
fi
exit $failed
