"""Gradients through tacit's hook against Gloo's allreduce, on this host.

    python3 pytorch/measure.py --np 2 --json out.json

Two measurements, each of the same buckets, the ways taking turns within one
run, and the median of the slowest rank's times:

    move   the buckets alone: from handing over the first to having the last
    step   forward and backward of a DistributedDataParallel whose gradients
           they are; "no_sync" is the same without communication

"overlap": the gradients over an emulated network behind a backward that sleeps,
neither of which takes a CPU's time: how much of sending is hidden. Then 50
steps of a small network with Gloo and with the hook, whose parameters must
agree to 1e-5, and the bytes that the fp16 hook has sent.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402

import tacit  # noqa: E402

WAYS = {"tacit": {}, "tacit in place": {"symmetric": False},
        "tacit fp16": {"wire": "fp16"}}


def slowest(seconds: float) -> float:
    """Of all ranks."""
    t = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item()


def in_turns(ways: dict, seconds: float, warm_up: int = 3) -> dict:
    """Medians of each way's times, all ways once in each turn."""
    times: dict[str, list] = {name: [] for name in ways}
    begin, turn, more = time.monotonic(), 0, True
    while more:
        for name, way in ways.items():
            dist.barrier()
            t = time.perf_counter()
            way()
            t = slowest(time.perf_counter() - t)
            if turn >= warm_up:
                times[name].append(t)
        turn += 1
        past = slowest(time.monotonic() - begin)  # all ranks stop together
        more = past < seconds or turn < warm_up + 5
    return {name: statistics.median(t) for name, t in times.items()}


