#!/bin/bash
# efficiency as its user meets it: the rows and their figures against closed
# forms, files, printing them once more, going on, mistakes.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
program=$build/bench/efficiency
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done
export LC_ALL=C

# 16 steps of 2 x 16 samples; 784 x 16 + 16 + 16 x 10 + 10 = 12,730 parameters,
# 12,736 where each tensor begins at 64 bytes.
tiny=(--model mlp:16 --data synth:600 --ranks 2 --threads 1 --batch 16
    --steps 16 --accumulate 4 --sync-every 4 --seeds 2 --lrs 0.01
    --networks eth-1g,wan-100m)

fail() {
    echo "FAIL: $*"
    tail -n 60 "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

# run RC COMMAND...: output in $work/out and $work/err.
run() {
    local want=$1 rc=0
    shift
    timeout 120 "$@" >"$work/out" 2>"$work/err" || rc=$?
    [ "$rc" -eq "$want" ] || fail "rc $rc, not $want: $*"
}

has() {
    grep -q -- "$2" "$1" || fail "no '$2' in $1"
}

echo "- help and configuration"
run 0 "$program" --help
has "$work/out" --accumulate
has "$work/out" 'Exit codes'
run 0 "$program" --version
run 0 "$program" --print-config --quick
has "$work/out" '^seeds = 1'
has "$work/out" '^lrs = own'
run 0 "$program" "${tiny[@]}" --dry-run --out "$work/plan"
has "$work/out" '19 rows, 2 seeds, 38 runs'
[ ! -e "$work/plan" ] || fail "--dry-run makes a folder"
# What does not divide is raised, and says so; an epoch has 18 steps of 32.
run 0 "$program" "${tiny[@]}" --dry-run --steps 13
has "$work/out" '16 steps of 32'
has "$work/out" 'not 13 steps'

echo "- mistakes"
# mistake PATTERN OPTION...: rc 2, one line that says what to do.
mistake() {
    local pattern=$1
    shift
    run 2 "$program" "${tiny[@]}" --out "$work/mistake" "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $*"
    has "$work/err" "$pattern"
}
mistake 'did you mean --sync-every' --sync-evry 3
mistake 'give a multiple' --batch 18
mistake 'give one codec' --compress none
mistake 'give one codec' --compress int8,fp4
mistake 'int7' --compress int7
mistake 'no number above 0' --lrs 0
mistake "did you mean 'eth-1g'" --networks eth
mistake 'did you mean mlp' --model mpl
mistake 'there is no program there' --program "$work/nowhere"
mistake 'give another --out' --out /proc/nowhere
mistake 'line 1' --print "$0"
echo '{"program": "another"}' >"$work/another.json"
mistake 'not what efficiency' --print "$work/another.json"

run 2 env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 "$program" --dry-run
has "$work/err" 'efficiency: srun has started it 2 times'

echo "- a table"
run 0 "$program" "${tiny[@]}" --out "$work/a"
[ ! -s "$work/err" ] || fail "messages"
for f in efficiency.json efficiency.csv efficiency.html efficiency.svg; do
    [ -s "$work/a/$f" ] || fail "no $f"
done
has "$work/out" 'Local SGD: '
cp "$work/out" "$work/first"
[ "$(find "$work/a/runs" -name 'done' | wc -l)" -eq 38 ] || fail "not 38 runs"

if command -v python3 >/dev/null; then
    python3 - "$work/a" <<'END' || fail "figures"
import csv, json, math, os, sys

out = sys.argv[1]
table = json.load(open(out + '/efficiency.json'))
rows = {r['key']: r for r in table['rows']}
keys = ('key label part batch accumulate global_batch recompute sync '
        'sync_every precision optimizer compress lr lr_of steps samples syncs '
        'memory memory_kinds bytes_predicted bytes_counted bytes_step '
        'bytes_sample seconds_sample modelled_s_sample eval_accuracy '
        'test_accuracy test_error change').split()
params, padded, ranks, steps, seeds = 12730, 12736, 2, 16, 2
assert len(rows) == 19 and table['seeds'] == seeds, len(rows)
assert table['parameters'] == params

def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)

def run(r, seed):
    name = '%s-lr%g-seed%d' % (r['key'], r['lr'], seed)
    return json.load(open('%s/runs/%s/summary.json' % (out, name)))

for r in rows.values():
    for k in keys:
        assert k in r, (r['key'], k)
    # The same samples: 16 steps of 2 x 16.
    assert r['samples'] == 512, r
    # The kinds that are shown are all of what a rank holds.
    memory, kinds = r['memory'], r['memory_kinds']
    shown = sum(v for k, v in memory.items() if k != 'total')
    held = sum(v['measured'] for k, v in kinds.items() if k != 'data_set')
    assert memory['total'] == shown == held, r['key']
    assert memory['parameters'] == padded * (
        4 if r['precision'] == 'fp32' else 6), r['key']
    assert memory['gradients'] == padded * 4
    # Each figure again from the runs themselves.
    runs = [run(r, s + 1) for s in range(seeds)]
    for s in runs:
        assert s['samples'] == 512 and s['optimizer'] == r['optimizer']
        assert s['sync'] == r['sync'] and s['precision'] == r['precision']
    n = runs[0]['bytes_sync_wire']
    assert r['bytes_counted'] == n // ranks == r['bytes_predicted']
    assert near(r['bytes_step'], n / ranks / r['steps'])
    assert near(r['bytes_sample'], n / 512)
    test = [s['test_accuracy'] for s in runs]
    mean = sum(test) / seeds
    assert near(r['test_accuracy'], mean)
    error = math.sqrt(sum((x - mean) ** 2 for x in test) / (seeds - 1) / seeds)
    assert near(r['test_error'], error)
    gain = [a - b for a, b in zip(test, rows['baseline']['test_each'])]
    assert near(r['change']['accuracy'], sum(gain) / seeds)
    times = sorted(s['train_s'] / 512 for s in runs)
    assert near(r['seconds_sample'], (times[0] + times[1]) / 2)
    assert near(r['seconds_sample_low'], times[0])
    for v in r['modelled_s_sample'].values():
        assert v > 0

