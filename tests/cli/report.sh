#!/bin/bash
# report.html: made by a run, made again from its files, from damaged ones, and
# never from hostile ones.
set -euo pipefail
. "$SOURCE/scripts/env"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
has() { grep -qF -- "$2" "$1" || fail "$1 lacks: $2"; }
hasnt() { ! grep -qE -- "$2" "$1" || fail "$1 has: $2"; }

train() { # NAME OPTION...
    local name=$1
    shift
    "$BUILD/ddp_train" --quiet --threads 1 --model mlp:16 --data synth:600 \
        --batch 8 --log-every 2 --eval-every 10 --run-dir "$work/$name" "$@"
}

# Well-formed: every element that must be is closed, in order; nothing from
# outside.
well_formed() { # FILE
    command -v python3 >/dev/null || return 0
    python3 - "$1" <<'P' || fail "$1 is not well-formed"
import sys
from html.parser import HTMLParser
OPTIONAL = {"td", "th", "tr", "li", "dt", "dd", "p"}
VOID = {"meta", "br", "link", "img"}
class Check(HTMLParser):
    stack = []
    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert not (name in ("src", "href") and "//" in value), value
        if tag not in VOID:
            self.stack.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        while self.stack and self.stack[-1] != tag:
            assert self.stack[-1] in OPTIONAL, (self.stack, tag, self.getpos())
            self.stack.pop()
        assert self.stack, tag
        self.stack.pop()
page = open(sys.argv[1], encoding="utf-8").read()
c = Check()
c.feed(page)
c.close()
assert not c.stack, c.stack
assert page.rstrip().endswith("</html>")
P
    hasnt "$1" 'https?://'
}

key() { # FILE KEY: a value of one of our own JSON files
    grep -o "\"$2\":[^,}]*" "$1" | head -n 1 | cut -d : -f 2 | tr -d '"'
}

# A run in 16 bits that skips a step; local SGD; one step alone.
train a --ranks 2 --precision fp16 --clip-norm 1 --steps 20 --inject-inf 3 \
    --save-every 10
page=$work/a/report.html
[ -s "$page" ] || { echo "FAILED: no report"; exit 1; }
well_formed "$page"
has "$page" "$(key "$work/a/summary.json" params_hash)"
has "$page" 'mlp:16 on synth:600'
has "$page" "$(awk -v a="$(key "$work/a/summary.json" test_accuracy)" \
    'BEGIN { printf("accuracy %.2f ", 100 * a) }')"
has "$page" 'of 100 samples'
for title in Loss Accuracy 'Learning rate' 'Gradient norm' 'Loss scale' \
    Throughput; do
    has "$page" "$title against steps"
done
has "$page" 'Predicted and counted bytes are equal'
has "$page" 'latest step-00000020'
has "$page" '--inject-inf'
hasnt "$page" '(>|[^a-z])-?nan|\(null\)'

train b --ranks 2 --sync local --sync-every 4 --steps 8
well_formed "$work/b/report.html"
has "$work/b/report.html" 'local: parameters every 4 steps'
has "$work/b/report.html" 'squared distance'
train c --steps 1
well_formed "$work/c/report.html"
hasnt "$work/c/report.html" '(>|[^a-z])-?nan'

# Again, the same.
cp "$page" "$work/before"
[ "$("$BUILD/tacit_info" --report "$work/a")" = "$work/a/report.html" ] ||
    fail "tacit_info --report does not say where"
cmp -s "$page" "$work/before" || fail "the second page differs"

# What is missing or damaged is said; names are text, not markup.
mkdir "$work/d"
cp "$work/a/metrics.jsonl" "$work/d"
printf '{"kind":"tra\n\0\n[1]\n{"kind":"train","attempts":1e400}\n' \
    >>"$work/d/metrics.jsonl"
head -c 200000 /dev/zero | tr '\0' x >>"$work/d/metrics.jsonl"
"$BUILD/tacit_info" --quiet --report "$work/d"
has "$work/d/report.html" 'There is no summary.json'
has "$work/d/report.html" 'damaged and left out'
sed 's/"model":"[^"]*"/"model":"<script>alert(1)<\/script>"/; s/"train_s":[^,]*/"train_s":null/' \
    "$work/a/summary.json" >"$work/d/summary.json"
"$BUILD/tacit_info" --quiet --report "$work/d"
hasnt "$work/d/report.html" '<script>alert'
well_formed "$work/d/report.html"

# Nothing known is no reason for "nan"; settings keep their lines.
echo '{}' >"$work/d/summary.json"
"$BUILD/tacit_info" --quiet --report "$work/d"
hasnt "$work/d/report.html" '(>|[^a-z])-?nan'
mkdir "$work/d/checkpoints" "$work/d/checkpoints/step-1"
mkfifo "$work/d/checkpoints/latest"
timeout 10 "$BUILD/tacit_info" --quiet --report "$work/d" || fail "a pipe"
[ "$(grep -c '; default' "$page")" -gt 50 ] || fail "settings lost their lines"
# Of many lines some are drawn, the last always.
for n in $(seq 9000); do
    echo "{\"kind\":\"train\",\"attempts\":$n,\"loss\":1.5}"
done >"$work/d/metrics.jsonl"
"$BUILD/tacit_info" --quiet --report "$work/d"
has "$work/d/report.html" 'of 9000 lines are drawn'

refuses() { # TEXT
    local rc=0
    "$BUILD/tacit_info" --report "$work/d" >"$work/out" 2>&1 || rc=$?
    [ $rc -eq 2 ] || fail "$1: exit code $rc"
    has "$work/out" "$1"
}
echo '{"model":' >"$work/d/summary.json"
refuses 'summary.json is no JSON object'
echo '[]' >"$work/d/summary.json"
refuses 'summary.json is no JSON object'
head -c 5000000 /dev/zero >"$work/d/summary.json"
refuses 'is no text of at most'
rm "$work/d/summary.json" "$work/d/metrics.jsonl"
refuses 'has neither summary.json nor metrics.jsonl'

# A run that fails has a page that says why, and nothing of the run before.
train e --steps 20 --ranks 2
[ -e "$work/e/summary.json" ] || fail "no summary"
has "$work/e/report.html" 'communication, hidden'
rc=0
train e --steps 400 --ranks 2 --optimizer sgd --lr 1e6 2>/dev/null || rc=$?
[ $rc -eq 3 ] || fail "diverging: exit code $rc"
[ ! -e "$work/e/summary.json" ] || fail "the summary of another run"
has "$work/e/report.html" 'The run failed: the training loss is no longer a number'
has "$work/e/metrics.jsonl" '{"kind":"failed","status":"TAC_ERR_DIVERGED"'
well_formed "$work/e/report.html"
# One that went on says from where.
train f --steps 20 --save-every 10
train f --steps 30 --save-every 10 --resume auto
has "$work/f/report.html" 'went on from step 20'
has "$work/f/summary.json" '"resumed":20'
exit $failed
