"""How ranks find each other: the all-gathers that creation needs.

An exchange has three methods: start(bytes) -> operation, test(operation) ->
None or the list of all ranks' bytes, cancel(operation). There is one over a
key-value store (torch.distributed's, or FolderStore), one over mpi4py; the one
over a process group of torch is in groups.py.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import pathlib
import tempfile
import time

from . import structs as s

log = logging.getLogger("tacit")

_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def rank_and_size() -> tuple[int, int]:
    """This process's place among those that its launcher has started."""
    for rank, size in _LAUNCHERS:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise RuntimeError(
        "tacit: no launcher has started this process: none of "
        + ", ".join(rank for rank, _ in _LAUNCHERS) + " is set; use torchrun "
        "or mpirun, or give rank and size")


class FolderStore:
    """A key-value store in a folder that all ranks see.

    Has those methods of torch.distributed's stores that StoreExchange needs.
    The folder must be new: what a run before has left would be taken for this
    run's.
    """

    def __init__(self, folder: str | os.PathLike, timeout: float = 300) -> None:
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._timeout = timeout

    def _path(self, key: str) -> pathlib.Path:
        return self._folder / key.replace("/", "+")

    def set(self, key: str, value: bytes) -> None:
        """Appears whole or not at all."""
        fd, name = tempfile.mkstemp(dir=self._folder, prefix=".tmp-")
        with os.fdopen(fd, "wb") as f:
            f.write(value)
        os.replace(name, self._path(key))

    def check(self, keys: list[str]) -> bool:
        """Are all of them there?"""
        return all(self._path(k).exists() for k in keys)

    def get(self, key: str) -> bytes:
        """Waits for the key."""
        until = time.monotonic() + self._timeout
        while not self.check([key]):
            if time.monotonic() > until:
                raise TimeoutError(f"tacit: nobody has set {key} in "
                                   f"{self._folder} for {self._timeout} s")
            time.sleep(0.001)
        return self._path(key).read_bytes()

    def delete_key(self, key: str) -> bool:
        """True if it was there."""
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            return False
        return True


class StoreExchange:
    """All-gathers over a store: one key a rank and operation.

    A rank that has the result of an operation knows that all have begun it, so
    that all are done with the one before, whose key it deletes.
    """

    def __init__(self, store: object, rank: int, size: int,
                 prefix: str) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._prefix, self._number = prefix, itertools.count()

    def _keys(self, number: int) -> list[str]:
        return [f"{self._prefix}/{number}/{r}" for r in range(self._size)]

    def start(self, data: bytes) -> int:
        """Begins an all-gather."""
        number = next(self._number)
        self._store.set(self._keys(number)[self._rank], data)
        return number

    def test(self, number: int) -> list[bytes] | None:
        """The parts, in rank order, or None."""
        keys = self._keys(number)
        if not self._store.check(keys):
            return None
        parts = [bytes(self._store.get(k)) for k in keys]
        self._forget(number - 1)
        return parts

    def cancel(self, number: int) -> None:
        """Nothing is held."""

    def _forget(self, number: int) -> None:
        if number < 0:
            return
        try:
            self._store.delete_key(self._keys(number)[self._rank])
        except (NotImplementedError, RuntimeError):
            pass  # a store that can't: the keys stay, a few hundred bytes


class MpiExchange:
    """All-gathers of an mpi4py communicator."""

    def __init__(self, comm: object) -> None:
        self._comm = comm

    def start(self, data: bytes) -> tuple:
        """Begins an all-gather."""
        send = bytearray(data)
        recv = bytearray(len(data) * self._comm.Get_size())
        return self._comm.Iallgather(send, recv), send, recv

    def test(self, op: tuple) -> list[bytes] | None:
        """The parts, in rank order, or None."""
        request, send, recv = op
        if not request.Test():
            return None
        n = len(send)
        return [bytes(recv[i:i + n]) for i in range(0, len(recv), n)]

    def cancel(self, op: tuple) -> None:
        """MPI can't take it back; the buffers live as long as the request."""
        self._lost = op


class Oob:
    """An exchange as the C structure. `failure` is what it has raised."""

    def __init__(self, exchange: object) -> None:
        self._exchange, self._numbers = exchange, itertools.count(1)
        self._ops: dict[int, tuple] = {}
        self.failure: Exception | None = None
        # Kept here, because the structure does not keep them alive.
        self._callbacks = (s.OobStart(self._start), s.OobTest(self._test),
                           s.OobCancel(self._cancel))
        self.struct = s.Oob(ctypes.sizeof(s.Oob), *self._callbacks, None)

    def _failed(self, e: Exception) -> int:
        self.failure = self.failure or e
        return s.ERR_PEER

    def _start(self, _arg, send, recv, n_bytes, out) -> int:
        try:
            op = self._exchange.start(ctypes.string_at(send, n_bytes))
        except Exception as e:  # any: it must not go through C
            return self._failed(e)
        number = next(self._numbers)
        self._ops[number] = (op, recv, n_bytes)
        out[0] = number
        return s.OK

    def _test(self, _arg, number) -> int:
        op, recv, n_bytes = self._ops[number]
        try:
            parts = self._exchange.test(op)
        except Exception as e:
            del self._ops[number]
            return self._failed(e)
        if parts is None:
            return s.INPROGRESS
        del self._ops[number]
        if any(len(p) != n_bytes for p in parts):
            return self._failed(RuntimeError(
                f"tacit: ranks exchange {[len(p) for p in parts]} bytes where "
                "all must give the same; was the store used before?"))
        ctypes.memmove(recv, b"".join(parts), n_bytes * len(parts))
        return s.OK

    def _cancel(self, _arg, number) -> None:
        op = self._ops.pop(number)
        try:
            self._exchange.cancel(op[0])
        except Exception as e:
            log.debug("giving a bootstrap up failed: %s", e)