base = rows['baseline']
assert base['bytes_counted'] == steps * padded * 4
# H = 4: a fourth of the synchronisations, of parameters without padding.
for k in ('local', 'added-local', 'added-mixed', 'added-sgd'):
    assert rows[k]['syncs'] == steps // 4, k
    assert rows[k]['bytes_counted'] == steps // 4 * params * 4, k
# Four times fewer steps of four times as many samples.
larger = rows['larger-batch']
assert larger['steps'] == steps // 4
assert larger['global_batch'] == 4 * base['global_batch']
assert larger['bytes_counted'] * 4 == base['bytes_counted']
# Accumulation keeps the batch of a step; its micro-batches hold less.
a = rows['accumulate']
assert a['global_batch'] == base['global_batch'] and a['batch'] * 4 == 16
assert a['memory']['activations'] < base['memory']['activations']
assert a['bytes_counted'] == base['bytes_counted']
# State: AdamW two moments, SGD one, eight bits a byte each and scales.
assert base['memory']['optimizer'] == padded * 8
assert rows['sgd']['memory']['optimizer'] == padded * 4
assert params * 2 < rows['adamw8bit']['memory']['optimizer'] < params * 2.3
assert rows['adafactor']['memory']['optimizer'] < params * 2
# int8 of a bucket: a byte an element and scales.
assert params < rows['compress']['bytes_step'] < params * 1.1
# Recompute changes no bit.
assert rows['recompute']['test_each'] == base['test_each']
assert (run(rows['recompute'], 1)['params_hash']
        == run(base, 1)['params_hash'])
for r in rows.values():
    c = r['change']
    assert near(c['memory'], r['memory']['total'] / base['memory']['total'] - 1)
    assert near(c['bytes'], r['bytes_counted'] / base['bytes_counted'] - 1)

lines = list(csv.DictReader(open(out + '/efficiency.csv')))
assert [r['key'] for r in lines] == list(rows)
for line in lines:
    assert float(line['bytes_step']) == rows[line['key']]['bytes_step']
    assert float(line['memory_total']) == rows[line['key']]['memory']['total']

# Pictures are well formed, and a bar's pieces are as long as the kinds.
import xml.etree.ElementTree as xml
svg = xml.parse(out + '/efficiency.svg').getroot()
assert svg.tag.endswith('svg')
page = open(out + '/efficiency.html').read()
assert 'http' not in page.replace('http://www.w3.org/2000/svg', '')
assert page.count('<tr><td>') == 19
for r in rows.values():
    assert r['label'] in page, r['label']
END
else
    echo "  python3 is not there: figures are not checked against closed forms"
fi

echo "- going on"
run 0 "$program" "${tiny[@]}" --out "$work/a"
cmp -s "$work/out" "$work/first" || fail "the same runs give another table"
rm "$work/a/runs/local-lr0.01-seed2/done"
before=$(stat -c %Y.%i "$work/a/runs/fp16-lr0.01-seed1/done")
run 0 "$program" "${tiny[@]}" --out "$work/a"
[ -e "$work/a/runs/local-lr0.01-seed2/done" ] || fail "not made again"
[ "$(stat -c %Y.%i "$work/a/runs/fp16-lr0.01-seed1/done")" = "$before" ] ||
    fail "made twice"

echo "- printing"
run 0 "$program" --print "$work/a/efficiency.json" --svg "$work/b.svg" \
    --html "$work/b.html" --csv "$work/b.csv"
for f in svg html csv; do
    cmp -s "$work/b.$f" "$work/a/efficiency.$f" || fail "another $f"
done
run 0 "$program" --print "$work/a/efficiency.json" --markdown
[ "$(grep -c '^|' "$work/out")" -eq 21 ] || fail "not 19 rows and a head"
[ ! -e efficiency.out ] || fail "--print makes a folder"
has "$work/out" 'Local SGD: '

echo "- the search"
run 0 "$program" "${tiny[@]}" --seeds 1 --lrs 1e-6,0.01 --out "$work/s"
# Rows that take the same step share the rate of the first of them.
grep -o '"key":"[a-z0-9-]*"\|"lr":[0-9.e-]*\|"lr_of":"[a-z0-9-]*"' \
    "$work/s/efficiency.json" | paste -d' ' - - - >"$work/rates"
has "$work/rates" '"key":"accumulate" "lr":0.01 "lr_of":"baseline"'
has "$work/rates" '"key":"added-mixed" "lr":0.01 "lr_of":"local"'
has "$work/rates" '"key":"sgd" "lr":0.01 "lr_of":"sgd"'
[ -d "$work/s/runs/baseline-lr1e-06-seed1" ] || fail "no search"
[ ! -d "$work/s/runs/accumulate-lr1e-06-seed1" ] || fail "searched twice"
has "$work/out" 'so many images'

echo "efficiency: ok"
