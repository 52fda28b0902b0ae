"""The DDP hook against DDP's own Gloo, LocalSGD against averaging by hand.

Run by tests/cli/pytorch.sh. Exit 77 where torch is missing.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import time
import unittest

import ranks

try:
    import torch
    import torch.distributed as dist
    import torch.nn as nn
    from torch.nn.parallel import DistributedDataParallel as DDP
except ImportError as e:
    print(f"SKIPPED: torch can't be imported: {e}")
    sys.exit(77)

import tacit
from tacit import structs as s

STEPS = 50


def small_cnn() -> nn.Module:
    """With running statistics and a counter."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 3 * 3, 10))


def mlp() -> nn.Module:
    """Its parameters have odd sizes."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 33), nn.Tanh(),
                         nn.Linear(33, 17), nn.Tanh(), nn.Linear(17, 10))


def seeded(make, seed: int = 1, dtype=torch.float32) -> nn.Module:
    """The same on all ranks."""
    torch.manual_seed(seed)
    return make().to(dtype)


def batches(rank: int, n: int, dtype=torch.float32):
    """Images of 8 x 8 and labels, other ones on each rank."""
    g = torch.Generator().manual_seed(100 + rank)
    for _ in range(n):
        yield (torch.randn(4, 1, 8, 8, generator=g).to(dtype),
               torch.randint(0, 10, (4,), generator=g))


def backward(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Forward and backward; the loss."""
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss.item()


def train(model: nn.Module, rank: int, steps: int = STEPS,
          dtype=torch.float32, skip: int = 0) -> nn.Module:
    """SGD with momentum."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for i, (x, y) in enumerate(batches(rank, skip + steps, dtype)):
        if i >= skip:
            optimizer.zero_grad()
            backward(model, x, y)
            optimizer.step()
    return model


def flat(module: nn.Module) -> torch.Tensor:
    """All parameters, one after the other."""
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def distance(a: nn.Module, b: nn.Module) -> float:
    """Of the parameters: the largest difference."""
    return (flat(a) - flat(b)).abs().max().item()


def equal_on_all(t: torch.Tensor) -> bool:
    """The same bits on all ranks?"""
    every = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(every, t.contiguous())
    return all(torch.equal(e, t) for e in every)


@contextlib.contextmanager
def hooked(module: nn.Module, options: dict | None = None, **of_ddp):
    """DDP with our hook, and its state."""
    with contextlib.closing(Closer()) as c:
        model = DDP(module, **of_ddp)
        c.state = tacit.DDPState(timeout=20, **(options or {}))
        model.register_comm_hook(c.state, tacit.ddp_hook)
        yield model, c.state


class Closer:
    """close() of a state that may not have come to be."""

    state = None

    def close(self) -> None:
        """Ends its thread."""
        if self.state is not None:
            self.state.close()


# ---- DistributedDataParallel -------------------------------------------------


def hook_is_ddp(rank: int, size: int) -> None:
    """50 steps with our hook and with Gloo, in DDP's different ways."""
    plain = {"symmetric": False}
    ways = [(small_cnn, plain, {}), (mlp, plain, {"bucket_cap_mb": 0.001}),
            (mlp, {}, {}),
            (mlp, plain, {"gradient_as_bucket_view": True}),
            (small_cnn, {},
             {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001})]
    for make, options, of_ddp in ways:
        theirs = train(DDP(seeded(make), **of_ddp), rank)
        with hooked(seeded(make), options, **of_ddp) as (model, state):
            train(model, rank)
            calls = state.stats()["allreduce"]
            assert distance(theirs, model) < 1e-5, (make, options, of_ddp)
            assert equal_on_all(flat(model))
        assert calls["calls"] >= STEPS, calls
        assert calls["bytes_logical"] == STEPS * 4 * flat(model).numel(), calls


def large_buckets(rank: int, size: int) -> None:
    """Exact averages, in place and in memory that ranks share; the caller's
    tensors are read before they are let go."""
    n = (1 << 18) + 3
    base = torch.arange(n) % 7
    want = base + (size - 1) / 2
    for symmetric in (False, True):
        with contextlib.closing(Closer()) as c:
            c.state = tacit.DDPState(symmetric=symmetric)
            futures = [c.state.submit((base + rank).float(), i)
                       for i in range(4)]
            assert all(torch.equal(f.wait(), want) for f in futures)
            told = c.state.stats()["allreduce"]
            assert told["calls"] == 4
            assert told["calls_symmetric"] == 4 * symmetric, told


