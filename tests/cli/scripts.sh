#!/bin/bash
# scripts/setup and scripts/env on machines that are made up: a folder of fake
# dpkg-query, apt-get, id and sudo in front of the path. Nothing is installed.
set -euo pipefail

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
unset TACIT_SKIP_SETUP

fail() {
    echo "FAIL: $*"
    cat "$work/out" "$work/err" "$work/calls" 2>/dev/null || true
    exit 1
}

fake() {
    printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# machine UID MISSING-PACKAGE SUDO(yes|no) LISTS(yes|no)
machine() {
    rm -f "$work"/bin/*
    : >"$work/calls"
    fake id "echo $1"
    # shellcheck disable=SC2016
    fake dpkg-query '[ "${*: -1}" != "'"$2"'" ] && printf installed'
    fake apt-get 'echo "apt-get $*" >>"'"$work"'/calls"; touch "'"$work"'/lists"'
    fake apt-cache '[ -e "'"$work"'/lists" ]'
    rm -f "$work/lists"
    if [ "$4" = yes ]; then touch "$work/lists"; fi
    # shellcheck disable=SC2016
    case $3 in
    yes) fake sudo 'if [ "$1" = -n ]; then shift; fi
            echo sudo >>"'"$work"'/calls"; exec "$@"' ;;
    no) fake sudo 'echo "a password is needed" >&2; exit 1' ;;
    esac
}

setup() {
    rc=0
    PATH=$work/bin:$PATH "$source_dir/scripts/setup" "$@" \
        >"$work/out" 2>"$work/err" </dev/null || rc=$?
}

expect() { [ "$rc" -eq "$1" ] || fail "$2: rc $rc, expected $1"; }
called() { grep -q "$1" "$work/calls" || fail "$2"; }
not_called() { ! grep -q "$1" "$work/calls" || fail "$2"; }

machine 0 none no no
setup
expect 0 "nothing is missing"
not_called apt-get "apt-get ran though nothing is missing"

machine 0 libinih-dev no no
setup
expect 0 "root, no package lists yet"
called 'apt-get .*update' "no update though there are no lists"
called 'install .*libinih-dev$' "not exactly the missing package is installed"

machine 0 libinih-dev no yes
setup
expect 0 "root, lists are there"
not_called update "update though the lists have the package"

machine 1000 libinih-dev yes yes
setup
expect 0 "user with sudo"
called sudo "sudo is not used"
called 'install .*libinih-dev$' "the package is not installed"

machine 1000 libinih-dev no yes
setup
expect 2 "user without sudo's leave"
not_called install "apt-get ran without being root"
grep -q 'apt-get install .*libinih-dev' "$work/err" || fail "no command shown"

setup --frobnicate
expect 2 "unknown argument"
setup --list
expect 0 "--list"
[ "$(grep -cE '^[a-z0-9+.-]+ +[a-zA-Z].{8}' "$work/out")" -eq \
    "$(wc -l <"$work/out")" ] || fail "a package has no reason"

# shellcheck disable=SC2016
# env: only what is needed, and never over the user's own choice.
env_of() {
    env -i PATH="$work/bin:$PATH" "$@" sh -euc \
        '. "$0" 2>/dev/null; env | grep ^OMPI_ || true' \
        "$source_dir/scripts/env" >"$work/out"
}
machine 1000 none no yes
fake nproc 'echo 64'
env_of
! grep -qE 'ROOT|oversubscribe' "$work/out" || fail "a user with 64 cores needs none"
fake nproc 'echo 2'
env_of
grep -qx OMPI_MCA_rmaps_base_oversubscribe=1 "$work/out" || fail "2 cores"
machine 0 none no yes
fake nproc 'echo 2'
env_of OMPI_MCA_rmaps_base_oversubscribe=0
grep -qx OMPI_ALLOW_RUN_AS_ROOT=1 "$work/out" || fail "root, first variable"
grep -qx OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$work/out" || fail "root, second one"
grep -qx OMPI_MCA_rmaps_base_oversubscribe=0 "$work/out" ||
    fail "the user's choice is overridden"

for script in "$source_dir"/scripts/* "$source_dir"/scripts/slurm/* \
    "$source_dir"/.ci/run "$source_dir"/tests/cli/*.sh; do
    [ -d "$script" ] || bash -n "$script" || fail "$script does not parse"
done
echo "ok"
