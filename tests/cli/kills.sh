# SIGKILL of one of eight processes in mid-allreduce: each of the seven others
# says which rank died, in time, and can clean up. On shm, mpi and ucx.
set -u
program=$BUILD/tests/mpi_comm_kills
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
ran=0

if ! command -v mpirun >/dev/null || [ ! -x "$program" ]; then
    echo "skipped: no mpirun here"
    exit 77
fi
for transport in shm mpi ucx; do
    timeout 60 mpirun --enable-recovery -np 8 "$program" kill $transport \
        >"$out/$transport" 2>&1
    if grep -q "no transport $transport here" "$out/$transport"; then
        echo "skipped: no transport $transport here"
        continue
    fi
    ran=1
    told=$(grep -c '^survivor [0-9]: TAC_ERR_PEER, destroyed in time, 0 failed: rank 1 .*died' \
        "$out/$transport")
    if [ "$told" -ne 7 ]; then
        echo "FAILED: $transport: $told of 7 survivors told the death of rank 1"
        head -n 30 "$out/$transport"
        failed=1
    else
        echo "ok: $transport: 7 survivors named rank 1"
    fi
done
[ $ran -eq 1 ] || exit 77
exit $failed
