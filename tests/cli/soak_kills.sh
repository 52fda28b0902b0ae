#!/bin/bash
# scripts/soak kills: its options, and a few kills of each kind. The full number
# is for scripts/soak.
set -euo pipefail

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$BUILD/bench/comm_bench" ] || { echo "SKIP: no comm_bench"; exit 77; }

fail() {
    echo "FAIL: $*"
    cat "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

soak() { # RC ARGUMENTS...
    local want=$1 rc=0
    shift
    "$source_dir/scripts/soak" kills "$@" >"$work/out" 2>"$work/err" \
        </dev/null || rc=$?
    [ $rc -eq "$want" ] || fail "rc $rc, not $want: $*"
}

soak 0 --help
for word in --count --modes --launch --seed; do
    grep -q -- "$word" "$work/out" || fail "--help does not mention $word"
done
soak 2 --cuont 4
soak 2 --count many
soak 2 --modes grad,often --build "$BUILD" --out "$work/o"
grep -q 'there is no often' "$work/err" || fail "the unknown mode is not named"

small=(--build "$BUILD" --out "$work/k" --steps 60 --seed 3)
soak 0 --count 2 --modes grad,diloco --launch threads "${small[@]}"
grep -q '^2 kills, 0 failures' "$work/out" || fail "not two kills"
hash=$(sed -n 's/^grad-threads .* //p' "$work/out")
[ ${#hash} -eq 16 ] || fail "no params_hash"
[ ! -e "$work/k/run" ] || fail "runs are left there"
if command -v mpirun >/dev/null && [ -x "$BUILD/tests/mpi_comm_kills" ]; then
    soak 0 --count 1 --modes grad --launch mpirun "${small[@]}"
    [ "$(sed -n 's/^grad-mpirun .* //p' "$work/out")" = "$hash" ] ||
        fail "processes end elsewhere than threads"
else
    echo "not tested: mpirun (built without MPI)"
fi

# A run that ends elsewhere is noticed: another program under the same name.
mkdir -p "$work/b/bench"
ln -s "$BUILD/bench/comm_bench" "$work/b/bench/"
cat >"$work/b/ddp_train" <<WRONG
#!/bin/bash
case "\$*" in
*--resume*) exec "$BUILD/ddp_train" "\$@" --seed 7 ;;
*) exec "$BUILD/ddp_train" "\$@" ;;
esac
WRONG
chmod +x "$work/b/ddp_train"
soak 1 --count 1 --modes grad --launch threads --steps 60 --build "$work/b" --out "$work/w"
grep -q 'FAILED: grad-threads: params_hash' "$work/out" || fail "a wrong end went unnoticed"
echo "ok: kills, and a wrong end is noticed"