def bucket_sizes(total: int, limit: int) -> list[int]:
    """Elements: a first one of 1 MiB, then `limit` bytes, as DDP's."""
    left, out = total // 4, []
    for size in [1 << 20] + [limit] * (total // limit + 1):
        n = min(left, size // 4)
        if n:
            out.append(n)
            left -= n
    return out


def move(size: int, args: argparse.Namespace) -> dict:
    """Buckets alone."""
    sizes = bucket_sizes(args.mib << 20, args.bucket_mib << 20)
    buckets = [torch.ones(n) for n in sizes]
    states = {name: tacit.DDPState(**options)
              for name, options in WAYS.items()}

    def ours(state: tacit.DDPState) -> None:
        futures = [state.submit(b, i) for i, b in enumerate(buckets)]
        for f in futures:
            f.wait()

    def gloo() -> None:
        works = [dist.all_reduce(b, async_op=True) for b in buckets]
        for w, b in zip(works, buckets):
            w.wait()
            b /= size

    ways = {"gloo": gloo}
    ways.update((name, lambda s=s: ours(s)) for name, s in states.items())
    out = in_turns(ways, args.seconds)
    for s in states.values():
        s.close()
    return out


class Pause(torch.autograd.Function):
    """Passes on what it gets; its backward takes time, but no CPU's."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, seconds: float) -> torch.Tensor:
        """The same values."""
        ctx.seconds = seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple:
        """The same gradient, later."""
        time.sleep(ctx.seconds)
        return grad, None


class Wide(nn.Module):
    """Layers of 1 MiB, each with a pause."""

    def __init__(self, mib: int, pause: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512, bias=False)
                                    for _ in range(mib))
        self.pause = pause

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One after the other."""
        for layer in self.layers:
            x = layer(Pause.apply(x, self.pause) if self.pause else x)
        return x


def model_step(model: DDP, x: torch.Tensor, sync: bool = True) -> None:
    """Forward and backward."""
    model.zero_grad(set_to_none=False)
    with contextlib.nullcontext() if sync else model.no_sync():
        model(x).square().mean().backward()


def steps(args: argparse.Namespace, states: dict, bucket_mib: float,
          pause: float = 0) -> dict:
    """Times of forward and backward, by state; None: Gloo."""
    x, ways = torch.randn(args.batch, 512), {}
    for name, state in {**states, "no_sync": None}.items():
        torch.manual_seed(1)
        model = DDP(Wide(args.mib, pause), bucket_cap_mb=bucket_mib)
        if state:
            model.register_comm_hook(state, tacit.ddp_hook)
        ways[name] = functools.partial(model_step, model, x,
                                       name != "no_sync")
    return in_turns(ways, args.seconds)


def step(args: argparse.Namespace) -> dict:
    """Forward and backward on this host."""
    states = {name: tacit.DDPState(**options)
              for name, options in WAYS.items()}
    out = steps(args, {"gloo": None, **states}, args.bucket_mib)
    for s in states.values():
        s.close()
    return out


def overlap(size: int, args: argparse.Namespace) -> dict:
    """How much of the time on a network is hidden behind backward, where
    neither takes a CPU's time: backward sleeps as long as sending takes."""
    comm = tacit.Communicator.from_process_group(
        emulate=f"hosts={size},rate={args.rate},delay=0")
    bucket_mib, state = 1, tacit.DDPState(comm=comm)
    buckets = [torch.ones(n)
               for n in bucket_sizes(args.mib << 20, bucket_mib << 20)]

    def alone() -> None:
        for f in [state.submit(b, i) for i, b in enumerate(buckets)]:
            f.wait()

    moved = in_turns({"alone": alone}, args.seconds)["alone"]
    t = steps(args, {"tacit": state}, bucket_mib, moved / args.mib)
    state.close()
    exposed = t["tacit"] - t["no_sync"]
    return {"alone": moved, "backward": t["no_sync"], "step": t["tacit"],
            "hidden": 1 - exposed / moved}


def train(rank: int, options: dict | None) -> tuple[torch.Tensor, dict]:
    """50 steps; parameters, and what the communicator counted."""
    torch.manual_seed(1)
    model = DDP(nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * 13 * 13, 64), nn.ReLU(), nn.Linear(64, 10)))
    state = None
    if options is not None:
        state = tacit.DDPState(**options)
        model.register_comm_hook(state, tacit.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(rank)
    for _ in range(50):
        x = torch.randn(8, 1, 28, 28, generator=g)
        y = torch.randint(0, 10, (8,), generator=g)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    told = state.stats()["allreduce"] if state else {}
    if state:
        state.close()
    return torch.cat([p.detach().reshape(-1)
                      for p in model.parameters()]), told


def equality(rank: int) -> dict:
    """How far apart 50 steps end, and bytes."""
    theirs, _ = train(rank, None)
    ours, plain = train(rank, {})
    half, fp16 = train(rank, {"wire": "fp16"})
    far = torch.stack([(ours - theirs).abs().max(),
                       (half - theirs).abs().max()])
    dist.all_reduce(far, op=dist.ReduceOp.MAX)
    return {"difference": far[0].item(), "difference_fp16": far[1].item(),
            "bytes_wire": plain["bytes_wire"],
            "bytes_wire_fp16": fp16["bytes_wire"]}


def main_of_rank(rank: int, args: argparse.Namespace, folder: str) -> None:
    """One rank."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // args.np))
    dist.init_process_group("gloo", init_method=f"file://{folder}/store",
                            rank=rank, world_size=args.np)
    out = {"np": args.np, "mib": args.mib, "bucket_mib": args.bucket_mib,
           "batch": args.batch, "torch": torch.__version__,
           "transport": tacit.communicator().transport,
           "move": move(args.np, args), "step": step(args),
           "overlap": overlap(args.np, args), **equality(rank)}
    if rank == 0:
        report(out)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    dist.destroy_process_group()


def report(out: dict) -> None:
    """For people. A ratio above 1: faster than Gloo."""
    print(f"{out['np']} ranks, {out['mib']} MiB of gradients, buckets of "
          f"{out['bucket_mib']} MiB, torch {out['torch']}, "
          f"{out['transport']}")
    for what in ("move", "step"):
        gloo = out[what]["gloo"]
        for name, t in out[what].items():
            print(f"  {what}  {name:<16} {t * 1e3:9.2f} ms   "
                  f"{gloo / t:5.2f} x Gloo's speed")
    o = out["overlap"]
    print("  overlap on an emulated network: "
          f"sending {o['alone'] * 1e3:.1f} ms, backward {o['backward'] * 1e3:.1f} ms, together "
          f"{o['step'] * 1e3:.1f} ms: {100 * o['hidden']:.0f} % of sending "
          "hidden")
    half = out["bytes_wire_fp16"] / out["bytes_wire"]
    print(f"  50 steps: parameters differ from Gloo's by at most "
          f"{out['difference']:.2g} (fp16: {out['difference_fp16']:.2g})")
    print(f"  bytes_wire: {out['bytes_wire']}, with fp16 "
          f"{out['bytes_wire_fp16']}: {half:.4f} of it")


def main() -> int:
    """Starts the ranks; 0 if all went well."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--np", type=int, default=2)
    p.add_argument("--mib", type=int, default=16)
    p.add_argument("--bucket-mib", type=int, default=4)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--rate", default="400mbit", help="of the emulated network")
    p.add_argument("--json")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [multiprocessing.get_context("fork").Process(
            target=main_of_rank, args=(r, args, folder))
            for r in range(args.np)]
        for r in ranks:
            r.start()
        for r in ranks:
            r.join()
    return 0 if all(r.exitcode == 0 for r in ranks) else 1


if __name__ == "__main__":
    sys.exit(main())
