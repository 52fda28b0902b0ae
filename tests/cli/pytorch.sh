#!/bin/bash
# pytorch/ with torch: the DDP hook against DDP's own Gloo, LocalSGD against
# averaging by hand. Needs a python3 with torch: $TACIT_PYTHON, else python3.
set -euo pipefail

python=${TACIT_PYTHON:-python3}
tests=${SOURCE:?set SOURCE to the source tree}/pytorch/tests
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
export TACIT_LIBRARY=${BUILD:?set BUILD to the build folder}
export PYTHONDONTWRITEBYTECODE=1

skip() {
    echo "SKIPPED: $*"
    exit 77
}

command -v "$python" >/dev/null || skip "there is no $python"
"$python" -c 'import torch' 2>/dev/null ||
    skip "$python has no torch; name one that has in TACIT_PYTHON" \
        "(scripts/soak pytorch makes one)"
! grep -q '^TACIT_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" ||
    skip "the build is sanitized, which python3 is not"
exec "$python" "$tests/test_torch.py"
