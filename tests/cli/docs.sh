#!/bin/bash
# The documentation against the tree: links and their anchors lead somewhere,
# files that are named are there, and so are programs and their options.
set -u
cd "$SOURCE" || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
pages=(README.md docs/*.md)
for page in pytorch/README.md examples/README.md; do [ -e "$page" ] && pages+=("$page"); done

fail() {
    echo "FAILED: $*"
    failed=1
}

# ---- links ------------------------------------------------------------------

# Headings as GitHub names them: lower case, without punctuation, - for spaces.
anchors() {
    awk '/^```/ { code = !code } !code && /^#+ /' "$1" |
        sed 's/^#* *//; s/\[\([^]]*\)\]([^)]*)/\1/g' | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in "${pages[@]}"; do
    anchors "$page" >"$out/${page//\//+}.anchors"
done
links=0
for page in "${pages[@]}"; do
    while IFS= read -r link; do
        case $link in http:* | https:* | mailto:*) continue ;; esac
        links=$((links + 1))
        file=${link%%#*} anchor=
        case $link in *'#'*) anchor=${link#*#} ;; esac
        target=$page
        [ -z "$file" ] || target=$(realpath -m --relative-to=. "$(dirname "$page")/$file")
        if [ ! -e "$target" ]; then
            fail "$page: link to $link, which is not there"
        elif [ -n "$anchor" ] && [ "${target%.md}" != "$target" ] &&
            ! grep -qxF -- "$anchor" "$out/${target//\//+}.anchors"; then
            fail "$page: no heading #$anchor in $target"
        fi
    done < <(awk '/^```/ { code = !code } !code' "$page" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
done

# ---- files and programs that are named --------------------------------------

# Paths of the tree between back quotes, without patterns and placeholders.
for page in "${pages[@]}"; do
    grep -oE '`(base|comm|engine|amp|models|data|localsgd|ddp|bench|examples|tests|scripts|cmake|pytorch)/[A-Za-z0-9_./-]+`' "$page" |
        tr -d '`' | sort -u >"$out/paths"
    while IFS= read -r path; do
        case $path in *_x.c) continue ;; esac # a name in general
        [ -e "$path" ] || [ -e "$BUILD/$path" ] || fail "$page names $path, which is not there"
    done <"$out/paths"
    grep -oE '(^|[ (])(\./)?(build|scripts)/[A-Za-z0-9_/.-]+' "$page" | sed 's/^[ (]*//; s#^\./##; s/[.,:]*$//' |
        sort -u >"$out/commands"
    while IFS= read -r command; do
        case $command in build/*) command=$BUILD/${command#build/} ;; esac
        [ -e "$command" ] || fail "$page runs $command, which is not there"
    done <"$out/commands"
    # Headers as a program includes them.
    grep -oE 'tacit/[a-z0-9_]+\.h' "$page" | sort -u | while IFS= read -r header; do
        ls ./*/include/"$header" >/dev/null 2>&1 || echo "$page names $header, which is not there"
    done >"$out/headers"
    [ ! -s "$out/headers" ] || { cat "$out/headers"; failed=1; }
done

# Tests by name: `battery/ddp_skipped: gives_up` is a function of that file.
tests=0
while IFS=': ' read -r file name; do
    tests=$((tests + 1))
    grep -qE "^(static [a-z_ ]*[ *]$name\(|Test\([a-z_0-9]+, $name\))" "tests/$file.c" 2>/dev/null ||
        fail "docs/complaints.md: tests/$file.c does not define $name"
done < <(grep -oE '`(battery|unit|mpi)/[a-z0-9_]+: [a-z0-9_]+`' docs/complaints.md | tr -d '`')
[ "$tests" -ge 60 ] || fail "docs/complaints.md names only $tests tests"

# ---- options ----------------------------------------------------------------

# What our programs know; and what others know that the pages use.
programs=(ddp_train tacit_info)
for program in "$BUILD"/bench/*; do
    [ -f "$program" ] && [ -x "$program" ] && programs+=("bench/${program##*/}")
done
for program in "${programs[@]}"; do
    timeout 20 "$BUILD/$program" --help 2>/dev/null
done | cat - <(scripts/tacit_run --help; cat scripts/soak* scripts/demo scripts/setup scripts/format bench/netlab/* 2>/dev/null) |
    sed 's/--\[no-\]/--/g' | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u >"$out/known"
# Of mpirun, cmake, docker, srun, git and others; of Hugging Face's, compared with.
others='--preset|--build|--test-dir|--install|--prefix|--target|--config|--mca|--map-by|--bind-to|--hostfile|--host|--timeout|--tag-output|--enable-recovery|--oversubscribe|--mpi|--nodes|--ntasks-per-node|--cap-add|--shm-size|--cpus|--rm|--security-opt|--pid|--ipc|--allow-run-as-root|--version|--help|--cflags|--libs|--static|--user|--parallel|--output-on-failure|--no-index|--break-system-packages|--editable|--mount|--net|--uts|--privileged|--key|--no-|--component|--variable'
hugging='^--(per_device|gradient_|fp16|bf16|optim|max_|lr_|warmup_|num_|save_|resume_|output_|eval|learning|logging|weight_|seed)'
# Line by line, since an option of another program is one beside its name.
options=0
for page in "${pages[@]}"; do
    case $page in pytorch/*) continue ;; esac
    grep -oE -- '(^|[^A-Za-z0-9_-])--[a-z][a-z0-9_-]+' "$page" | grep -oE -- '--.*' | sort -u >"$out/used"
    while IFS= read -r option; do
        options=$((options + 1))
        grep -qxF -- "$option" "$out/known" && continue
        grep -qxF -- "--${option#--no-}" "$out/known" && continue
        [[ $option =~ ^($others)$ || $option =~ $hugging ]] && continue
        fail "$page names $option, which no program knows"
    done <"$out/used"
done
echo "${#pages[@]} pages, $links links, $options options, $tests tests by name"
exit $failed
