"""Communicators of torch's process groups."""

from __future__ import annotations

import weakref
from typing import Optional

import torch
import torch.distributed as dist

from .comm import Communicator


class GroupExchange:
    """All-gathers through a process group that handles host memory."""

    def __init__(self, group: object = None) -> None:
        if not dist.is_initialized():
            raise RuntimeError("tacit: there is no process group: call "
                               "torch.distributed.init_process_group first")
        self._group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def start(self, data: bytes) -> tuple:
        """Begins an all-gather."""
        send = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        recv = [torch.empty_like(send) for _ in range(self.size)]
        work = dist.all_gather(recv, send, group=self._group, async_op=True)
        return work, send, recv

    def test(self, op: tuple) -> Optional[list[bytes]]:
        """The parts, in rank order, or None."""
        work, _, recv = op
        if not work.is_completed():
            return None
        work.wait()  # raises what has failed
        return [bytes(t.tolist()) for t in recv]

    def cancel(self, op: tuple) -> None:
        """torch can't take it back; the tensors live as long as the work."""
        self._lost = op


_made: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


def communicator(group: object = None, **options) -> Communicator:
    """The communicator of a process group (None: the default one).

    Made by the first call, which is collective over the group; later calls
    return the same. Options count at the first call.
    """
    key = group if group is not None else dist.group.WORLD
    if key is None:
        raise RuntimeError("tacit: there is no process group: call "
                           "torch.distributed.init_process_group first")
    if key not in _made or not _made[key].close.alive:
        _made[key] = Communicator.from_process_group(group, **options)
    return _made[key]
