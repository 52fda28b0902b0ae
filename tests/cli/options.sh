#!/bin/bash
# ddp_train as its user meets it: help, configuration, mistakes, exit codes and
# a rank that is killed. Needs $BUILD, the build folder; the parts that need
# mpirun say so and are left out where there is none.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
train=$build/ddp_train
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
docs=$source_dir/docs/ddp_train.md
work=$(mktemp -d)
children=()
trap 'end_children; rm -rf "$work"' EXIT
# Settings of the caller must not decide what is tested.
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

# What ctest sets, when the script is run by hand.
# shellcheck source=scripts/env
. "$source_dir/scripts/env" 2>/dev/null

# A run that takes a moment.
tiny=(--model mlp:16 --data synth:512 --batch 8 --steps 4 --quiet)

end_children() {
    local pid
    for pid in ${children[@]+"${children[@]}"}; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

fail() {
    echo "FAIL: $case_name: $*"
    echo "--- command: ${command_line-none}, rc ${rc-none}"
    echo "--- stdout"; head -n 40 "$work/out" 2>/dev/null || true
    echo "--- stderr"; head -n 40 "$work/err" 2>/dev/null || true
    exit 1
}

case_name=start
begin() {
    case_name=$1
    echo "- $case_name"
}

# run COMMAND...: sets rc, writes $work/out and $work/err.
run() {
    command_line="$*"
    rc=0
    timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then fail "took over 60 s"; fi
}

expect_rc() { [ "$rc" -eq "$1" ] || fail "expected rc $1"; }
in_out() { grep -qE -- "$1" "$work/out" || fail "stdout lacks /$1/"; }
in_err() { grep -qE -- "$1" "$work/err" || fail "stderr lacks /$1/"; }
empty_out() { [ ! -s "$work/out" ] || fail "stdout should be empty"; }
empty_err() { [ ! -s "$work/err" ] || fail "stderr should be empty"; }

# Exactly one line of stderr says it, whatever the number of ranks.
once_in_err() {
    local n
    n=$(grep -cE -- "$1" "$work/err" || true)
    [ "$n" -eq 1 ] || fail "stderr has $n lines with /$1/, not 1"
}

# A mistake of the user: rc 2, nothing on stdout, one line with the remedy.
mistake() {
    local pattern=$1
    shift
    run "$train" "$@"
    expect_rc 2
    empty_out
    once_in_err "$pattern"
}

have_mpi() {
    command -v mpirun >/dev/null && ldd "$train" | grep -q 'libmpi\.so'
}

# value KEY FILE: a number or text of a one-object JSON file.
value() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1
}

# --- what is printed ----------------------------------------------------------

test_help() {
    local key value
    begin "--help, and docs/ddp_train.md with the same defaults"
    run "$train" --help
    expect_rc 0
    empty_err
    in_out '--print-config'
    cp "$work/out" "$work/help"
    run "$train" --print-config
    expect_rc 0
    sed -n 's/^\([a-z][a-z0-9-]*\) = \(.*[^ ]\) *; default$/\1 \2/p' \
        "$work/out" >"$work/defaults"
    [ "$(wc -l <"$work/defaults")" -ge 20 ] || fail "few settings are printed"
    while read -r key value; do
        grep -qE -- "--(\[no-\])?$key\b" "$work/help" ||
            fail "--help lacks --$key"
        grep -qE -- "^\| \`--$key( [A-Z]+)?\` \| \`?$value\b" "$docs" ||
            fail "docs/ddp_train.md lacks --$key with its default $value"
    done <"$work/defaults"
}

test_version() {
    begin "--version"
    run "$train" --version
    expect_rc 0
    empty_err
    in_out '[0-9]+\.[0-9]+\.[0-9]+'
}

# The settings of a file without the comments that name their sources.
settings() {
    sed -n 's/^\([a-z][a-z0-9-]* *= *[^;]*\).*/\1/p' "$1" | sed 's/ *$//' |
        grep -v '^config *='
}

test_print_config() {
    begin "--print-config, given back as --config"
    run "$train" --model mlp:32,16 --lr 0.015 --nesterov --optimizer sgd \
        --bucket-mb 0.5 --print-config
    expect_rc 0
    in_out '^lr *= *0\.015 *; command line'
    in_out '^epochs *= *4 *; default'
    cp "$work/out" "$work/first.ini"
    run "$train" --config "$work/first.ini" --print-config
    expect_rc 0
    in_out '^lr *= *0\.015 *; .*file'
    settings "$work/first.ini" >"$work/first"
    settings "$work/out" >"$work/second"
    [ "$(wc -l <"$work/first")" -ge 20 ] || fail "few settings are printed"
    cmp -s "$work/first" "$work/second" ||
        fail "not the same settings: $(diff "$work/first" "$work/second")"
}

