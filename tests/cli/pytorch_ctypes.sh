#!/bin/bash
# pytorch/ without torch: structures against the headers, communicators of
# processes, threads and mpirun's ranks, with the standard library alone.
set -euo pipefail

source_dir=${SOURCE:?set SOURCE to the source tree}
tests=$source_dir/pytorch/tests
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
export TACIT_LIBRARY=${BUILD:?set BUILD to the build folder}
export PYTHONDONTWRITEBYTECODE=1

skip() {
    echo "SKIPPED: $*"
    exit 77
}

command -v python3 >/dev/null || skip "there is no python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    skip "python3 is older than 3.9"
! grep -q '^TACIT_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" ||
    skip "the build is sanitized, which python3 is not"

python3 "$tests/test_layout.py"
python3 "$tests/test_comm.py"

command -v mpirun >/dev/null || {
    echo "no mpirun: its ranks were not tried"
    exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/sum.py" <<'END'
import array
import sys

import tacit

rank, size = tacit.rank_and_size()
comm = tacit.Communicator.from_store(tacit.FolderStore(sys.argv[1]), rank, size,
                                     timeout=30)
x = array.array("d", [rank + 1])
comm.allreduce(x).wait()
assert x[0] == size * (size + 1) / 2, x
comm.barrier()
print(f"rank {rank} of {size} over {comm.transport}\n", end="")
END
PYTHONPATH=$source_dir/pytorch timeout 60 mpirun -np 3 python3 "$work/sum.py" \
    "$work/store" | tee "$work/out"
[ "$(grep -c 'of 3 over shm' "$work/out")" -eq 3 ] || {
    echo "FAIL: not three ranks"
    exit 1
}
echo "ok"
