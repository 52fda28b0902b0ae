"""Runs a function on several ranks that are processes of this machine."""

from __future__ import annotations

import multiprocessing
import pathlib
import sys
import tempfile
import traceback
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def _main(body: Callable, rank: int, size: int, folder: str, out) -> None:
    try:
        out.put((rank, None, body(rank, size, folder)))
    except BaseException:
        out.put((rank, traceback.format_exc(), None))


def run(size: int, body: Callable, timeout: float = 60) -> list:
    """body(rank, size, folder) on `size` processes; their results by rank.

    AssertionError with the tracebacks if one fails; none is left running. A
    rank may end by itself before it has told its result: that is None.
    """
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    results: list = [None] * size
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=_main, args=(body, r, size, folder,
                                                     out))
                 for r in range(size)]
        for p in ranks:
            p.start()
        failures = _collect(ranks, out, results, timeout)
        for p in ranks:
            if p.is_alive():
                p.kill()
                failures.append(f"rank {ranks.index(p)} did not end")
            p.join()
    if failures:
        raise AssertionError("\n".join(failures))
    return results


def _collect(ranks: list, out, results: list, timeout: float) -> list[str]:
    """Reads results before it joins, for a full pipe would hold ranks up."""
    failures = []
    for _ in ranks:
        try:
            rank, failure, result = out.get(timeout=timeout)
        except Exception:
            failures.append(f"not all ranks have told a result in {timeout} s")
            break
        results[rank] = result
        if failure:
            failures.append(f"rank {rank}:\n{failure}")
    for p in ranks:
        p.join(5)
    return failures
