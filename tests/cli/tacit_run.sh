#!/bin/bash
# scripts/tacit_run: the line that it writes on machines that are made up, and
# what really happens to exit codes and signals here. The Slurm scripts with
# fakes of srun, mpirun and scontrol.
set -u

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
run=$source_dir/scripts/tacit_run
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
mkdir "$out/bin"
printf '#!/bin/sh\nexit 0\n' >"$out/program"
chmod +x "$out/program"

fail() {
    echo "FAILED: $*"
    head -n 20 "$out/out" "$out/err" 2>/dev/null
    failed=1
}

fake() {
    printf '#!/bin/bash\n%s\n' "$2" >"$out/bin/$1"
    chmod +x "$out/bin/$1"
}

# machine UID CORES READS-MEMORY(1: may not): Open MPI with so much around it.
machine() {
    fake id "echo $1"
    fake nproc "echo $2"
    fake lscpu 'exit 1'
    fake perl "exit $((1 - $3))"
    # shellcheck disable=SC2016
    fake mpirun 'case $1 in --version) echo "mpirun (Open MPI) 4.1.4"; exit ;; esac
        echo "ran: $*"'
}

clean=(env -u TACIT_THREADS -u OMPI_ALLOW_RUN_AS_ROOT
    -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM -u OMPI_MCA_rmaps_base_oversubscribe
    -u OMPI_MCA_btl_vader_single_copy_mechanism -u SLURM_JOB_ID
    "PATH=$out/bin:$PATH")

# line EXPECTED OPTIONS...: the mpirun line of --dry-run.
line() {
    local want=$1
    shift
    "${clean[@]}" "$run" --dry-run "$@" "$out/program" --epochs 1 \
        >"$out/out" 2>"$out/err" || fail "rc $?: $*"
    [ "$(cat "$out/out")" = "$want $out/program --epochs 1" ] ||
        fail "$* does not give: $want"
}

# refused TEXT ARGUMENTS...: rc 2 and one line with TEXT.
refused() {
    local text=$1 rc=0
    shift
    "$@" >"$out/out" 2>"$out/err" || rc=$?
    [ "$rc" -eq 2 ] && grep -qF -- "$text" "$out/err" &&
        [ "$(wc -l <"$out/err")" -eq 1 ] || fail "rc $rc, or no '$text': $*"
}

# ---- the line ---------------------------------------------------------------

root="OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
turns=OMPI_MCA_rmaps_base_oversubscribe=1

machine 1000 16 0
line "mpirun -np 4 --map-by slot:PE=4" -np 4
line "mpirun -np 16 --map-by slot:PE=1"
line "TACIT_THREADS=8 mpirun -np 2 --map-by slot:PE=8" --threads 8
line "TACIT_THREADS=2 mpirun -np 4 --map-by slot:PE=2" -n 4 --threads=2
line "TACIT_THREADS=8 mpirun -np 4 --bind-to none" -np 4 --threads 8
line "mpirun -np 4 --bind-to none" --np=4 --bind none
line "$turns mpirun -np 17 --bind-to none" -np 17
grep -q "17 ranks take turns on 16 cores" "$out/err" || fail "no word of turns"
line "mpirun -np 4 --map-by slot:PE=4 --timeout 60 --tag-output --mca x y" \
    -np 4 --timeout 60 --tag --pass "--mca x y"
line "mpirun -np 4 --map-by slot:PE=4 --output-filename logs" -np 4 --output logs
# Other hosts' cores are not known: nothing is bound, nothing oversubscribed.
line "mpirun -np 32 --host a:16,b:16 --bind-to none" -np 32 --host a:16,b:16
line "TACIT_THREADS=4 mpirun -np 8 --host a,b --map-by ppr:4:node:PE=4 -x TACIT_THREADS" \
    -np 8 --host a,b --per-host 4 --threads 4
line "$turns mpirun -np 8 --host a --bind-to none --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0" \
    -np 8 --host a --oversubscribe --interface eth0
machine 0 2 1
line "$root $turns OMPI_MCA_btl_vader_single_copy_mechanism=none mpirun -np 8 --bind-to none" -np 8
# What is printed can be pasted, odd arguments too, and is what is run.
"${clean[@]}" "$run" -np 2 "$out/program" "two words" '$x' >"$out/out" 2>"$out/err"
printf '%s\n' "$(sed -n 's/^tacit_run: \(OMPI.*\)/\1/p' "$out/err")" >"$out/pasted"
"${clean[@]}" bash "$out/pasted" | cmp -s - "$out/out" || fail "the line printed is another"
"${clean[@]}" "$run" --quiet -np 2 "$out/program" >/dev/null 2>"$out/err"
[ -s "$out/err" ] && fail "--quiet prints"

# ---- what can't be ----------------------------------------------------------

