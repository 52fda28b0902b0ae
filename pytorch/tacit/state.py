"""State of the library's objects as dictionaries of bytes, and back.

The library shows each array by name, type and shape; saving copies it out,
loading copies it in. A dictionary has {name: (dtype, shape, bytes)}.
"""

from __future__ import annotations

import ctypes
from typing import Callable

from . import structs as s

State = dict[str, tuple[int, tuple[int, ...], bytes]]


def _shape(item: s.StateItem) -> tuple[int, ...]:
    return tuple(item.shape[i] for i in range(item.ndim))


def _bytes(item: s.StateItem) -> int:
    n = s.DTYPE_BYTES[item.dtype]
    for extent in _shape(item):
        n *= extent
    return n


class _Walk:
    """A visitor whose callback's exception is raised after the walk."""

    def __init__(self, show: Callable[[str, s.StateItem], None]) -> None:
        self._show, self._failure = show, None
        self._callback = s.StateVisit(self._visit)
        self._visitor = s.StateVisitor(self._callback, None, None)

    def _visit(self, _arg, item) -> int:
        try:
            self._show(item.contents.name.decode(), item.contents)
        except Exception as e:  # any: it must not go through C
            self._failure = e
            return s.ERR_ARG
        return s.OK

    def run(self, walk: Callable[[s.StateVisitor], int],
            check: Callable[[int], object]) -> None:
        status = walk(self._visitor)
        if self._failure:
            raise self._failure
        check(status)


def save(walk: Callable, check: Callable) -> State:
    """What `walk(visitor)` shows."""
    out: State = {}

    def show(name: str, item: s.StateItem) -> None:
        n = _bytes(item)
        data = ctypes.string_at(item.data, n) if n else b""
        out[name] = (item.dtype, _shape(item), data)

    _Walk(show).run(walk, check)
    return out


def load(state: State, walk: Callable, check: Callable) -> None:
    """Writes it into what `walk(visitor)` shows. Nothing may be missing, left
    over or of another shape."""
    left = dict(state)

    def show(name: str, item: s.StateItem) -> None:
        if name not in left:
            raise KeyError(f"tacit: the saved state has no '{name}'")
        dtype, shape, data = left.pop(name)
        if (dtype, tuple(shape)) != (item.dtype, _shape(item)):
            raise ValueError(f"tacit: '{name}' was saved with shape {shape}, "
                             f"but is {_shape(item)} now")
        if data:
            ctypes.memmove(item.data, data, len(data))

    _Walk(show).run(walk, check)
    if left:
        raise ValueError("tacit: the saved state has more than this object: "
                         + ", ".join(sorted(left)[:5]))
