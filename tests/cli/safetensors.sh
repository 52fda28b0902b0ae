# Files written here load in Python's safetensors, and theirs here: every type,
# to the byte; one file written by both has the same bytes. Needs the package
# index or its cache (pip install safetensors numpy); without it nothing is
# tested, and the script says so and exits 77.
set -u
: "${BUILD:?set BUILD to the build folder}"
exchange=$BUILD/tests/battery_data_exchange
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

[ -x "$exchange" ] || { echo "skipped: $exchange is not built"; exit 77; }
python3 -m venv "$out/venv" >"$out/log" 2>&1 &&
    timeout 100 "$out/venv/bin/pip" install -q --disable-pip-version-check \
        safetensors numpy >>"$out/log" 2>&1 || {
    echo "skipped: Python's safetensors could not be installed, so NOTHING was"
    echo "compared with it. The last lines of the attempt:"
    tail -n 5 "$out/log"
    exit 77
}

"$exchange" write "$out/ours.safetensors" || exit 1
"$out/venv/bin/python" - "$out" <<'EOF' || exit 1
import json, struct, sys
import numpy as np
import safetensors
from safetensors import safe_open, deserialize, serialize
from safetensors.numpy import load_file

out = sys.argv[1]
ours = out + "/ours.safetensors"

def ramp(n):
    return (np.arange(n, dtype=np.float32) - 3) * np.float32(0.375)

def bf16(x):  # exact here, so cutting is rounding
    return (x.view(np.uint32) >> 16).astype(np.uint16)

odd = 'été "x"\\\n'
want = {
    "fc1.weight": ("F32", "float32", ramp(15).reshape(3, 5)),
    "fc1.bias": ("F32", "float32", ramp(5)),
    "half.weight": ("F16", "float16", ramp(21).astype(np.float16).reshape(1, 7, 3)),
    "brain.weight": ("BF16", "bfloat16", bf16(ramp(12)).reshape(4, 3)),
    "wide": ("F64", "float64", ramp(9).astype(np.float64)),
    "counter": ("I64", "int64", np.array(0, dtype=np.int64)),
    "ids": ("I32", "int32", np.arange(6, dtype=np.int32) * 3),
    "state": ("U8", "uint8", np.arange(13, dtype=np.uint8) * 3),
    "empty": ("F32", "float32", np.zeros((0, 4), dtype=np.float32)),
    "half.scalar": ("F16", "float16", np.array(-1.125, dtype=np.float16)),
    "half.empty": ("F16", "float16", np.zeros((0,), dtype=np.float16)),
    "brain.empty": ("BF16", "bfloat16", np.zeros((2, 0, 3), dtype=np.uint16)),
    "brain.odd": ("BF16", "bfloat16", bf16(ramp(1)).reshape(1, 1, 1)),
    "brain.scalar": ("BF16", "bfloat16", bf16(ramp(1)).reshape(())),
    odd: ("F32", "float32", np.array(-1.125, dtype=np.float32)),
}
metadata = {"format": 'pt "é"'}

# Ours, read by the library: names, types, shapes, bytes, metadata.
have = dict(deserialize(open(ours, "rb").read()))
assert set(have) == set(want), set(have) ^ set(want)
for name, (dtype, _, array) in want.items():
    t = have[name]
    assert t["dtype"] == dtype, (name, t["dtype"])
    assert list(t["shape"]) == list(array.shape), (name, t["shape"])
    assert bytes(t["data"]) == array.tobytes(), name
with safe_open(ours, framework="np") as f:
    assert f.metadata() == metadata, f.metadata()
    for name in ("fc1.weight", "half.weight", "wide", odd):
        got = f.get_tensor(name)
        assert got.dtype == want[name][2].dtype and np.array_equal(got, want[name][2])
print("ours is theirs:", len(want), "tensors, safetensors", safetensors.__version__)

# Theirs: the same tensors.
def spec(dtype, array):
    if hasattr(safetensors, "TensorSpec"):
        return safetensors.TensorSpec(dtype=dtype, shape=list(array.shape),
                                      data_ptr=array.ctypes.data,
                                      data_len=array.nbytes)
    return {"dtype": dtype, "shape": list(array.shape), "data": array.tobytes()}

theirs = bytes(serialize({n: spec(d, a) for n, (_, d, a) in want.items()}, metadata))
open(out + "/theirs.safetensors", "wb").write(theirs)
mine = open(ours, "rb").read()
if theirs != mine:
    print("the library writes", theirs[:300], "and we", mine[:300])
    sys.exit("FAILED: the files differ")
print("the same bytes:", len(mine))

# What dump must say, in the file's order.
n = struct.unpack("<Q", theirs[:8])[0]

header = json.loads(theirs[8:8 + n])
header.pop("__metadata__", None)
with open(out + "/want", "w") as f:
    for name in sorted(header, key=lambda k: header[k]["data_offsets"]):
        d, _, a = want[name]
        f.write("%s %s [%s] %s\n" % (name.replace("\n", "\\n"), d.lower(),
                ",".join(map(str, a.shape)), a.tobytes().hex()))

# What their numpy front end writes.
from safetensors.numpy import save_file
save_file({"z": np.ones((2, 2), np.float32), "a": np.zeros(3, np.float16)},
          out + "/other.safetensors")
EOF
"$exchange" dump "$out/theirs.safetensors" >"$out/got" || exit 1
sort "$out/got" >"$out/got.sorted"
sort "$out/want" >"$out/want.sorted"
diff "$out/want.sorted" "$out/got.sorted" || { echo "FAILED: theirs is not ours"; exit 1; }
"$exchange" dump "$out/other.safetensors" >"$out/got" || exit 1
grep -q '^z f32 \[2,2\] 0000803f0000803f0000803f0000803f$' "$out/got" || { cat "$out/got"; exit 1; }
# The comparison can fail.
printf 'x' | dd of="$out/ours.safetensors" bs=1 seek=$(($(stat -c %s "$out/ours.safetensors") - 1)) conv=notrunc 2>/dev/null
if "$exchange" dump "$out/ours.safetensors" | sort | diff -q - "$out/want.sorted" >/dev/null; then
    echo "FAILED: a changed byte went unnoticed"
    exit 1
fi
echo "theirs is ours"
