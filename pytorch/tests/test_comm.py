"""Communicators through ctypes, with the standard library alone."""

from __future__ import annotations

import array
import ctypes
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest

import ranks
import tacit
from tacit import structs as s

SIZES = (0, 1, 5, 1000, 70001)


def join(rank: int, size: int, folder: str, **options) -> tacit.Communicator:
    """A communicator over a folder."""
    options.setdefault("timeout", 20)
    return tacit.Communicator.from_store(tacit.FolderStore(folder), rank, size,
                                         **options)


def raises(status: int, call) -> str:
    """The message of the TacitError that call() must raise."""
    try:
        call()
    except tacit.TacitError as e:
        assert e.status == status, f"{e}, not {status}"
        return str(e)
    raise AssertionError(f"no error, not {status}")


def values(rank: int, n: int) -> list[float]:
    """Small integers, whose sums are exact."""
    return [(i + 3 * rank) % 8 for i in range(n)]


def reductions(rank: int, size: int, folder: str) -> None:
    want = {"sum": sum, "avg": lambda v: sum(v) / size, "min": min, "max": max}
    with join(rank, size, folder) as comm:
        for n in SIZES:
            all_ = list(zip(*(values(r, n) for r in range(size)))) or []
            for op, f in want.items():
                src = array.array("f", values(rank, n))
                dst = array.array("f", [-7] * n)
                comm.allreduce(src, dst, op=op).wait()
                expect = array.array("f", [f(v) for v in all_])
                assert dst == expect, (n, op)
                assert src == array.array("f", values(rank, n))
                comm.allreduce(src, op=op).wait()
                assert src == expect, (n, op, "in place")


def types(rank: int, size: int, folder: str) -> None:
    total = size * (size + 1) // 2
    with join(rank, size, folder) as comm:
        for code in "dfiqlB":
            x = array.array(code, [rank + 1] * 33)
            comm.allreduce(x).wait()
            assert list(x) == [total] * 33, code
        x = (ctypes.c_int64 * 3)(rank, 1, -rank)
        comm.allreduce(x, op="max").wait()
        assert list(x) == [size - 1, 1, 0]
        x = bytearray([rank] * 4)
        comm.allreduce(x, op="max").wait()
        assert x == bytearray([size - 1] * 4)


def collectives(rank: int, size: int, folder: str) -> None:
    with join(rank, size, folder) as comm:
        assert (comm.rank, comm.size) == (rank, size)
        every = array.array("f", [-1] * (7 * size))
        comm.allgather(array.array("f", [rank] * 7), every).wait()
        assert list(every) == [r for r in range(size) for _ in range(7)]
        mine = array.array("f", [-1] * 7)
        comm.reduce_scatter(every, mine).wait()
        assert list(mine) == [rank * size] * 7
        x = array.array("d", [rank] * 5)
        comm.broadcast(x, root=size - 1).wait()
        assert list(x) == [size - 1] * 5
        to, back = array.array("i", [rank]), array.array("i", [-1])
        requests = [comm.send(to, (rank + 1) % size),
                    comm.recv(back, (rank - 1) % size)]
        while not all([r.test() for r in requests]):
            pass
        assert back[0] == (rank - 1) % size
        comm.barrier()
        total = comm.stats()["total"]
        assert total["calls"] >= 6 and comm.stats()["send"]["calls"] == 1
        comm.stats_reset()
        assert comm.stats()["total"]["calls"] == 0
        assert comm.bytes_held() > 0 and ":" in comm.transport


def many_under_way(rank: int, size: int, folder: str) -> None:
    """Requests keep their buffers, also those that the caller has dropped."""
    with join(rank, size, folder) as comm:
        kept = [array.array("f", [rank] * (100 * i)) for i in range(20)]
        requests = [comm.allreduce(x) for x in kept]
        requests += [comm.allreduce(array.array("f", [1] * 5000))
                     for _ in range(20)]
        for r in reversed(requests):
            r.wait()
            r.wait()  # a second time is nothing
        for i, x in enumerate(kept):
            assert list(x) == [size * (size - 1) / 2] * (100 * i)


