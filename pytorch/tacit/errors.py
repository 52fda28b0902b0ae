"""Statuses of the library as exceptions."""

from __future__ import annotations

import ctypes

from . import structs as s
from .library import library

_TEXT_BYTES = 4096


class TacitError(RuntimeError):
    """A call that failed. `status` is its code, `name` "TAC_ERR_TIMEOUT"."""

    def __init__(self, status: int, text: str) -> None:
        lib = library()
        self.status = status
        self.name = lib.tac_status_name(status).decode()
        what = lib.tac_status_text(status).decode()
        remedy = lib.tac_status_remedy(status).decode()
        super().__init__(f"{self.name}: {text or what + '; ' + remedy}")


def _message(ask, handle: int, status: int) -> str:
    """What an object has to say about this status; "" if nothing."""
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    told = ask(handle, text, _TEXT_BYTES)
    return text.value.decode(errors="replace") if told == status else ""


def check(status: int, context: int | None = None,
          comm: int | None = None) -> int:
    """Raises TacitError with the objects' own message if status is one."""
    if status >= 0:
        return status
    lib, text = library(), ""
    if comm:
        text = _message(lib.tac_comm_error, comm, status)
    if not text and context:
        text = _message(lib.tac_context_error, context, status)
    raise TacitError(status, text)
