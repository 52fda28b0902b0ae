#!/bin/bash
# The page of a sweep, read as a browser would: well-formed, whole, needs
# nothing from outside, shows every number of the JSON, and takes names as text.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

command -v python3 >/dev/null || {
    echo "SKIPPED: there is no python3 to read the pages with"
    exit 77
}
"${BUILD:?set BUILD to the build folder}/tests/battery_sweep_page" "$work" \
    2>"$work/err" || {
    cat "$work/err"
    exit 1
}
check=${SOURCE:?set SOURCE to the source tree}/tests/sweep_page_check.py
python3 "$check" --hostile "$work/hostile.html" "$work"/*.html