def hook_in_double(rank: int, size: int) -> None:
    """Another type of gradients."""
    theirs = train(DDP(seeded(mlp, dtype=torch.float64)), rank, 10,
                   torch.float64)
    with hooked(seeded(mlp, dtype=torch.float64), {"wire": "fp16"}) as (m, _):
        train(m, rank, 10, torch.float64)
        assert distance(theirs, m) < 1e-13


def accumulation(rank: int, size: int) -> None:
    """no_sync sends nothing; then the sums are averaged."""
    plain = seeded(mlp)
    with hooked(seeded(mlp)) as (model, state):
        data = list(batches(rank, 3))
        with model.no_sync():
            for x, y in data[:2]:
                backward(model, x, y)
        assert state.stats()["allreduce"]["calls"] == 0
        backward(model, *data[2])
        for x, y in data:
            backward(plain, x, y)
        for p, q in zip(plain.parameters(), model.parameters()):
            dist.all_reduce(p.grad)
            assert torch.allclose(p.grad / size, q.grad, rtol=1e-5, atol=1e-6)


def compression(rank: int, size: int) -> None:
    """Half the bytes with fp16, a quarter with int8, and it still learns."""
    theirs = train(DDP(seeded(mlp)), rank)
    n = flat(theirs).numel()
    for options, least, most, far in (
            ({"wire": "fp16"}, 0.5, 0.501, 0.01),
            ({"wire": "bf16"}, 0.5, 0.501, 0.08),
            ({"codec": "int8"}, 0.25, 0.28, 0.08)):
        with hooked(seeded(mlp), options) as (model, state):
            train(model, rank)
            told = state.stats()["allreduce"]
            off = distance(theirs, model)
            assert equal_on_all(flat(model))
        assert told["bytes_logical"] == STEPS * 4 * n
        ratio = told["bytes_wire"] / told["bytes_logical"]
        assert least <= ratio <= most, (options, ratio)
        assert 0 < off < far, (options, off)


def codec_state(rank: int, size: int) -> None:
    """Residuals saved in the middle: it goes on with the same bits. Made
    without momentum's state, which is not ours."""
    options = {"codec": "topk:0.1,ef"}

    def run(module: nn.Module, steps: int, skip: int, state=None):
        with hooked(module, {**options, "module": module}) as (model, mine):
            if state is not None:
                mine.load_state_dict(state)
            for i, (x, y) in enumerate(batches(rank, skip + steps)):
                if i < skip:
                    continue
                model.zero_grad()
                backward(model, x, y)
                with torch.no_grad():
                    for p in module.parameters():
                        p -= 0.1 * p.grad
            return mine.state_dict()

    whole, parts = seeded(mlp), seeded(mlp)
    run(whole, 8, 0)
    saved = run(parts, 5, 0)
    assert any("3.weight" in name for name in saved), sorted(saved)
    again = seeded(mlp, 2)
    again.load_state_dict(parts.state_dict())
    run(again, 3, 5, saved)
    assert torch.equal(flat(whole), flat(again))


def failure(rank: int, size: int) -> None:
    """A failure is backward's error on all ranks, with its reason."""
    with hooked(seeded(mlp)) as (model, state):
        if rank == size - 1:
            state.comm.abort("the test wants it")
        try:
            backward(model, *next(batches(rank, 1)))
        except Exception as e:
            assert "the test wants it" in str(e), str(e)
        else:
            raise AssertionError("backward did not fail")
        assert state.comm.error().status == s.ERR_ABORTED
    try:
        state.submit(torch.zeros(3))
    except tacit.TacitError as e:
        assert e.status == s.ERR_STATE
    else:
        raise AssertionError("a closed state takes buckets")


def given_up(rank: int, size: int) -> None:
    """Closed while the others do not come: soon over, and they hear of it."""
    with contextlib.closing(Closer()) as c:
        c.state = tacit.DDPState(symmetric=False)
        if rank == 0:
            begin = time.monotonic()
            c.state.submit(torch.zeros(3))
            c.state.close()
            assert time.monotonic() - begin < 30
        dist.barrier()
        if rank != 0:
            try:
                c.state.submit(torch.zeros(3)).wait()
            except RuntimeError as e:
                assert "TAC_ERR_" in str(e), e
            else:
                raise AssertionError("an average without rank 0")


