#!/bin/bash
# bench/netlab: two hosts of one rank, joined by 100 Mbit/s. The ranks must take
# each other for different hosts, what they exchange must be on the wire and as
# slow as the wire, and nothing may be left behind: not after success, not after
# the command fails, not after SIGTERM or SIGKILL. Skipped where root or the
# kernel's parts are missing.
set -euo pipefail

netlab=${SOURCE:?set SOURCE to the source folder}/bench/netlab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(compgen -e | grep '^TACIT_' || true); do unset "$name"; done

fail() {
    echo "FAIL: $*"
    head -n 40 "$work/out" "$work/err" 2>/dev/null || true
    exit 1
}

skip() {
    echo "skipped: netlab is not tested: $*"
    exit 77
}

# run RC COMMAND...: output in $work/out and $work/err.
run() {
    local want=$1 got=0
    shift
    timeout 60 "$@" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq "$want" ] || fail "rc $got, not $want: $*"
}

has() {
    grep -q -- "$2" "$1" || fail "no '$2' in $1"
}

# ---- mistakes, which need no root ------------------------------------------

echo "- help and mistakes"
run 0 "$netlab" --help
has "$work/out" --ranks-per-host
run 2 "$netlab"
has "$work/err" 'no command'
run 2 "$netlab" --hosts 0 -- true
has "$work/err" 'from 1 to 64'
run 2 "$netlab" --rate fast -- true
has "$work/err" 1gbit
run 2 "$netlab" --hsots 2 -- true
has "$work/err" 'hsots'
run 2 "$netlab" --hosts
has "$work/err" 'needs a value'

# ---- can this machine? asked without netlab --------------------------------

if [ "$(id -u)" -ne 0 ]; then
    run 2 "$netlab" -- true
    has "$work/err" sudo
    skip "making hosts needs root"
fi
for tool in ip tc unshare nsenter mpirun cc; do
    command -v $tool >/dev/null || skip "there is no $tool here"
done
program=$BUILD/tests/mpi_comm_netlab
[ -x "$program" ] || skip "the project is built without MPI"

probe=tacit-probe-$$
probe() {
    ip netns add $probe &&
        ip link add eth0 netns $probe type veth peer name p0 netns $probe &&
        ip -n $probe link add br0 type bridge &&
        tc -n $probe qdisc add dev eth0 root tbf rate 1gbit burst 32kb \
            latency 20ms &&
        ip netns exec $probe unshare --uts --ipc --mount \
            mount -t tmpfs tmpfs /dev/shm
}
can=yes
probe >"$work/out" 2>&1 || can=no
ip netns delete $probe 2>/dev/null || true
[ $can = yes ] || skip "$(tail -n 1 "$work/out")"

# ---- with two hosts ----------------------------------------------------------

# left PID: what a run has left: names, folders, processes.
left() {
    ip netns list | grep "^netlab-$1-" || true
    find /tmp -maxdepth 1 -name "netlab-$1-*"
    ip -o link | grep "netlab" || true
    local p
    for p in /proc/[0-9]*; do
        { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep "/tmp/netlab-$1-" || true
    done
}

nothing_left() { # PID
    local what
    what=$(left "$1")
    [ -z "$what" ] || fail "left behind: $what"
}

# hosts RC OPTION...: two hosts; the run's number in $pid.
hosts() {
    local want=$1 got=0
    shift
    timeout 60 "$netlab" --hosts 2 --ranks-per-host 1 --rate 100mbit \
        --json "$work/json" "$@" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq "$want" ] || fail "rc $got, not $want"
    pid=$(sed -n 's|.*/tmp/netlab-\([0-9]*\)-.*|\1|p' "$work/err" | head -n 1)
    [ -z "$pid" ] || nothing_left "$pid"
}

number() { # KEY: its first value in the JSON
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$work/json"
}

between() { # WHAT VALUE LEAST MOST
    awk -v v="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(v >= a && v <= b) }' ||
        fail "$1 is $2, not from $3 to $4"
}

# The program adds 250,000 floats ten times: half of them go each way, and half
# of the sums back, so each rank sends 10 MB. Beyond that the interfaces count
# headers, acknowledgements, and the start and end of the job.
echo "- hosts, bytes and time"
hosts 0 --stream --stream-seconds 0.3 -- "$program"
has "$work/out" 'hosts 2 transport mpi'
has "$work/err" 'mpi_yield_when_idle 1'
has "$work/err" 'wire limit for 256K bytes'
echo "$(cat "$work/out"); $(grep -h ' eth0: ' "$work/err" | tr '\n' ';')"
between "goodput (MB/s)" "$(number stream_mb_per_s)" 2 12.6
counted=$(sed -n 's/.*between \([0-9]*\)$/\1/p' "$work/out")
between "bytes that comm counted" "$counted" 10000000 10000000
for key in '"host":"h0","tx_bytes"' '"host":"h1","tx_bytes"'; do
    sent=$(sed -n "s/.*$key:\([0-9]*\).*/\1/p" "$work/json")
    between "$key" "$sent" "$counted" $((counted * 11 / 10))
done
# 10 MB at 12.5 MB/s, of which the bucket gives 32 kB.
between "seconds" "$(sed -n 's/.*seconds \([0-9.]*\).*/\1/p' "$work/out")" \
    0.75 30

if [ -x "$BUILD/ddp_train" ] && command -v python3 >/dev/null; then
    echo "- clocks of two hosts, which are one here"
    hosts 0 -- "$BUILD/ddp_train" --quiet --model mlp:8 \
        --data synth:200 --batch 8 --steps 3 --eval-every 0 --trace "$work/trace.json"
    python3 - "$work/trace.json" <<'PY' || fail "the trace"
import json, sys
clocks = json.load(open(sys.argv[1]))["otherData"]["clocks"]
print(clocks)
assert [c["rank"] for c in clocks] == [1]
assert 0 < clocks[0]["within_us"] < 1e5
assert abs(clocks[0]["offset_us"]) <= clocks[0]["within_us"]
PY
fi

echo "- a command that fails, and one host; a set-up that fails"
hosts 3 --hosts 1 -- sh -c 'exit 3'
has "$work/err" 'ended with 3'
[ "$(number rc)" = 3 ] || fail "the JSON has another exit code"
hosts 2 --rate 1gbit --congestion nosuch -- true
has "$work/err" 'allowed here'

# interrupted SIGNAL RC: the run is stopped while its command sleeps.
interrupted() {
    local got=0 tries=300
    : >"$work/out" # what the run before has said
    "$netlab" --hosts 2 --ranks-per-host 1 -- sh -c \
        'echo started; exec sleep 55' >"$work/out" 2>"$work/err" &
    pid=$!
    until [ "$(grep -c started "$work/out")" = 2 ]; do
        [ $((tries--)) -gt 0 ] || fail "the command did not start"
        sleep 0.05
    done
    [ -n "$(left $pid)" ] || fail "the test does not see the run"
    kill "-$1" $pid
    wait $pid 2>/dev/null || got=$?
    [ "$got" -eq "$2" ] || fail "rc $got after $1, not $2"
}

echo "- stopped in the middle"
interrupted TERM 143
nothing_left $pid

echo "- killed in the middle, then --cleanup"
interrupted KILL 137
[ -n "$(left $pid)" ] || fail "nothing is left: the check is blind"
run 0 "$netlab" --cleanup
has "$work/err" "run $pid"
nothing_left $pid
run 0 "$netlab" --cleanup
! grep -q "run $pid" "$work/err" || fail "cleaned up twice"
echo "passed"
