# Averaging overlaps with backward: with --trace, spans of bucket reductions
# begin inside the backward span of their step, and some also end there or lie
# over it for most of their length.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() {
    timeout 120 "$@" --model cnn --data synth:2000 --batch 32 --steps 12 \
        --quiet --trace "$out/trace.json" --json "$out/summary.json"
}
if command -v mpirun >/dev/null && nm "$BUILD/ddp_train" | grep -q tac_comm_create_mpi; then
    run mpirun -np 4 "$BUILD/ddp_train" --transport mpi || exit 1
else
    run "$BUILD/ddp_train" --ranks 4 || exit 1
fi
command -v python3 >/dev/null || { echo "skipped: no python3 to read the trace"; exit 77; }
python3 - "$out/trace.json" "$out/summary.json" <<'PY'
import json, sys
trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
summary = json.load(open(sys.argv[2]))
spans = [e for e in events if e.get("ph") == "X"]
ranks = {e["pid"] for e in spans}
assert ranks == set(range(4)), f"ranks in the trace: {ranks}"
order = {e["pid"]: e["args"]["sort_index"] for e in events
         if e["name"] == "process_sort_index"}
assert order == {r: r for r in range(4)}, f"order of the ranks: {order}"
# Times begin with the run, events of a rank come in order; ranks of one host
# have one clock.
times = [[e["ts"] for e in spans if e["pid"] == r] for r in range(4)]
assert min(map(min, times)) == 0, f"first at {min(map(min, times))} us"
assert max(map(min, times)) < 5e6, "a rank begins seconds later"
assert all(t == sorted(t) for t in times), "events out of order"
assert trace["otherData"] == {"overwritten_spans": 0, "clocks": []}, trace["otherData"]
inside = total = 0
for rank in ranks:
    back = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans
                  if e["pid"] == rank and e["name"] == "backward")
    buckets = [(e["ts"], e["ts"] + e["dur"]) for e in spans
               if e["pid"] == rank and e["name"].startswith("bucket")]
    assert len(back) == 12, f"{len(back)} backward spans on rank {rank}"
    assert len(buckets) >= 12, f"{len(buckets)} bucket spans on rank {rank}"
    for b, e in buckets:
        total += 1
        inside += any(lo <= b < hi for lo, hi in back)
print(f"{inside} of {total} bucket spans begin inside backward; "
      f"comm_s {summary['comm_s']:.4f}, exposed {summary['comm_exposed_s']:.4f}")
# Spans of one lane nest, or viewers draw nonsense.
for rank in ranks:
    for lane in {e["tid"] for e in spans if e["pid"] == rank}:
        ends = []
        mine = sorted(((e["ts"], -e["dur"]) for e in spans
                       if e["pid"] == rank and e["tid"] == lane))
        for ts, minus_dur in mine:
            while ends and ends[-1] <= ts + 0.1:
                ends.pop()
            end = ts - minus_dur
            assert not ends or end <= ends[-1] + 0.1, \
                f"spans overlap on rank {rank}, lane {lane} at {ts}"
            ends.append(end)
# All but the last bucket of a step start before backward is over.
assert inside >= total // 2
assert 0 <= summary["comm_exposed_s"] <= summary["comm_s"]
PY
