# Files written here load in PyTorch, with its types and to the last bit, and
# what PyTorch writes loads here: f32, f16, bf16, odd shapes, empty tensors and
# scalars; and the model of a checkpoint is the state of PyTorch's layers.
# TACIT_PYTHON: a Python with torch, safetensors and numpy (python3).
set -u
: "${BUILD:?set BUILD to the build folder}"
python=${TACIT_PYTHON-python3}
unset TACIT_PYTHON
exchange=$BUILD/tests/battery_data_exchange
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

[ -x "$exchange" ] || { echo "skipped: $exchange is not built"; exit 77; }
"$python" -c 'import numpy, torch, safetensors.torch' 2>"$out/why" || {
    echo "skipped: NOTHING was compared with PyTorch, since $python says:"
    tail -n 1 "$out/why"
    echo "give one that has it: TACIT_PYTHON=venv/bin/python"
    exit 77
}

"$exchange" write "$out/ours.safetensors" || exit 1
"$BUILD/ddp_train" --quiet --threads 1 --model mlp:24 --data synth:300 --steps 12 --batch 16 \
    --optimizer adamw --run-dir "$out/run" --save-every 12 || exit 1
cp "$out"/run/checkpoints/step-00000012/model.safetensors "$out/"

"$python" - "$out" <<'PY' || exit 1
import sys
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

out = sys.argv[1]
ours = load_file(out + "/ours.safetensors")

def ramp(n, dtype, *shape):
    return ((torch.arange(n, dtype=torch.float32) - 3) * 0.375).to(dtype).reshape(shape)

want = {
    "fc1.weight": ramp(15, torch.float32, 3, 5),
    "fc1.bias": ramp(5, torch.float32, 5),
    "half.weight": ramp(21, torch.float16, 1, 7, 3),
    "half.scalar": ramp(1, torch.float16),
    "half.empty": ramp(0, torch.float16, 0),
    "brain.weight": ramp(12, torch.bfloat16, 4, 3),
    "brain.empty": ramp(0, torch.bfloat16, 2, 0, 3),
    "brain.odd": ramp(1, torch.bfloat16, 1, 1, 1),
    "brain.scalar": ramp(1, torch.bfloat16),
    "wide": ramp(9, torch.float64, 9),
    "empty": torch.zeros(0, 4),
    "counter": torch.tensor(0),
    "ids": torch.arange(6, dtype=torch.int32) * 3,
    "state": torch.arange(13, dtype=torch.uint8) * 3,
}
for name, t in want.items():
    got = ours[name]
    assert got.dtype == t.dtype and got.shape == t.shape, (name, got.dtype, got.shape)
    assert torch.equal(got, t), name
print("ours is PyTorch's:", len(ours), "tensors, torch", torch.__version__)

# Theirs: odd places of the data, and more than a page.
theirs = dict(want)
theirs["big"] = ramp(257 * 129, torch.float32, 257, 129)
theirs["view"] = ramp(30, torch.bfloat16, 5, 6).t().contiguous()
theirs["z"] = torch.tensor([1, 2, 3], dtype=torch.uint8)
save_file(theirs, out + "/theirs.safetensors", {"format": "pt"})
with open(out + "/want", "w") as f:
    for name, t in theirs.items():
        raw = t.contiguous().flatten().view(torch.uint8).numpy().tobytes() if t.numel() else b""
        if t.dim() == 0:
            raw = t.reshape(1).view(torch.uint8).numpy().tobytes()
        kind = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
                torch.float64: "f64", torch.int64: "i64", torch.int32: "i32",
                torch.uint8: "u8"}[t.dtype]
        f.write("%s %s [%s] %s\n" % (name, kind, ",".join(map(str, t.shape)), raw.hex()))

# A checkpoint's model is the state of PyTorch's layers as it is.
w = {k.removeprefix("model."): t for k, t in load_file(out + "/model.safetensors").items()}
net = torch.nn.ModuleDict({"fc1": torch.nn.Linear(784, 24), "fc2": torch.nn.Linear(24, 10)})
net.load_state_dict(w, strict=True)
print("a checkpoint's model is PyTorch's:", ", ".join(sorted(w)))
PY
"$exchange" dump "$out/theirs.safetensors" >"$out/got" || exit 1
sort "$out/got" >"$out/got.sorted"
sort "$out/want" >"$out/want.sorted"
diff "$out/want.sorted" "$out/got.sorted" >"$out/diff" || {
    echo "FAILED: PyTorch's is not ours"
    cut -c1-150 "$out/diff" | head -n 10
    exit 1
}
echo "PyTorch's is ours"