test_precedence() {
    begin "command line > environment > file > default"
    printf 'lr = 0.1\nmomentum = 0.1\nseed = 7\n' >"$work/run.ini"
    export TACIT_LR=0.2 TACIT_MOMENTUM=0.2
    run "$train" --config "$work/run.ini" --lr 0.3 --print-config
    unset TACIT_LR TACIT_MOMENTUM
    expect_rc 0
    in_out '^lr *= *0\.3 '
    in_out '^momentum *= *0\.2 '
    in_out '^seed *= *7 '
}

test_dry_run() {
    begin "--dry-run"
    run "$train" --data synth:512 --dry-run
    expect_rc 0
    in_out '421,?642|[Pp]arameters'
}

# --- mistakes -----------------------------------------------------------------

test_options() {
    begin "unknown option names the nearest"
    mistake '--eval-every|did you mean' --eval-evry 4
    mistake '--batch|did you mean' --batch_size 4
    mistake '--model' --modle cnn
    grep -q -- '--modle' "$work/err" || fail "the wrong option is not named"
    begin "values out of range name the range"
    mistake 'batch.*\b0\b.*\b1\b' --batch 0
    mistake 'batch' --batch many
    mistake 'optimizer.*sgd.*adamw|sgd\|adamw' --optimizer sdg
    begin "compressions are checked before ranks start"
    mistake "topq.*did you mean 'topk'" --compress topq:0.01
    mistake 'above 0 and at most 1' --compress topk:2
    mistake 'min-rate=X' --compress powersgd:4,rate=2
    begin "arguments that are no options"
    mistake 'extra' extra
    begin "environment variables are checked as options are"
    export TACIT_BATCH=0
    mistake 'TACIT_BATCH|batch' --quiet
    unset TACIT_BATCH
}

test_config_file() {
    begin "unknown key in a file: name, line and nearest"
    printf '# run\n[data]\nbach = 8\n' >"$work/bad.ini"
    mistake 'line 3.*bad\.ini.*bach|bach.*line 3' --config "$work/bad.ini"
    grep -q 'batch' "$work/err" || fail "the nearest key is not named"
    printf 'seed = 1\nthis is no setting\n' >"$work/bad.ini"
    mistake 'bad\.ini.*line 2|line 2.*bad\.ini' --config "$work/bad.ini"
    mistake 'nowhere\.ini' --config "$work/nowhere.ini"
    # A pipe may be one; nobody waits for what nobody writes.
    run "$train" --config <(echo 'lr = 0.125') --print-config
    expect_rc 0
    in_out '^lr *= *0\.125 '
    mkfifo "$work/silent.ini"
    run "$train" --config "$work/silent.ini" --print-config
    expect_rc 0
}

