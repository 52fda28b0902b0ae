#!/bin/bash
# What can't be is refused before anything is trained: by one message, with exit
# code 2, that says what to change. A row is options => a part of the message.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0 rows=0
train=$BUILD/ddp_train

fail() {
    echo "FAILED: $*"
    head -n 8 "$out/err"
    failed=1
}

# refused TEXT COMMAND...
refused() {
    local text=$1 rc=0
    shift
    rows=$((rows + 1))
    timeout 60 "$@" >"$out/out" 2>"$out/err" </dev/null || rc=$?
    # mpirun adds lines of its own.
    grep -E '^(error|ddp_train|comm_bench|localsgd_sweep|0[1-3]_[a-z]+): ' "$out/err" >"$out/told"
    [ "$rc" -eq 2 ] || fail "rc $rc, not 2: $*"
    [ "$(wc -l <"$out/told")" -eq 1 ] || fail "not one message: $*"
    grep -qF -- "$text" "$out/told" || fail "no '$text': $*"
    ! grep -qE '^epoch|^test acc' "$out/out" || fail "it trained first: $*"
}

# table LAUNCHER...: rows from standard input.
table() {
    local options text
    while IFS= read -r row; do
        case $row in '' | '#'*) continue ;; esac
        options=${row%% => *} text=${row#* => }
        # shellcheck disable=SC2086
        refused "$text" "$@" "$train" --data synth:400 --model mlp:8 --steps 4 $options
    done
}

# ---- data: IDX files as small as can be -------------------------------------

bytes() { local b; for b in "$@"; do printf "\\x$(printf %02x "$b")"; done; }
word() { bytes $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)); }
images() { # FILE COUNT SIDE
    { bytes 0 0 8 3; word "$2"; word "$3"; word "$3"; head -c $(($2 * $3 * $3)) /dev/zero; } >"$1"
}
labels() { # FILE COUNT LABEL: the last is LABEL, the others 0
    { bytes 0 0 8 1; word "$2"; head -c $(($2 > 0 ? $2 - 1 : 0)) /dev/zero
        [ "$2" -eq 0 ] || bytes "$3"; } >"$1"
}
idx() { # NAME TRAINING SIDE TESTS
    mkdir "$out/$1"
    images "$out/$1/train-images-idx3-ubyte" "$2" "$3"
    labels "$out/$1/train-labels-idx1-ubyte" "$2" 1
    images "$out/$1/t10k-images-idx3-ubyte" "$4" "$3"
    labels "$out/$1/t10k-labels-idx1-ubyte" "$4" 1
}
idx five 5 4 3
idx none 0 4 3
idx untested 40 4 0
idx tiny 40 2 3
idx mixed 40 4 3
labels "$out/mixed/t10k-labels-idx1-ubyte" 3 7
idx unequal 40 4 3
labels "$out/unequal/train-labels-idx1-ubyte" 39 1
idx shapes 40 4 3
images "$out/shapes/t10k-images-idx3-ubyte" 3 5
mkdir "$out/empty" "$out/good"
printf 'steps = 4\nstepz = 4\n' >"$out/typo.ini"

