# With --deterministic, params_hash at 4 ranks is one and the same for thread,
# shm and mpi and for every bucket size; and a command run twice gives one hash.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

common="--model cnn --data synth:1500 --batch 9 --steps 23 --optimizer sgd
        --lr 0.02 --deterministic --quiet"

# hash NAME COMMAND... : runs it and prints its params_hash.
hash() {
    local name=$1
    shift
    timeout 120 "$@" $common --json "$out/$name.json" >"$out/$name.log" 2>&1 || {
        echo "FAILED (rc $?): $*" >&2
        cat "$out/$name.log" >&2
        return 1
    }
    sed -n 's/.*"params_hash": *"\([0-9a-f]*\)".*/\1/p' "$out/$name.json"
}

expect() { # expect NAME HASH
    if [ -z "$2" ] || [ "$2" != "$want" ]; then
        echo "FAILED: $1 has params_hash '$2', not '$want'"
        failed=1
    else
        echo "same: $1"
    fi
}

want=$(hash first "$BUILD/ddp_train" --ranks 4 --bucket-mb 1)
[ -n "$want" ] || exit 1
expect "thread, again" "$(hash again "$BUILD/ddp_train" --ranks 4 --bucket-mb 1)"
for mb in 0.01 25; do
    expect "thread, $mb MiB" "$(hash thread$mb "$BUILD/ddp_train" --ranks 4 \
        --bucket-mb $mb --first-bucket-mb $mb)"
done
if command -v mpirun >/dev/null && "$BUILD/ddp_train" --version >/dev/null &&
   nm "$BUILD/ddp_train" 2>/dev/null | grep -q tac_comm_create_mpi; then
    for transport in shm mpi; do
        for mb in 0.01 1 25; do
            expect "$transport, $mb MiB" "$(hash $transport$mb mpirun -np 4 \
                "$BUILD/ddp_train" --transport $transport --bucket-mb $mb \
                --first-bucket-mb $mb)"
        done
    done
else
    echo "not compared: shm and mpi (built without MPI)"
fi
# The test can fail: another learning rate gives another hash.
common="$common --lr 0.03"
other=$(hash other "$BUILD/ddp_train" --ranks 4 --bucket-mb 1)
[ "$other" != "$want" ] || { echo "FAILED: the hash does not depend on --lr"; failed=1; }
exit $failed