refused "no program given" "${clean[@]}" "$run" -np 2
refused "unknown option --frob" "${clean[@]}" "$run" --frob "$out/program"
refused "-np '0' is not a number from 1" "${clean[@]}" "$run" -np 0 "$out/program"
refused "--timeout needs a value" "${clean[@]}" "$run" --timeout
refused "there is no program $out/none" "${clean[@]}" "$run" "$out/none"
refused "did you mean" env -C "$out" "${clean[@]}" "$run" bin/program
refused "can't be executed" "${clean[@]}" "$run" "$out/bin"
refused "neither auto nor none" "${clean[@]}" "$run" --bind core "$out/program"
refused "can't be read" "${clean[@]}" "$run" --hostfile "$out/none" "$out/program"
refused "rank 1 of an MPI job already" "${clean[@]}" OMPI_COMM_WORLD_SIZE=2 \
    OMPI_COMM_WORLD_RANK=1 "$run" "$out/program"
refused "one of 4 tasks of srun" "${clean[@]}" SLURM_STEP_NUM_TASKS=4 "$run" "$out/program"
fake mpirun 'echo "HYDRA build details: 4.0.2"'
refused "start the program with it by hand" "${clean[@]}" "$run" "$out/program"
rm "$out/bin/mpirun"
mkdir "$out/few"
for tool in sed id nproc grep sort wc cat uname; do ln -s "$(command -v $tool)" "$out/few/"; done
refused "apt install openmpi-bin" env -i PATH="$out/few" "$BASH" "$run" -np 2 "$out/program"
grep -q -- "--ranks 2" "$out/err" || fail "nothing without MPI is offered"

# ---- Slurm ------------------------------------------------------------------

# slurm MPI-TYPES CODE: a job whose program ends with CODE.
slurm() {
    fake srun "[ \"\$1\" = --mpi=list ] && { echo '$1'; exit; }; echo \"srun \$*\"; exit $2"
    fake mpirun "echo \"mpirun \$*\"; exit $2"
    # shellcheck disable=SC2016
    fake scontrol 'echo "scontrol $*"'
    rc=0
    "${clean[@]}" SLURM_JOB_ID=7 SLURM_JOB_NAME=t SLURM_CPUS_PER_TASK=4 \
        SLURM_SUBMIT_DIR="$out" bash "$source_dir/scripts/slurm/ddp_train.sbatch" \
        --sync local >"$out/out" 2>"$out/err" || rc=$?
}
slurm pmix 0
[ "$rc" -eq 0 ] && grep -q "^srun --mpi=pmix --cpus-per-task=4 $out/build/ddp_train \
--run-dir $out/runs/t-7 --save-every epoch --resume auto --sync local" "$out/out" ||
    fail "sbatch with PMIx"
grep -q "^scontrol" "$out/out" && fail "a finished job is put back"
slurm none 75
[ "$rc" -eq 0 ] && grep -q "^mpirun --bind-to none -x TACIT_THREADS $out/build" \
    "$out/out" && grep -q "^scontrol requeue 7" "$out/out" || fail "requeue"
slurm pmix 3
[ "$rc" -eq 3 ] && ! grep -q ^scontrol "$out/out" || fail "a failure: rc $rc"
rm -f "$out"/bin/*

# ---- the real mpirun --------------------------------------------------------

if ! command -v mpirun >/dev/null || ! nm "$BUILD/ddp_train" | grep -q tac_comm_create_mpi; then
    echo "SKIPPED: no mpirun, or no MPI in this build; its part is not tested"
    exit $failed
fi

# real RC COMMAND...
real() {
    local want=$1 rc=0
    shift
    timeout 60 "$run" "$@" >"$out/out" 2>"$out/err" || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc $rc, not $want: tacit_run $*"
}
train=$BUILD/ddp_train
tiny="--data synth:200 --model mlp:8"
real 0 -np 3 "$train" $tiny --steps 4
grep -q "ranks  *3 on 1 host" "$out/out" || fail "not three ranks"
real 2 -np 2 "$train" $tiny --frob
real 3 -np 2 bash -c 'exit 3'
real 110 -np 2 --timeout 1 sleep 20
real 0 -np 2 --tag bash -c 'echo hello'
[ "$(grep -c 'stdout>:hello' "$out/out")" -eq 2 ] || fail "--tag"
echo word | "$run" --quiet -np 1 cat >"$out/out" 2>&1
grep -qx word "$out/out" || fail "standard input does not arrive"

# stopped SIGNAL: a run that is asked to stop saves and ends with 75.
stopped() {
    rm -rf "$out/run"
    "$run" -np 2 "$train" $tiny --quiet --steps 100000000 --run-dir "$out/run" \
        --save-every 1000000 >"$out/out" 2>"$out/err" &
    local job=$! rc=0
    for _ in $(seq 200); do [ -s "$out/run/metrics.jsonl" ] && break; sleep 0.05; done
    kill "-$1" $job
    wait $job || rc=$?
    [ "$rc" -eq 75 ] && [ -e "$out/run/checkpoints/latest" ] ||
        fail "$1: rc $rc, not 75 with a checkpoint"
}
stopped TERM
stopped USR1
exit $failed