table <<ROWS
# too few samples
--data synth:60 --ranks 100 => synth:60 has 55 training samples, and of 100 ranks some would have none: use at most 55 ranks
--batch 1000 --ranks 4 => 4 ranks x --batch 1000 is 4000 samples, and synth:400 has 367 for training: lower --batch to at most 92
--batch 368 => 1 rank x --batch 368 is 368 samples, and synth:400 has 367
--global-batch 100000 --ranks 4 => lower --batch to at most 92 (--global-batch 368), or use fewer ranks
--accumulate 13 => --accumulate 13 is more than the 12 batches of 32 samples
--accumulate 24 --batch 8 --ranks 2 => lower --accumulate to at most 23
--data idx:$out/five => has 5 training samples, but no validation samples (a twelfth of the training samples)
--data idx:$out/none => found 0 classes in training
--data idx:$out/untested => has 37 training samples, but no test samples
--data synth:11 => from 12 (fewer leave none for validation)
--data synth:99999999999 => to 2147483647
--shards dirichlet:0.1 --data synth:60 --ranks 64 => use at most 55 ranks
# data that does not fit
--data idx:$out/tiny --model cnn => images of 2x2 are too small for two 2x2 pools; at least 4x4, or use the mlp
--data idx:$out/mixed => test label 7 is over the largest training label
--data idx:$out/unequal => 40 images but 39 labels
--data idx:$out/shapes => training images are 4x4, test images 5x5
--data idx:$out/empty => has neither train-images-idx3-ubyte.gz nor
--data idx:$out/absent => no data folder
--data idx => data idx needs a folder: idx:DIR
--data fashion-mnist:x => use idx:DIR for another folder
--data nosuch => known are
--data= => known are
--data-dir /x => means nothing to --data synth:400: leave it out
--data fashion-mnist --data-dir $out/empty => has neither
--data fashion-mnist --data-dir= => --data-dir is empty
# batch
--batch 0 => accepted: 1 to
--global-batch 10 --ranks 3 => does not divide by 3 ranks x --accumulate 1; the nearest that does is 9
--global-batch 1 --ranks 3 => the nearest that does is 3
--global-batch 64 --batch 16 => --batch 16 x 1 rank x --accumulate 1 is 16, and --global-batch is 64: give one of the two
--accumulate 0 => accepted: 1 to
# ranks, threads, transports
--ranks 257 => accepted: 0 to 256 ranks
--ranks -1 => accepted: 0 to 256 ranks
--threads 5000 => accepted: 0 to 4096 threads
--device cuda => accepted: auto, cpu
--transport nccl => accepted: auto, thread, shm, mpi, ucx
--transport mpi --ranks 2 => start the program with mpirun
--emulate hosts=8 --ranks 4 => 8 hosts need at least as many ranks, and there are 4
--emulate hosts=2 => 2 hosts need at least as many ranks, and there are 1
--emulate x => write hosts=N
--emulate= => --emulate is empty
--bucket-mb 0 => accepted: 1e-06 to
--timeout 0 => accepted: 1 to
# memory
--memory-limit 1M --ranks 2 => the 2 ranks of this host would need
--memory-limit 1K => use a smaller model or fewer ranks a host
--memory-limit 30M --data synth:40000 --model mlp:512 --batch 20000 => what would fit: --batch
--model mlp:16777216,16777216 => would need 4.00 PiB of memory
# replicas
--worker-size 2 --ranks 4 => --worker-size means nothing to --sync grad
--sync local --worker-size 3 --ranks 4 => --worker-size 3 does not divide the 4 ranks
--sync local --worker-size 8 --ranks 4 => --worker-size 8 does not divide the 4 ranks
--sync local --sync-levels 2:4 --ranks 4 => the last level has groups of 2, and there are 4 workers
--sync local --sync-levels 2:4,8:32 --ranks 4 => make it groups of 4
--sync local --sync-levels 3:4,4:8 --ranks 4 => must consist of whole groups
--sync local --sync-levels 2:4,4:2 --ranks 4 => meet less often
--sync local --sync-levels x => inner groups first, for instance
--sync local --sync-levels 1:4 --sync-every 4 => leave out --sync-every
--sync-every 4 => --sync-every means nothing to --sync grad
--sync oneshot --sync-every 4 => use local, post-local
--sync diloco --fragments 100 => there is at most one a layer
--sync streaming --sync-delay 100 --sync-every 4 --ranks 2 => a fragment is sent every 4 attempts
--sync local --stale eager --ranks 2 => need a delay of one interval (16 attempts), not 0
--sync local --sync-start 1.5 => no whole number of steps
--sync local --sync-min 3 => add --sync-schedule
--sync local --sync-schedule adacomm --sync-min 9 --sync-max 3 => intervals from 9 to 3
--sync local --sync-schedule budget:0 => with numbers above 0
--sync local --outer sgd --outer-momentum 0.5 => choose another with --outer
--sync local --late drop:-1 => neither wait nor drop:SECONDS
--sync local --compress powersgd:2 --ranks 2 => use topk, int8 or fp4
--sync local --moments average --optimizer adamw8bit => use keep, or adamw
--sync none --record $out/r => leave out --sync none
--shards dirichlet:0 => as in dirichlet:0.5
--compress topk:2 => above 0 and at most 1
--compress powersgd:0 => a rank from 1 to 4096
--compress fp16,nosuch => possible are ef, noef, start=N
# model, precision, optimizer
--model nosuch => known are
--model mlp:0 => each from 1 to
--model cnn:3 => the cnn takes no argument
--model linear --dropout 0.5 => leave it out
--dropout 1 => accepted: 0 to 0.99
--precision fp8 => accepted: fp32, fp16, bf16
--rounding stochastic => add --precision fp16 or bf16
--loss-scale 0 => a number above 0
--precision fp16 --init-scale 0.5 => is not between --min-scale 1 and
--precision fp16 --loss-scale 1e40 => finite in f32
--inject-inf 1:9 => there is no rank 9 among 1
--optimizer adam => accepted: sgd, adamw, adafactor, adamw8bit
--momentum 0.5 => use sgd
--optimizer sgd --nesterov --momentum 0 => needs --momentum above 0
--optimizer adafactor --relative-step --lr 1 => leave out --relative-step
--lr nan => accepted: auto, or 0 to
--param-groups nosuch:lr=2 => fits none of 4 parameters
--param-groups *:bits=16 => bits that are not 32
--param-groups= => --param-groups is empty
# amount of work
--steps 0 --epochs 0 => nothing to do: give --epochs above 0, or --steps
--steps -1 => accepted: 0 to
--epochs nan => not a number
--eval-every 1.5 => neither 'epoch' nor a number of steps
--eval-every 99999999999999999999 => a number of steps up to 1e12
--target-accuracy 85 => accepted: 0 to 1
--seed -1 => accepted: at least 0
--prefetch 65 => accepted: 0 to 64
# files
--save-every 1 => give --run-dir DIR
--resume auto => give --run-dir DIR, or --resume DIR
--resume $out/absent => check the path
--skip-compute --save-every 1 --run-dir $out/good => --save-every needs a run that computes
--run-dir /proc/x => check --run-dir
--run-dir $out/typo.ini => check --run-dir
--json $out/nowhere/x => check --json
--trace $out => check --trace
--record $out/nowhere/x => check --record
--attempt-times= => --attempt-times is empty
--json $out/a --trace $out/a => --json and --trace are both
--config $out/typo.ini => stepz
--config $out/absent => check --config
--frob => unknown option --frob
--step 5 => --steps
--steps => needs a value
word => is no option
ROWS

