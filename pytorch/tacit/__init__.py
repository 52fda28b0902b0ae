"""tacit: communication of tacit's libraries for Python and PyTorch.

Communicators, collectives and codecs need the standard library alone:

    from tacit import Communicator, FolderStore

With PyTorch there are a communication hook for DistributedDataParallel
(DDPState, ddp_hook) and averaging of parameters now and then (LocalSGD).
docs/pytorch.md is the manual.
"""

from __future__ import annotations

from .bootstrap import FolderStore, rank_and_size
from .comm import Codec, Communicator, Request, ThreadGroup
from .errors import TacitError
from .library import LibraryNotFound, library_path

__all__ = [
    "Codec", "Communicator", "DDPState", "FolderStore", "LibraryNotFound",
    "LocalSGD", "Request", "TacitError", "ThreadGroup", "communicator",
    "ddp_hook", "library_path", "rank_and_size",
]

_NEED_TORCH = {
    "DDPState": "ddp", "ddp_hook": "ddp", "communicator": "groups",
    "LocalSGD": "localsgd",
}


def __getattr__(name: str) -> object:
    """Imports what needs torch when it is first asked for."""
    if name not in _NEED_TORCH:
        raise AttributeError(f"module 'tacit' has no attribute '{name}'")
    from importlib import import_module
    return getattr(import_module("." + _NEED_TORCH[name], __name__), name)
