#!/bin/bash
# A training loop of one's own: train_alone.c, which knows only public headers,
# is compiled in strict C11 and linked with the static libraries of the build
# folder, as docs/getting-started.md says; it learns, skips the steps whose loss
# scale is too large, and saves weights. Needs $BUILD.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    exit 1
}

# cached NAME: a variable of the build's configuration.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

compile() {
    local flags=() libs=() name
    [ -z "$(cached TACIT_SANITIZE)" ] || flags=("-fsanitize=$(cached TACIT_SANITIZE)")
    for name in base engine amp models data; do
        flags+=("-I$source_dir/$name/include")
        libs=("$build/$name/libtacit_$name.a" "${libs[@]}")
    done
    nm "$build/engine/libtacit_engine.a" >"$work/names" 2>/dev/null
    if grep -q 'U dnnl_' "$work/names"; then libs+=(-ldnnl); fi
    "$(cached CMAKE_C_COMPILER)" -std=c11 -pedantic -Wall -Wextra -Werror \
        "${flags[@]}" -o "$work/own" "$source_dir/tests/cli/train_alone.c" \
        "${libs[@]}" -lz -ljansson -lm -pthread >"$work/log" 2>&1 || {
        head -n 20 "$work/log"
        fail "it does not compile or link"
    }
}

compile
timeout 60 "$work/own" "$work/own.safetensors" >"$work/out" 2>"$work/err" || {
    cat "$work/out" "$work/err"
    fail "rc is not 0"
}
cat "$work/out"
[ ! -s "$work/err" ] || fail "messages: $(cat "$work/err")"
grep -qE '^step 200 .* skipped [1-9]' "$work/out" || fail "no step was skipped"
for name in fc1.weight fc3.bias; do
    grep -qa "\"model.$name\"" "$work/own.safetensors" || fail "no $name saved"
done
echo "ok"