# A batch that nobody asked for is as large as the data allows.
"$train" --data synth:60 --model mlp:8 --steps 2 --quiet --ranks 8 ||
    fail "the default batch is refused"

# ---- tasks that a launcher leaves alone -------------------------------------

# alone TEXT PROGRAM...: each of 4 tasks refuses, and one of them says why.
alone() {
    local text=$1 rc
    shift
    for how in "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=" "PMIX_RANK=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID="; do
        # shellcheck disable=SC2086
        refused "$text" env ${how}0 "$@"
        rc=0
        # shellcheck disable=SC2086
        timeout 60 env ${how}2 "$@" >"$out/out" 2>"$out/err" || rc=$?
        [ "$rc" -eq 2 ] && [ ! -s "$out/out" ] && [ ! -s "$out/err" ] ||
            fail "another task, rc $rc: $*"
    done
}
tiny="--data synth:200 --model mlp:8 --steps 2 --quiet"
if nm "$train" | grep -q tac_comm_create_mpi; then
    # shellcheck disable=SC2086
    alone "as one of 4 tasks, but MPI sees a world of one; use srun --mpi=pmix" "$train" $tiny
    alone "started as one of 4" "$BUILD/bench/comm_bench" --max 4K
    for example in 01_loop 02_accelerator 03_trainer; do
        alone "as one of 4 tasks, but MPI sees a world of one" "$BUILD/examples/$example"
    done
    # shellcheck disable=SC2086
    for task in 0 3; do
        env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=$task "$train" $tiny --allow-singleton ||
            fail "--allow-singleton"
    done
fi
alone "start it once" "$BUILD/bench/localsgd_sweep" --out "$out/sweep"

# ---- the same under mpirun --------------------------------------------------

if ! command -v mpirun >/dev/null || ! nm "$train" | grep -q tac_comm_create_mpi; then
    echo "SKIPPED: no mpirun, or no MPI in this build; its rows are not tested"
else
    table mpirun -np 3 <<ROWS
--batch 1000 => 3 ranks x --batch 1000 is 3000 samples
--global-batch 10 => does not divide by 3 ranks
--sync local --worker-size 2 => --worker-size 2 does not divide the 3 ranks
--emulate hosts=4 => 4 hosts need at least as many ranks, and there are 3
--transport thread => thread
--memory-limit 1M => the 3 ranks of this host would need
--data idx:$out/five => no validation samples
--epochs 0 --steps 0 => nothing to do
--frob => unknown option --frob
ROWS
fi
mpi_warning() {
    mpirun -np 2 "$train" --data synth:200 --model mlp:8 --steps 2 --ranks 3 2>&1 |
        grep -c "warning: --ranks 3 is not used, because mpirun has started 2"
}
if command -v mpirun >/dev/null && nm "$train" | grep -q tac_comm_create_mpi; then
    [ "$(mpi_warning)" -eq 1 ] || fail "--ranks under mpirun: no warning, or several"
fi
echo "$rows rows"
exit $failed