def compressed(rank: int, size: int, folder: str) -> None:
    n = 10000
    with join(rank, size, folder) as comm:
        codec = tacit.Codec(comm, "int8")
        for options, least, most in (
                ({}, 4 * n, 4 * n), ({"wire": "fp16"}, 2 * n, 2 * n + 64),
                ({"wire": "bf16"}, 2 * n, 2 * n + 64),
                ({"codec": codec}, n, n + 256)):
            comm.stats_reset()
            x = array.array("f", [1 + i % 3 for i in range(n)])
            comm.allreduce(x, op="avg", **options).wait()
            told = comm.stats()["allreduce"]
            assert told["bytes_logical"] == 4 * n
            assert least <= told["bytes_wire"] <= most, (options, told)
            for i in range(n):
                assert abs(x[i] - (1 + i % 3)) < 0.03, (options, i, x[i])
        assert codec.stats()["calls"] == 1 and codec.spec.startswith("int8")


def symmetric(rank: int, size: int, folder: str) -> None:
    n = 1 << 17
    with join(rank, size, folder) as comm:
        x = comm.alloc(n)
        x[:] = [rank + i % 9 for i in range(n)]
        comm.stats_reset()
        comm.allreduce(x).wait()
        extra = size * (size - 1) // 2
        assert list(x) == [size * (i % 9) + extra for i in range(n)]
        told = comm.stats()["allreduce"]
        assert told["calls_symmetric"] == 1, (comm.transport, told)


def splits(rank: int, size: int, folder: str) -> None:
    with join(rank, size, folder) as comm:
        half = comm.split(rank % 2, key=-rank)
        assert half.size == len(range(rank % 2, size, 2))
        x = array.array("f", [rank])
        half.allreduce(x).wait()
        assert x[0] == sum(range(rank % 2, size, 2))
        only = comm.split(0 if rank == 0 else -1)
        assert (only is None) == (rank != 0)
        again = tacit.Communicator.from_store(
            tacit.FolderStore(folder), rank, size, prefix="again")
        again.barrier()


def mistakes(rank: int, size: int, folder: str) -> None:
    with join(rank, size, folder) as comm:
        x = array.array("f", [1, 2, 3])
        for bad in (lambda: comm.allreduce(b"abcd"),
                    lambda: comm.allreduce(array.array("u", "abc")),
                    lambda: comm.allreduce(x, typo=1),
                    lambda: join(rank, size, folder, typo=1)):
            try:
                bad()
            except TypeError:
                continue
            raise AssertionError("no TypeError")
        for bad in (lambda: comm.allreduce(x, op="mean"),
                    lambda: comm.allreduce(x, wire="fp8"),
                    lambda: comm.allreduce(x, array.array("f", [1])),
                    lambda: comm.allgather(x, array.array("f", [1]))):
            try:
                bad()
            except ValueError:
                continue
            raise AssertionError("no ValueError")
        text = raises(s.ERR_UNSUPPORTED,
                      lambda: comm.allreduce(x, algorithm="magic"))
        assert "magic" in text
        assert "int9" in raises(s.ERR_ARG, lambda: tacit.Codec(comm, "int9"))
        comm.allreduce(x).wait()  # it is still healthy
        assert comm.error() is None
        # Ranks that disagree are told so, all of them, and stay told.
        y = array.array("f", [0] * (10 + rank))
        text = raises(s.ERR_MISMATCH, lambda: comm.allreduce(y).wait())
        assert "f32 x 10" in text and "f32 x 1" in text, text
        raises(s.ERR_MISMATCH, lambda: comm.allreduce(x))
        assert comm.error().name == "TAC_ERR_MISMATCH"
    raises(s.ERR_STATE, lambda: comm.size)
    comm.close()


def late(rank: int, size: int, folder: str) -> None:
    """The other one does not come: an error in time."""
    store = tacit.FolderStore(folder)
    with join(rank, size, folder) as comm:
        if rank == 0:
            begin = time.monotonic()
            x = array.array("f", [1])
            raises(s.ERR_TIMEOUT, lambda: comm.allreduce(x, timeout=0.3).wait())
            assert time.monotonic() - begin < 10
            store.set("over", b"")
        else:
            store.get("over")


def aborted(rank: int, size: int, folder: str) -> None:
    comm = join(rank, size, folder)
    if rank == 0:
        comm.abort("enough")
    text = raises(s.ERR_ABORTED,
                  lambda: comm.allreduce(array.array("f", [1])).wait())
    assert "enough" in text


