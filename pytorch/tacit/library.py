"""Finding, loading and checking the shared library.

Looked for in this order: $TACIT_LIBRARY (a file or a folder), a build folder
beside this package's source, pkg-config, the loader's own path. The library of
local SGD links that of comm, so it is taken first; with the one of comm
alone everything works but LocalSGD.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import subprocess

from . import structs as s

NAMES = ("localsgd", "comm")


class LibraryNotFound(ImportError):
    """No library, or one that does not fit; the text says what was tried."""


def _in_folder(folder: pathlib.Path) -> list[pathlib.Path]:
    """Libraries in a folder of an installation or of a build."""
    files = []
    for name in NAMES:
        for place in (folder, folder / name):
            files += [place / f"libtacit_{name}.so",
                      place / f"libtacit_{name}.so.0"]
    return files


def _from_environment() -> list[pathlib.Path]:
    value = os.environ.get("TACIT_LIBRARY")
    if not value:
        return []
    path = pathlib.Path(value)
    return _in_folder(path) if path.is_dir() else [path]


def _from_build() -> list[pathlib.Path]:
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / "comm" / "include" / "tacit" / "comm.h").exists():
        return []
    return _in_folder(root / "build")


def _from_pkg_config() -> list[pathlib.Path]:
    files = []
    for name in NAMES:
        try:
            run = subprocess.run(
                ["pkg-config", "--variable=libdir", f"tacit-{name}"],
                capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return files
        if run.returncode == 0 and run.stdout.strip():
            folder = pathlib.Path(run.stdout.strip())
            files += [folder / f"libtacit_{name}.so",
                      folder / f"libtacit_{name}.so.0"]
    return files


def _candidates() -> list[str]:
    given = _from_environment()
    if os.environ.get("TACIT_LIBRARY"):
        return [str(p) for p in given]
    found = [str(p) for p in _from_build() + _from_pkg_config()]
    return found + [f"libtacit_{name}.so.0" for name in NAMES]


def _open() -> tuple[ctypes.CDLL, str]:
    tried = []
    for path in _candidates():
        if os.sep in path and not os.path.exists(path):
            tried.append(f"{path}: is not there")
            continue
        try:
            return ctypes.CDLL(path), path
        except OSError as e:
            tried.append(f"{path}: {e}")
    raise LibraryNotFound(
        "tacit: there is no libtacit_localsgd.so or libtacit_comm.so. Build "
        "the project (cmake --build build), install it, or set TACIT_LIBRARY "
        "to the file or its folder. Tried:\n  " + "\n  ".join(tried))


def _check(lib: ctypes.CDLL, path: str) -> None:
    """The library must have the structures that structs.py mirrors."""
    if not hasattr(lib, "tac_abi"):
        raise LibraryNotFound(f"tacit: {path} is no library of tacit, or one "
                              "older than this package; build it again")
    lib.tac_version.restype = s.CHAR_P
    abi, version = lib.tac_abi(), lib.tac_version().decode()
    if abi != s.ABI:
        raise LibraryNotFound(
            f"tacit: {path} (version {version}) has ABI {abi}, this package "
            f"needs {s.ABI}; use the package and the library of one version")


_P, _I, _Z = s.VOID_P, ctypes.c_int, s.SIZE
_PP, _U64 = ctypes.POINTER(_P), ctypes.c_uint64
_OPT = ctypes.POINTER(s.CollOpt)

# name: (result, arguments); statuses are c_int.
_COMM = {
    "tac_status_name": (s.CHAR_P, [_I]),
    "tac_status_text": (s.CHAR_P, [_I]),
    "tac_status_remedy": (s.CHAR_P, [_I]),
    "tac_context_create": (_I, [ctypes.POINTER(s.ContextConfig), _PP]),
    "tac_context_destroy": (None, [_P]),
    "tac_context_error": (_I, [_P, s.CHAR_P, _Z]),
    "tac_comm_create_oob": (_I, [_P, _I, _I, ctypes.POINTER(s.Oob),
                                 ctypes.POINTER(s.CommConfig), _PP]),
    "tac_thread_group_create": (_I, [_I, _PP]),
    "tac_thread_group_destroy": (None, [_P]),
    "tac_comm_create_threads": (_I, [_P, _P, _I,
                                     ctypes.POINTER(s.CommConfig), _PP]),
    "tac_comm_create_self": (_I, [_P, ctypes.POINTER(s.CommConfig), _PP]),
    "tac_comm_split": (_I, [_P, _I, _I, _PP]),
    "tac_comm_abort": (None, [_P, s.CHAR_P]),
    "tac_comm_error": (_I, [_P, s.CHAR_P, _Z]),
    "tac_comm_destroy": (None, [_P]),
    "tac_comm_rank": (_I, [_P]),
    "tac_comm_size": (_I, [_P]),
    "tac_comm_hosts": (_I, [_P]),
    "tac_comm_transport_name": (s.CHAR_P, [_P]),
    "tac_comm_transport_why": (s.CHAR_P, [_P]),
    "tac_comm_bytes": (_Z, [_P]),
    "tac_allreduce": (_I, [_P, _P, _P, _Z, _I, _I, _OPT, _PP]),
    "tac_reduce_scatter": (_I, [_P, _P, _P, _Z, _I, _I, _OPT, _PP]),
    "tac_allgather": (_I, [_P, _P, _P, _Z, _I, _OPT, _PP]),
    "tac_broadcast": (_I, [_P, _P, _Z, _I, _I, _OPT, _PP]),
    "tac_barrier": (_I, [_P, _OPT, _PP]),
    "tac_send": (_I, [_P, _P, _Z, _I, _I, _OPT, _PP]),
    "tac_recv": (_I, [_P, _P, _Z, _I, _I, _OPT, _PP]),
    "tac_test": (_I, [_P, ctypes.POINTER(_I)]),
    "tac_wait": (_I, [_P, _I]),
    "tac_mem_alloc": (_I, [_P, _Z, _PP]),
    "tac_mem_free": (None, [_P, _P]),
    "tac_comm_stats_get": (None, [_P, ctypes.POINTER(s.CommStats)]),
    "tac_comm_stats_reset": (None, [_P]),
    "tac_comm_dump": (_I, [_P, s.CHAR_P]),
    "tac_codec_create": (_I, [_P, s.CHAR_P, _PP]),
    "tac_codec_destroy": (None, [_P]),
    "tac_codec_spec": (s.CHAR_P, [_P]),
    "tac_codec_has_state": (_I, [_P]),
    "tac_codec_expect": (_I, [_P, ctypes.POINTER(s.CodecLayout)]),
    "tac_codec_stats_get": (None, [_P, ctypes.POINTER(s.CodecStats)]),
    "tac_codec_visit": (_I, [_P, ctypes.POINTER(s.StateVisitor)]),
}

_LOCALSGD = {
    "tac_localsgd_preset": (_I, [_P, s.CHAR_P, ctypes.c_int64,
                                 ctypes.POINTER(s.LocalsgdConfig)]),
    "tac_localsgd_describe": (s.CHAR_P, [ctypes.POINTER(s.LocalsgdConfig),
                                         s.CHAR_P, _Z]),
    "tac_localsgd_create": (_I, [_P, ctypes.POINTER(s.LocalsgdConfig), _PP]),
    "tac_localsgd_destroy": (None, [_P]),
    "tac_localsgd_add": (_I, [_P, ctypes.POINTER(s.LocalsgdTensor)]),
    "tac_localsgd_start": (_I, [_P, _I]),
    "tac_localsgd_step": (_I, [_P, ctypes.POINTER(s.LocalStep),
                               ctypes.POINTER(s.SyncEvent)]),
    "tac_localsgd_micro_step": (None, [_P]),
    "tac_localsgd_due": (_I, [_P]),
    "tac_localsgd_is_clean": (_I, [_P]),
    "tac_localsgd_finish": (_I, [_P]),
    "tac_localsgd_mean": (_I, [_P, ctypes.POINTER(ctypes.c_float)]),
    "tac_localsgd_elements": (_Z, [_P]),
    "tac_localsgd_stats_get": (None, [_P, ctypes.POINTER(s.LocalsgdStats)]),
    "tac_localsgd_bytes": (_Z, [_P]),
    "tac_localsgd_comm_bytes": (_Z, [_P]),
    "tac_localsgd_settle": (_I, [_P]),
    "tac_localsgd_walk": (_I, [_P, ctypes.POINTER(s.StateVisitor)]),
}


def _declare(lib: ctypes.CDLL, table: dict) -> None:
    for name, (result, arguments) in table.items():
        fn = getattr(lib, name)
        fn.restype, fn.argtypes = result, arguments


@functools.lru_cache(maxsize=None)
def _load() -> tuple[ctypes.CDLL, str]:
    lib, path = _open()
    _check(lib, path)
    _declare(lib, _COMM)
    if hasattr(lib, "tac_localsgd_create"):
        _declare(lib, _LOCALSGD)
    return lib, path


def library() -> ctypes.CDLL:
    """The library with its functions declared; loaded at the first call."""
    return _load()[0]


def library_path() -> str:
    """The file that was loaded."""
    return _load()[1]


def need_localsgd() -> ctypes.CDLL:
    """The library, which must have local SGD."""
    lib, path = _load()
    if not hasattr(lib, "tac_localsgd_create"):
        raise LibraryNotFound(
            f"tacit: {path} has no local SGD; build libtacit_localsgd.so and "
            "put it beside that file, or name it in TACIT_LIBRARY")
    return lib