def mistakes(rank: int, size: int) -> None:
    """What can't be is told at once."""
    for options in ({"wire": "fp8"}, {"wire": "fp16", "codec": "int8"}):
        try:
            tacit.DDPState(**options)
        except ValueError:
            continue
        raise AssertionError(options)
    with contextlib.closing(Closer()) as c:
        c.state = tacit.DDPState(symmetric=False)
        for bad in (torch.zeros(4, dtype=torch.complex64),
                    torch.zeros(4, 4).t()[1:], torch.zeros(3).to_sparse()):
            try:
                c.state.submit(bad)
            except TypeError:
                continue
            raise AssertionError(f"sent {bad}")
        x = torch.full((5,), float(rank))
        assert c.state.submit(x).wait() is x
        assert x.tolist() == [(size - 1) / 2] * 5
    for make in (lambda: tacit.LocalSGD(mlp(), sync_every=0),
                 lambda: tacit.LocalSGD(mlp(), sync_every=2, outer="magic")):
        try:
            make()
        except tacit.TacitError as e:
            assert e.status == s.ERR_ARG
            continue
        raise AssertionError("no error")
    for make in (lambda: tacit.LocalSGD(mlp(), sync_every=2, magic=1),
                 lambda: tacit.LocalSGD(mlp().double(), sync_every=2)):
        try:
            make()
        except TypeError:
            continue
        raise AssertionError("no error")


# ---- groups ------------------------------------------------------------------


def groups(rank: int, size: int) -> None:
    """Communicators of process groups, of parts, and over torch's stores."""
    assert tacit.communicator() is tacit.communicator(dist.group.WORLD)
    assert tacit.communicator().size == size
    halves = [dist.new_group([r for r in range(size) if r % 2 == half])
              for half in (0, 1)]
    mine = tacit.communicator(halves[rank % 2])
    assert mine.size == size // 2 and mine.rank == rank // 2
    x = torch.tensor([float(rank)])
    mine.allreduce(x).wait()
    assert x.item() == sum(range(rank % 2, size, 2))
    store = dist.PrefixStore("p", dist.FileStore(FOLDER + "/store", size))
    comm = tacit.Communicator.from_store(store, rank, size, timeout=20)
    x = torch.tensor([[rank, 1]])
    comm.allreduce(x, op="max").wait()
    assert x.tolist() == [[size - 1, 1]]
    with contextlib.closing(Closer()) as c:
        c.state = tacit.DDPState(comm=mine)
        model = DDP(seeded(mlp), process_group=halves[rank % 2])
        model.register_comm_hook(c.state, tacit.ddp_hook)
        train(model, rank, 3)
        theirs = train(DDP(seeded(mlp), process_group=halves[rank % 2]),
                       rank, 3)
        assert distance(theirs, model) < 1e-6


# ---- local SGD ---------------------------------------------------------------


def mean_of_ranks(tensors, size: int) -> None:
    """In place, through Gloo."""
    for t in tensors:
        dist.all_reduce(t)
        t /= size


def local_training(module: nn.Module, rank: int, steps: int, after,
                   skip: int = 0) -> None:
    """after(attempt) is called behind each step of SGD without state."""
    for i, (x, y) in enumerate(batches(rank, skip + steps)):
        if i < skip:
            continue
        module.zero_grad()
        backward(module, x, y)
        with torch.no_grad():
            for p in module.parameters():
                p -= 0.1 * p.grad
            after(i + 1)


def local_is_averaging(rank: int, size: int) -> None:
    """Every 4 of 10 attempts, and once more at the end: parameters and
    running statistics averaged, the counter kept."""
    ours, hand = seeded(small_cnn), seeded(small_cnn)
    synced = []
    with tacit.LocalSGD(ours, sync_every=4) as local:
        local_training(ours, rank, 10,
                       lambda i: synced.append(local.step().synced))
        assert not local.is_clean
        middle = flat(ours)
        mean = torch.cat([t.reshape(-1) for t in local.mean().values()])
        assert torch.equal(middle, flat(ours))
    assert synced == [i in (4, 8) for i in range(1, 11)]
    assert local.is_clean and equal_on_all(flat(ours))

    def average(i: int) -> None:
        if i in (4, 8, 10):
            mean_of_ranks(hand.parameters(), size)
            mean_of_ranks([hand[1].running_mean, hand[1].running_var], size)

    local_training(hand, rank, 10, average)
    assert distance(ours, hand) < 1e-6
    assert (mean - flat(hand)).abs().max() < 1e-6
    assert torch.allclose(ours[1].running_mean, hand[1].running_mean)
    assert torch.allclose(ours[1].running_var, hand[1].running_var)
    assert ours[1].num_batches_tracked.item() == 10
    told = local.stats()
    assert told["syncs"] == 3 and told["attempts"] == 10
    assert told["bytes_wire"] >= 3 * 4 * flat(ours).numel()