def missing(rank: int, size: int, folder: str) -> None:
    """Creation without the last rank."""
    if rank == size - 1:
        return
    raises(s.ERR_TIMEOUT, lambda: join(rank, size, folder, timeout=0.3))


class BrokenStore:
    """A store whose server is gone."""

    def set(self, key: str, value: bytes) -> None:
        raise OSError("the server is gone")


class Processes(unittest.TestCase):
    """Each body on two and three processes."""

    def test_all(self) -> None:
        for body in (reductions, types, collectives, many_under_way,
                     compressed, symmetric, splits, mistakes, aborted,
                     missing):
            for size in (2, 3):
                with self.subTest(body=body.__name__, size=size):
                    ranks.run(size, body)

    def test_late(self) -> None:
        ranks.run(2, late)


class Threads(unittest.TestCase):
    """Ranks that are threads."""

    def test_threads(self) -> None:
        size, failures = 4, []
        group = tacit.ThreadGroup(size)

        def body(rank: int) -> None:
            try:
                with group.comm(rank, timeout=20) as comm:
                    x = array.array("f", [rank] * 100)
                    for _ in range(5):
                        comm.allreduce(x, op="avg").wait()
                    assert list(x) == [1.5] * 100
                    comm.barrier()
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=body, args=(r,))
                   for r in range(size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class Alone(unittest.TestCase):
    """What needs no other rank."""

    def test_alone(self) -> None:
        comm = tacit.Communicator.alone()
        x = array.array("d", [1, 2, 3])
        comm.allreduce(x, op="avg", postscale=2).wait()
        self.assertEqual(list(x), [2, 4, 6])

    def test_closed_under_way(self) -> None:
        comm = tacit.Communicator.alone()
        request = comm.allreduce(array.array("f", [1]))
        comm.close()
        self.assertRaises(tacit.TacitError, request.wait)

    def test_many_are_released(self) -> None:
        for _ in range(200):
            tacit.Communicator.alone(timeout=1)

    def test_broken_bootstrap(self) -> None:
        with self.assertRaises(tacit.TacitError) as caught:
            tacit.Communicator.from_store(BrokenStore(), 0, 2, timeout=2)
        self.assertIn("gone", str(caught.exception.__cause__))

    def test_launchers(self) -> None:
        saved = dict(os.environ)
        try:
            for rank, size in (("RANK", "WORLD_SIZE"),
                               ("OMPI_COMM_WORLD_RANK",
                                "OMPI_COMM_WORLD_SIZE")):
                os.environ.clear()
                self.assertRaises(RuntimeError, tacit.rank_and_size)
                os.environ[rank], os.environ[size] = "3", "8"
                self.assertEqual(tacit.rank_and_size(), (3, 8))
        finally:
            os.environ.update(saved)

    def test_no_torch_needed(self) -> None:
        code = ("import sys; sys.modules['torch'] = None\n"
                "import tacit; tacit.Communicator.alone()\n"
                "try: tacit.DDPState\n"
                "except ImportError: print('fine')")
        self.assertEqual(self.python(code).stdout, "fine\n")

    def test_library_is_not_there(self) -> None:
        code = "import tacit; tacit.library_path()"
        run = self.python(code, TACIT_LIBRARY="/nowhere/lib.so")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("/nowhere/lib.so: is not there", run.stderr)
        self.assertIn("TACIT_LIBRARY", run.stderr)

    def test_library_is_another(self) -> None:
        libc = subprocess.run(["cc", "-print-file-name=libc.so.6"], text=True,
                              capture_output=True, check=False).stdout.strip()
        if not os.path.isabs(libc):
            self.skipTest("no other library is known")
        run = self.python("import tacit; tacit.library_path()",
                          TACIT_LIBRARY=libc)
        self.assertIn("is no library of tacit", run.stderr)

    @staticmethod
    def python(code: str, **environment: str) -> subprocess.CompletedProcess:
        """A fresh interpreter with the package."""
        path = str(pathlib.Path(__file__).resolve().parents[1])
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
            timeout=60, check=False)


if __name__ == "__main__":
    unittest.main()