test_data() {
    local given=/usr/share/datasets/fashion-mnist file
    begin "missing data folder: which, and the remedy"
    mistake 'nowhere' --data-dir "$work/nowhere"
    grep -qE 'dataset-fashion-mnist|--data' "$work/err" || fail "no remedy"
    mistake 'nowhere' --data "idx:$work/nowhere"
    if [ ! -r "$given/train-images-idx3-ubyte.gz" ]; then
        echo "  left out: truncated file (no dataset-fashion-mnist)"
        return
    fi
    begin "truncated .gz"
    mkdir "$work/cut"
    for file in "$given"/*.gz; do ln -s "$file" "$work/cut/"; done
    rm "$work/cut/train-images-idx3-ubyte.gz"
    head -c 1000000 "$given/train-images-idx3-ubyte.gz" \
        >"$work/cut/train-images-idx3-ubyte.gz"
    mistake 'cut/train-images-idx3-ubyte\.gz' --data-dir "$work/cut"
    grep -qiE 'truncated|too short|ends' "$work/err" || fail "the cause is missing"
}

# --- ranks --------------------------------------------------------------------

test_thread_ranks() {
    begin "--ranks 4 without mpirun"
    run "$train" "${tiny[@]}" --ranks 4 --run-dir "$work/threads"
    expect_rc 0
    check_run "$work/threads" 4 thread
}

# check_run DIR WORLD TRANSPORT
check_run() {
    local file
    for file in config.ini metrics.jsonl summary.json; do
        [ -s "$1/$file" ] || fail "$1/$file is missing or empty"
    done
    [ "$(value world "$1/summary.json")" = "$2" ] || fail "world is not $2"
    [ "$(value transport "$1/summary.json")" = "$3" ] ||
        fail "transport is not $3"
    [ "$(value steps "$1/summary.json")" = 4 ] || fail "steps is not 4"
}

test_process_ranks() {
    begin "mpirun -np 4"
    run mpirun -np 4 "$train" "${tiny[@]}" --run-dir "$work/processes"
    expect_rc 0
    check_run "$work/processes" 4 shm
    [ "$(value params_hash "$work/processes/summary.json")" = \
        "$(value params_hash "$work/threads/summary.json")" ] ||
        fail "threads and processes end with different parameters"
    begin "mpirun -np 4: one message, rc passed on"
    run mpirun -np 4 "$train" --batch 0
    expect_rc 2
    once_in_err 'batch.*\b0\b'
    run mpirun -np 4 "$train" --data-dir "$work/nowhere"
    expect_rc 2
    once_in_err "$work/nowhere"
    run mpirun -np 4 "$train" --help
    expect_rc 0
    [ "$(grep -cE '^ *--ranks\b' "$work/out")" -eq 1 ] || fail "help is not printed once"
}

# The processes of a job's ranks: children of mpirun that run ddp_train.
ranks_of() {
    local stat
    for stat in /proc/[0-9]*/stat; do
        # pid (name) state parent ...
        sed -n "s/^\([0-9]*\) (ddp_train) [A-Z] $1 .*/\1/p" "$stat" 2>/dev/null ||
            true
    done
}

# How files of this job would be called in /dev/shm: ours by the ranks' process
# numbers, Open MPI's by the number of the job. Other jobs may come and go.
names_in_shm() {
    local job_number
    printf '/tacit-%s-\n' "${ranks[@]}"
    job_number=$(tr '\0' '\n' <"/proc/${ranks[0]}/environ" |
        sed -n 's/^PMIX_NAMESPACE=\([0-9]*\)$/\1/p')
    [ -z "$job_number" ] || printf '\\.%x\\.\n' "$job_number"
}

left_in_shm() {
    find /dev/shm -maxdepth 1 -type f | grep -f "$work/names" || true
}

wait_until() {
    local seconds=$1 i
    shift
    for ((i = 0; i < seconds * 10; i++)); do
        if "$@"; then return 0; fi
        sleep 0.1
    done
    return 1
}

all_ranks_train() {
    [ -s "$work/killed/metrics.jsonl" ] && [ "$(ranks_of "$job" | wc -l)" -eq 4 ]
}

job_ended() { ! kill -0 "$job" 2>/dev/null; }

# Ranks that outlive mpirun have another parent: look at their own numbers.
no_rank_left() {
    local pid
    for pid in "${ranks[@]}"; do
        if grep -q '^Name:.*ddp_train' "/proc/$pid/status" 2>/dev/null &&
            ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; then
            return 1
        fi
    done
}

shm_is_clean() { [ -z "$(left_in_shm)" ]; }

test_killed_rank() {
    local transport=$1 victim=$2 began
    begin "SIGKILL of one of four ranks, --transport $transport"
    rm -rf "$work/killed"
    command_line="mpirun -np 4 ddp_train, one rank killed"
    mpirun -np 4 "$train" --model mlp:16 --data synth:4096 --batch 8 \
        --steps 100000000 --log-every 1 --quiet --transport "$transport" \
        --run-dir "$work/killed" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    children+=("$job")
    wait_until 40 all_ranks_train || fail "the job does not train after 40 s"
    mapfile -t ranks < <(ranks_of "$job")
    children+=("${ranks[@]}")
    names_in_shm >"$work/names"
    began=$SECONDS
    kill -KILL "${ranks[$victim]}"
    wait_until 15 job_ended || fail "the job still runs 15 s after the kill"
    rc=0
    wait "$job" || rc=$?
    expect_rc 137
    wait_until 5 no_rank_left || fail "some of the ranks ${ranks[*]} still run"
    wait_until 5 shm_is_clean || fail "left in /dev/shm: $(left_in_shm)"
    echo "  ended after $((SECONDS - began)) s"
}

test_help
test_version
test_print_config
test_precedence
test_dry_run
test_options
test_config_file
test_data
test_thread_ranks
if have_mpi; then
    test_process_ranks
    test_killed_rank shm 0
    test_killed_rank mpi 2
else
    echo "left out: processes as ranks (no mpirun, or built without MPI)"
fi
echo "ok"
