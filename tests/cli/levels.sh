#!/bin/bash
# The three levels of interface train the same model to the same bits: on one
# rank, on ranks that are threads, and on ranks that are processes. Needs
# $BUILD and $SOURCE.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export STEPS=6
levels="01_loop 02_accelerator 03_trainer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
cd "$out" || exit 1

if [ ! -e /usr/share/datasets/fashion-mnist ]; then
    echo "SKIPPED: dataset-fashion-mnist is not installed"
    exit 77
fi

# same WHAT PREFIX... -- ARGUMENT...: all levels print one hash.
same() {
    local what=$1 first='' prefix=()
    shift
    while [ "$1" != -- ]; do prefix+=("$1"); shift; done
    shift
    for level in $levels; do
        timeout 100 "${prefix[@]}" "$BUILD/examples/$level" --threads 1 "$@" >log 2>&1 || {
            echo "FAILED: $level, $what: rc $?"
            head -n 20 log
            failed=1
        }
        hash=$(sed -n 's/^params_hash //p' log)
        [ -n "$hash" ] || { echo "FAILED: $level, $what: no params_hash"; failed=1; }
        [ -n "$first" ] || first=$hash
        [ "$hash" = "$first" ] || {
            echo "FAILED: $level, $what: $hash instead of $first"
            failed=1
        }
    done
    last=$first
}

# Each is a page.
for level in $levels; do
    lines=$(wc -l <"$SOURCE/examples/$level.c")
    [ "$lines" -le 100 ] || { echo "FAILED: $level.c has $lines lines"; failed=1; }
done

same "one rank" --
one=$last
same "2 threads" -- --ranks 2
two=$last
[ "$one" != "$two" ] || { echo "FAILED: two ranks train on the samples of one"; failed=1; }
if command -v mpirun >/dev/null && nm "$BUILD/examples/01_loop" | grep -q tac_comm_create_mpi; then
    same "2 processes" mpirun -np 2 --
    [ "$last" = "$two" ] || { echo "FAILED: processes $last, threads $two"; failed=1; }
else
    echo "not run: processes (no mpirun, or built without MPI)"
fi

# Models and data of the program's own.
for own in 07_own_model 08_own_dataset; do
    timeout 60 "$BUILD/examples/$own" --threads 1 --ranks 2 >log 2>&1 || {
        echo "FAILED: $own: rc $?"
        head -n 20 log
        failed=1
    }
    grep -q 'validation loss .* accuracy \(9[0-9]\|100\)\.' log || {
        echo "FAILED: $own learns nothing"
        tail -n 5 log
        failed=1
    }
done
[ $failed -eq 0 ] && echo "levels: ok"
exit $failed
