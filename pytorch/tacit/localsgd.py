"""Averaging of a module's parameters now and then: local SGD, DiLoCo, ...

    with tacit.LocalSGD(model, comm, sync_every=16, outer="diloco") as local:
        for x, y in batches:
            loss = train_step(x, y)
            local.step(lr=lr, loss=loss)

Works on the parameters' own memory: f32 in host memory, contiguous. Nothing may
replace that memory afterwards (`p.data = ...`, module.to()); load_state_dict
and optimizers write into it, which is right.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import NamedTuple, Optional

import torch

from . import state as saved
from . import structs as s
from .comm import Communicator, memory_of
from .errors import check
from .groups import communicator
from .library import need_localsgd

PRESETS = ("local", "slowmo", "diloco", "streaming", "oneshot")


class Sync(NamedTuple):
    """What a step did."""

    synced: bool  # something was merged or sent
    level: int  # the outermost that was
    fragment: int  # which; -1: several or all
    interval: int  # attempts since the synchronisation before
    arrived: int  # delayed results that were applied


def _config(preset: str, every: int, options: dict, context: int,
            lib: ctypes.CDLL) -> s.LocalsgdConfig:
    """A preset with some of its fields replaced."""
    config = s.LocalsgdConfig(struct_size=ctypes.sizeof(s.LocalsgdConfig))
    check(lib.tac_localsgd_preset(context, preset.encode(), every, config),
          context)
    tables = {"outer_kind": s.OUTERS, "weighting": s.WEIGHTINGS,
              "stale": s.STALES}
    places = {"outer_kind": (config.outer, "kind"),
              "outer_lr": (config.outer, "lr"),
              "outer_momentum": (config.outer, "momentum"),
              "warm_up": (config.schedule, "start")}
    plain = {"total", "codec", "weighting", "fragments", "strided", "delay",
             "alpha", "stale", "seed"}
    for key, value in options.items():
        if key not in places and key not in plain:
            raise TypeError(f"tacit: LocalSGD has no option '{key}'; it has "
                            + ", ".join(sorted([*places, *plain, "levels"])))
        if key in tables:
            value = tables[key][value]
        target, field = places.get(key, (config, key))
        setattr(target, field,
                value.encode() if isinstance(value, str) else value)
    return config


def _set_levels(config: s.LocalsgdConfig, levels: list) -> None:
    if len(levels) > s.LOCALSGD_LEVELS:
        raise ValueError(f"tacit: at most {s.LOCALSGD_LEVELS} levels")
    config.n_levels = len(levels)
    for place, (ranks, every) in zip(config.levels, levels):
        place.ranks, place.every = ranks, every


class LocalSGD:
    """Averages a module over the ranks every `sync_every` attempts.

    module       its parameters (each once) and buffers: running statistics are
                 averaged, counters become the largest, other buffers stay each
                 rank's own
    comm         a Communicator; None: that of the default process group
    sync_every   H
    outer        "local" (plain averaging), "slowmo", "diloco", "streaming" or
                 "oneshot" (at the end only)
    start        how ranks begin: "broadcast" (rank 0's values), or "verify"
                 (they must have the same)
    levels       [(ranks, every), ...], inner first, instead of sync_every
    options      outer_kind, outer_lr, outer_momentum, codec, weighting
                 ("samples": a rank counts by its samples), fragments, strided,
                 delay, alpha, stale, total, seed, and warm_up: so many attempts
                 at the beginning that are averaged each

    Use it in a with statement: entering starts (collective), leaving averages
    what is not yet averaged (collective; not after an exception).
    """

    def __init__(self, module: torch.nn.Module,
                 comm: Optional[Communicator] = None, *, sync_every: int,
                 outer: str = "local", start: str = "broadcast",
                 levels: Optional[list] = None, warm_up: int = 0,
                 **options) -> None:
        if start not in ("broadcast", "verify"):
            raise ValueError(f"tacit: start is 'broadcast' or 'verify', not "
                             f"{start!r}")
        self._lib = need_localsgd()
        self.comm = comm if comm is not None else communicator()
        context = self.comm.context.handle
        config = _config(outer, sync_every, {"warm_up": warm_up, **options},
                         context, self._lib)
        _set_levels(config, levels or [])
        out = ctypes.c_void_p()
        self.comm._check(self._lib.tac_localsgd_create(
            self.comm.handle, config, out))
        self._handle, self._module = out.value, module
        # The communicator and the tensors' memory are arguments so that they
        # live as long as the object.
        self._memory: list = []
        self.close = weakref.finalize(self, _destroy, self._lib, out.value,
                                      self.comm, self._memory)
        self._how = {"broadcast": s.START_BROADCAST,
                     "verify": s.START_VERIFY}[start]
        self.description = _describe(self._lib, config)
        self._add_all(module)

    # ---- the run

    def start(self) -> None:
        """Collective, before the first forward pass; `with` calls it."""
        self._check(self._lib.tac_localsgd_start(self._object, self._how))

    def step(self, *, lr: float = 1.0, loss: float = float("nan"),
             samples: float = 1.0, skipped: bool = False) -> Sync:
        """After each attempt of the optimizer, applied or `skipped` (as
        GradScaler does): parameters are averaged when it is time.

        `lr` is the optimizer's, for slowmo; `samples` the rank's weight, for
        weighting "samples". A rank without data left calls it with samples=0.
        """
        event = s.SyncEvent()
        step = s.LocalStep(lr, float(loss), samples, int(skipped))
        self._check(self._lib.tac_localsgd_step(self._object, step, event))
        return Sync(bool(event.synced), event.level, event.fragment,
                    event.interval, event.arrived)

    def finish(self) -> None:
        """Collective: all ranks end with the same parameters."""
        self._check(self._lib.tac_localsgd_finish(self._object))

    def __enter__(self) -> "LocalSGD":
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.close()

    # ---- looking

    @property
    def due(self) -> bool:
        """Will the next step synchronise or apply something?"""
        return bool(self._lib.tac_localsgd_due(self._object))

    @property
    def is_clean(self) -> bool:
        """Do all ranks have the same parameters now?"""
        return bool(self._lib.tac_localsgd_is_clean(self._object))

    def mean(self) -> dict[str, torch.Tensor]:
        """The parameters' mean over the ranks, by name, for evaluating;
        collective, changes nothing."""
        flat = torch.empty(self._lib.tac_localsgd_elements(self._object))
        pointer = ctypes.cast(flat.data_ptr(), ctypes.POINTER(ctypes.c_float))
        self._check(self._lib.tac_localsgd_mean(self._object, pointer))
        named = list(self._module.named_parameters())
        parts = flat.split([p.numel() for _, p in named])
        return {name: part.view(p.shape)
                for (name, p), part in zip(named, parts)}

    def stats(self) -> dict:
        """Synchronisations, bytes, seconds, distances between ranks."""
        out = s.LocalsgdStats()
        self._lib.tac_localsgd_stats_get(self._object, out)
        return s.as_dict(out)

    def bytes_held(self) -> int:
        """Of memory, for this rank: anchor, outer state, staging."""
        return (self._lib.tac_localsgd_bytes(self._object)
                + self._lib.tac_localsgd_comm_bytes(self._object))

    # ---- checkpoints

    def state_dict(self) -> saved.State:
        """All that going on bit for bit needs, of this rank and but for the
        module's own tensors; collective. torch.save can write it."""
        self._check(self._lib.tac_localsgd_settle(self._object))
        return saved.save(self._walk, self._check)

    def load_state_dict(self, state: saved.State) -> None:
        """Before the start, with the module's own state loaded, on as many
        ranks and with the configuration that it was saved with."""
        saved.load(state, self._walk, self._check)
        self._how = s.START_LOADED

    # ---- inside

    @property
    def _object(self) -> int:
        if not self.close.alive:
            raise RuntimeError("tacit: this LocalSGD is closed")
        return self._handle

    def _walk(self, visitor: s.StateVisitor) -> int:
        return self._lib.tac_localsgd_walk(self._object, visitor)

    def _check(self, status: int) -> int:
        return check(status, self.comm.context.handle, self.comm.handle)

    def _add_all(self, module: torch.nn.Module) -> None:
        layers: dict[str, int] = {}
        for name, p in module.named_parameters():
            layer = layers.setdefault(name.rpartition(".")[0], len(layers))
            self._add(name, p, s.ROLE_PARAM, layer)
        for name, b in module.named_buffers():
            self._add_buffer(name, b)

    def _add_buffer(self, name: str, b: torch.Tensor) -> None:
        if b.dtype == torch.int64:
            self._add(name, b, s.ROLE_COUNTER)
        elif b.dtype == torch.float32:
            last = name.rpartition(".")[2]
            running = last in ("running_mean", "running_var")
            self._add(name, b, s.ROLE_STATISTIC if running else s.ROLE_BUFFER)
        # Others (masks, indices) are constants of the module: not sent.

    def _add(self, name: str, t: torch.Tensor, role: int,
             layer: int = -1) -> None:
        memory = memory_of(t.detach())
        wanted = s.I64 if role == s.ROLE_COUNTER else s.F32
        if memory.dtype != wanted:
            raise TypeError(f"tacit: '{name}' is {t.dtype}; LocalSGD averages "
                            "parameters of torch.float32 (keep masters in f32)")
        self._memory.append(memory)
        tensor = s.LocalsgdTensor(name.encode(), role, s.MERGE_DEFAULT,
                                  memory.dtype, memory.count, memory.address,
                                  layer, None)
        self._check(self._lib.tac_localsgd_add(self._handle, tensor))


def _describe(lib: ctypes.CDLL, config: s.LocalsgdConfig) -> str:
    text = ctypes.create_string_buffer(1024)
    return lib.tac_localsgd_describe(config, text, len(text)).decode()


def _destroy(lib: ctypes.CDLL, handle: int, _comm: Communicator,
             _memory: list) -> None:
    lib.tac_localsgd_destroy(handle)