def diloco_is_torchs(rank: int, size: int) -> None:
    """The outer optimizer against torch.optim.SGD on the anchor."""
    ours, hand = seeded(mlp), seeded(mlp)
    with tacit.LocalSGD(ours, sync_every=3, outer="diloco",
                        outer_lr=0.6) as local:
        local_training(ours, rank, 9, lambda i: local.step(lr=0.1))
    anchor = [p.detach().clone() for p in hand.parameters()]
    outer = torch.optim.SGD(anchor, lr=0.6, momentum=0.9, nesterov=True)

    def average(i: int) -> None:
        if i % 3:
            return
        for a, p in zip(anchor, hand.parameters()):
            a.grad = a - p
        mean_of_ranks([a.grad for a in anchor], size)
        outer.step()
        for a, p in zip(anchor, hand.parameters()):
            p.copy_(a)

    local_training(hand, rank, 9, average)
    assert distance(ours, hand) < 1e-5, distance(ours, hand)


def local_goes_on(rank: int, size: int) -> None:
    """Saved within an interval, loaded into another module and object."""
    how = {"sync_every": 4, "outer": "streaming", "fragments": 2,
           "codec": "int8"}
    whole, parts = seeded(mlp), seeded(mlp)
    with tacit.LocalSGD(whole, **how) as local:
        local_training(whole, rank, 14, lambda i: local.step())
    local = tacit.LocalSGD(parts, **how)
    try:
        local.step()
    except tacit.TacitError as e:
        assert e.status == s.ERR_STATE, e
    local.start()
    local_training(parts, rank, 7, lambda i: local.step())
    path = f"{FOLDER}/local.{rank}.pt"
    torch.save({"model": parts.state_dict(), "local": local.state_dict()},
               path)
    local.close()
    loaded = torch.load(path)
    again = seeded(mlp, 2)
    again.load_state_dict(loaded["model"])
    local = tacit.LocalSGD(again, **how)
    local.load_state_dict(loaded["local"])
    with local:
        local_training(again, rank, 7, lambda i: local.step(), skip=7)
    assert torch.equal(flat(whole), flat(again))
    assert equal_on_all(flat(again))


def local_starts(rank: int, size: int) -> None:
    """Rank 0's values go to all, or differences are found."""
    module = seeded(mlp, seed=rank)
    with tacit.LocalSGD(module, sync_every=2):
        assert equal_on_all(flat(module))
    assert torch.equal(flat(module), flat(seeded(mlp, seed=0)))
    try:
        with tacit.LocalSGD(seeded(mlp, seed=rank), sync_every=2,
                            start="verify"):
            raise AssertionError("different modules were taken as equal")
    except tacit.TacitError as e:
        assert e.status == s.ERR_MISMATCH, e
    with contextlib.suppress(KeyError):
        with tacit.LocalSGD(seeded(mlp), sync_every=2) as local:
            raise KeyError("an exception leaves without a collective")
    assert not local.close.alive


def both_at_once(rank: int, size: int) -> None:
    """DDP in pairs and local SGD between them, on one communicator."""
    pairs = [dist.new_group([r, r + 1]) for r in range(0, size, 2)]
    inner = copy.deepcopy(seeded(mlp))
    with contextlib.closing(Closer()) as c:
        c.state = tacit.DDPState(pairs[rank // 2])
        model = DDP(inner, process_group=pairs[rank // 2])
        model.register_comm_hook(c.state, tacit.ddp_hook)
        with tacit.LocalSGD(inner, sync_every=2) as local:
            local_training(model, rank, 5, lambda i: local.step())
    assert equal_on_all(flat(inner))


BODIES = (hook_is_ddp, large_buckets, hook_in_double, accumulation,
          compression, codec_state, failure, given_up, mistakes, groups,
          local_is_averaging, diloco_is_torchs, local_goes_on,
          local_starts, both_at_once)
FOLDER = ""


def all_bodies(rank: int, size: int, folder: str) -> None:
    """One process group for all, because making processes takes time."""
    global FOLDER
    FOLDER = folder
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/gloo",
                            rank=rank, world_size=size)
    for body in BODIES:
        try:
            body(rank, size)
        except BaseException:
            print(f"in {body.__name__} on rank {rank}:", file=sys.stderr)
            raise
        dist.barrier()
    dist.destroy_process_group()


class Torch(unittest.TestCase):
    """On two and four ranks."""

    def test_two(self) -> None:
        ranks.run(2, all_bodies, timeout=120)

    def test_four(self) -> None:
        ranks.run(4, all_bodies, timeout=120)


if __name__ == "__main__":
    unittest.main()
