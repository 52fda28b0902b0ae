"""Communicators and their collectives, without torch.

Buffers are anything with the writable buffer protocol (array.array, ctypes
arrays, numpy's) or a tensor of torch in host memory. They belong to the library
from the call until its request is complete, and the request keeps them alive.

One thread at a time a communicator, except abort() and error(). Waiting
releases Python's lock, so other threads go on.
"""

from __future__ import annotations

import ctypes
import logging
import weakref
from typing import Iterable, Optional

from . import bootstrap
from . import structs as s
from .errors import TacitError, check
from .library import library

log = logging.getLogger("tacit")

_FORMATS = {"f": s.F32, "d": s.F64, "e": s.F16, "i": s.I32, "q": s.I64,
            "l": s.I64 if ctypes.sizeof(ctypes.c_long) == 8 else s.I32,
            "B": s.U8, "c": s.U8}
_CTYPES = {s.F32: ctypes.c_float, s.F64: ctypes.c_double,
           s.F16: ctypes.c_uint16, s.BF16: ctypes.c_uint16,
           s.I32: ctypes.c_int32, s.I64: ctypes.c_int64, s.U8: ctypes.c_uint8}
_TORCH = {"torch.float32": s.F32, "torch.float64": s.F64,
          "torch.float16": s.F16, "torch.bfloat16": s.BF16,
          "torch.int32": s.I32, "torch.int64": s.I64, "torch.uint8": s.U8}


@s.LogFn
def _log(_arg, level: int, line: bytes) -> None:
    """Errors are raised, too, so their lines are for debugging."""
    to = {s.LOG_ERROR: logging.DEBUG, s.LOG_WARN: logging.WARNING,
          s.LOG_INFO: logging.INFO}.get(level, logging.DEBUG)
    log.log(to, "%s", line.decode(errors="replace"))


class Memory:
    """Where a buffer is: address, elements, dtype, and who keeps it."""

    __slots__ = ("address", "count", "dtype", "owner")

    def __init__(self, address: int, count: int, dtype: int,
                 owner: object) -> None:
        self.address, self.count = address, count
        self.dtype, self.owner = dtype, owner


def _tensor_memory(t) -> Memory:
    dtype = _TORCH.get(str(t.dtype))
    if dtype is None:
        raise TypeError(f"tacit: no collective of {t.dtype}; it takes "
                        + ", ".join(_TORCH))
    if t.device.type != "cpu" or t.layout.__str__() != "torch.strided":
        raise TypeError(f"tacit: a tensor of {t.device} and {t.layout}; only "
                        "dense tensors in host memory can be sent: copy it")
    if not t.is_contiguous():
        raise TypeError("tacit: the tensor is not contiguous; use "
                        ".contiguous()")
    return Memory(t.data_ptr(), t.numel(), dtype, t)


def _view_memory(x: object) -> Memory:
    view = memoryview(x)
    dtype = _FORMATS.get(view.format.lstrip("<=@"))
    if dtype is None:
        raise TypeError(f"tacit: no collective of elements '{view.format}'; "
                        f"it takes {', '.join(s.DTYPE_NAMES)}")
    if view.readonly or not view.c_contiguous:
        raise TypeError("tacit: a buffer must be writable and contiguous")
    count = view.nbytes // s.DTYPE_BYTES[dtype]
    if count == 0:
        return Memory(0, 0, dtype, view)
    raw = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))
    return Memory(ctypes.addressof(raw), count, dtype, (x, raw))


def memory_of(x: object) -> Memory:
    """Address and type of a buffer, or TypeError."""
    if isinstance(x, Memory):
        return x
    return _tensor_memory(x) if hasattr(x, "data_ptr") else _view_memory(x)


def _address(m: Memory) -> int:
    """The library wants an address for empty buffers, too."""
    return m.address or ctypes.addressof(_NOWHERE)


_NOWHERE = ctypes.c_uint64(0)


class Context:
    """What a rank holds; lives as long as its communicators."""

    def __init__(self, rank: int, size: int, threads: int = 1) -> None:
        lib, out = library(), ctypes.c_void_p()
        config = s.ContextConfig(ctypes.sizeof(s.ContextConfig), rank, size,
                                 s.LOG_INFO, _log, None, threads, 1, 0)
        check(lib.tac_context_create(config, out))
        self.handle = out.value
        self.close = weakref.finalize(self, lib.tac_context_destroy,
                                      self.handle)


class Codec:
    """Compression of f32 allreduces, by its specification ("int8,ef")."""

    def __init__(self, comm: "Communicator", spec: str) -> None:
        lib, out = library(), ctypes.c_void_p()
        check(lib.tac_codec_create(comm.context.handle, spec.encode(), out),
              comm.context.handle)
        self.comm = comm
        self.handle = out.value
        self.close = weakref.finalize(self, _destroy_codec, comm, out.value)

    @property
    def spec(self) -> str:
        """With every default written out; "none" for no codec."""
        if not self.handle:
            return "none"
        return library().tac_codec_spec(self.handle).decode()

    def stats(self) -> dict:
        """Calls, bytes before and after, the residuals' norm."""
        out = s.CodecStats()
        if self.handle:
            library().tac_codec_stats_get(self.handle, out)
        return s.as_dict(out)


def _destroy_codec(_comm: "Communicator", handle: Optional[int]) -> None:
    """The communicator is an argument so that it lives as long."""
    library().tac_codec_destroy(handle)


class Request:
    """A collective under way. wait() or a successful test() ends it."""

    def __init__(self, comm: "Communicator", handle: int, keep: tuple) -> None:
        self._comm, self._handle, self._keep = comm, handle, keep
        self._given_up = False

    def test(self) -> bool:
        """True if complete; drives progress, does not block."""
        if self._is_over():
            return True
        done = ctypes.c_int()
        status = library().tac_test(self._handle, done)
        if done.value or status < 0:
            self.wait()
        return bool(done.value)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Returns when complete. After `timeout` seconds (or the operation's
        own limit) it fails, and with it the communicator."""
        if self._is_over():
            return
        ms = 0 if timeout is None else max(1, int(timeout * 1000))
        handle, self._handle = self._handle, None
        status = library().tac_wait(handle, ms)
        self._comm._done(self, status)
        check(status, self._comm.context.handle, self._comm.handle)
        self._keep = ()

    def _is_over(self) -> bool:
        if self._given_up:
            raise TacitError(s.ERR_ABORTED, "the communicator was closed "
                             "before this request was complete")
        return self._handle is None

    def _abandon(self) -> None:
        """The communicator is gone: releases the request."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._given_up = True
            library().tac_wait(handle, 1)


def _config(options: dict) -> s.CommConfig:
    """tac_comm_config from keywords by its fields' names; timeout is in s."""
    timeout = options.pop("timeout", None)
    config = s.CommConfig(struct_size=ctypes.sizeof(s.CommConfig))
    if timeout is not None:
        config.timeout_ms = max(1, int(timeout * 1000))
    known = {name for name, _ in s.CommConfig._fields_} - {"struct_size"}
    for key, value in options.items():
        if key not in known:
            raise TypeError(f"tacit: a communicator has no option '{key}'; it "
                            f"has timeout, {', '.join(sorted(known))}")
        is_text = isinstance(value, str)
        setattr(config, key, value.encode() if is_text else value)
    return config


class Communicator:
    """One rank's handle on a group of ranks. Creation is collective.

    Made by from_store, from_process_group, from_mpi, ThreadGroup.comm, alone or
    split. Their keywords are the fields of tac_comm_config, and timeout in
    seconds: of every operation and of creation.
    """

    def __init__(self, context: Context, handle: int) -> None:
        self.context, self._handle = context, handle
        self._open: set[Request] = set()
        self._lost: list = []
        self.close = weakref.finalize(self, _destroy, context, handle,
                                      self._open)

    # ---- creation

    @classmethod
    def from_exchange(cls, exchange: object, rank: int, size: int,
                      **options) -> "Communicator":
        """With an all-gather of one's own; see bootstrap.py."""
        context, oob = Context(rank, size), bootstrap.Oob(exchange)
        config, out = _config(options), ctypes.c_void_p()
        status = library().tac_comm_create_oob(
            context.handle, rank, size, oob.struct, config, out)
        try:
            check(status, context.handle)
        except TacitError as e:
            raise e from oob.failure
        return cls(context, out.value)

    @classmethod
    def from_store(cls, store: object, rank: int, size: int,
                   prefix: str = "tacit", **options) -> "Communicator":
        """Over a store of torch.distributed or a FolderStore. Each creation
        needs a prefix of its own."""
        exchange = bootstrap.StoreExchange(store, rank, size, prefix)
        return cls.from_exchange(exchange, rank, size, **options)

    @classmethod
    def from_process_group(cls, group: object = None,
                           **options) -> "Communicator":
        """The ranks of a process group of torch (None: the default one)."""
        from .groups import GroupExchange
        exchange = GroupExchange(group)
        return cls.from_exchange(exchange, exchange.rank, exchange.size,
                                 **options)

    @classmethod
    def from_mpi(cls, mpi: object, **options) -> "Communicator":
        """The ranks of a communicator of mpi4py; only creation uses it."""
        return cls.from_exchange(bootstrap.MpiExchange(mpi), mpi.Get_rank(),
                                 mpi.Get_size(), **options)

    @classmethod
    def alone(cls, **options) -> "Communicator":
        """A world of one."""
        context, out = Context(0, 1), ctypes.c_void_p()
        check(library().tac_comm_create_self(context.handle, _config(options),
                                             out), context.handle)
        return cls(context, out.value)

    def split(self, color: int = 0,
              key: Optional[int] = None) -> Optional["Communicator"]:
        """Ranks of equal color >= 0, by key; None for a negative color."""
        out = ctypes.c_void_p()
        key = self.rank if key is None else key
        self._check(library().tac_comm_split(self.handle, color, key, out))
        return Communicator(self.context, out.value) if out.value else None

    # ---- what it is

    @property
    def handle(self) -> int:
        """The C object; an error once it is closed."""
        if not self.close.alive:
            raise TacitError(s.ERR_STATE, "this communicator is closed")
        return self._handle

    @property
    def rank(self) -> int:
        """0 to size - 1."""
        return library().tac_comm_rank(self.handle)

    @property
    def size(self) -> int:
        """Ranks."""
        return library().tac_comm_size(self.handle)

    @property
    def hosts(self) -> int:
        """Groups of ranks that could share memory."""
        return library().tac_comm_hosts(self.handle)

    @property
    def transport(self) -> str:
        """Its name, and why it was chosen."""
        lib = library()
        name = lib.tac_comm_transport_name(self.handle).decode()
        return f"{name}: {lib.tac_comm_transport_why(self.handle).decode()}"

    def bytes_held(self) -> int:
        """Of memory, for this rank."""
        return library().tac_comm_bytes(self.handle)

    def stats(self) -> dict[str, dict]:
        """Calls, bytes and seconds of each collective, and "total"."""
        raw = s.CommStats()
        library().tac_comm_stats_get(self.handle, raw)
        out = {name: s.as_dict(raw.op[i]) for i, name in enumerate(s.COLLS)}
        out["total"] = s.as_dict(raw.total)
        return out

    def stats_reset(self) -> None:
        """Counts from zero again."""
        library().tac_comm_stats_reset(self.handle)

    def dump(self, path: str) -> None:
        """Writes the last operations as JSON."""
        self._check(library().tac_comm_dump(self.handle, path.encode()))

    def abort(self, reason: str) -> None:
        """Makes every later call fail, on all ranks. Any thread."""
        library().tac_comm_abort(self.handle, reason.encode())

    def error(self) -> Optional[TacitError]:
        """The first failure, None while all is well. Any thread."""
        text = ctypes.create_string_buffer(4096)
        status = library().tac_comm_error(self.handle, text, len(text))
        if status >= 0:
            return None
        return TacitError(status, text.value.decode(errors="replace"))

    # ---- collectives

    def allreduce(self, src: object, dst: object = None, op: str = "sum",
                  **options) -> Request:
        """dst = op over ranks of src; in place without dst.

        Options: prescale, postscale, wire ("fp16", "bf16"), codec (a Codec),
        layout, algorithm, timeout (s), tag.
        """
        a = memory_of(src)
        b = a if dst is None else self._same(a, memory_of(dst))
        return self._submit("tac_allreduce", options, a, b, _address(a),
                            _address(b), a.count, a.dtype, self._op(op))

    def reduce_scatter(self, src: object, dst: object, op: str = "sum",
                       **options) -> Request:
        """dst = op over ranks of this rank's block of src."""
        a, b = memory_of(src), memory_of(dst)
        self._blocks(b, a)
        return self._submit("tac_reduce_scatter", options, a, b, _address(a),
                            _address(b), b.count, b.dtype, self._op(op))

    def allgather(self, src: object, dst: object, **options) -> Request:
        """dst = every rank's src, in rank order."""
        a, b = memory_of(src), memory_of(dst)
        self._blocks(a, b)
        return self._submit("tac_allgather", options, a, b, _address(a),
                            _address(b), a.count, a.dtype)

    def broadcast(self, buffer: object, root: int = 0, **options) -> Request:
        """buffer = root's."""
        a = memory_of(buffer)
        return self._submit("tac_broadcast", options, a, None, _address(a),
                            a.count, a.dtype, root)

    def send(self, buffer: object, peer: int, **options) -> Request:
        """Meets peer's recv of this rank."""
        a = memory_of(buffer)
        return self._submit("tac_send", options, a, None, _address(a),
                            a.count, a.dtype, peer)

    def recv(self, buffer: object, peer: int, **options) -> Request:
        """Meets peer's send to this rank."""
        a = memory_of(buffer)
        return self._submit("tac_recv", options, a, None, _address(a),
                            a.count, a.dtype, peer)

    def barrier(self, **options) -> None:
        """Returns when every rank has called it."""
        self._submit("tac_barrier", options, None, None).wait()

    # ---- memory

    def alloc(self, count: int, dtype: str = "f32") -> ctypes.Array:
        """Memory that peers on this host read and write in place; collective.

        A ctypes array of zeros (16-bit floats as c_uint16); torch.frombuffer
        makes a tensor of it. It lives until the communicator is closed.
        """
        code = s.DTYPE_NAMES[dtype]
        out = ctypes.c_void_p()
        self._check(library().tac_mem_alloc(
            self.handle, count * s.DTYPE_BYTES[code], out))
        return (_CTYPES[code] * count).from_address(out.value)

    # ---- inside

    def _check(self, status: int) -> int:
        return check(status, self.context.handle, self.handle)

    @staticmethod
    def _op(name: str) -> int:
        if name not in s.OPS:
            raise ValueError(f"tacit: there is no reduction '{name}'; there "
                             f"are {', '.join(s.OPS)}")
        return s.OPS[name]

    @staticmethod
    def _same(a: Memory, b: Memory) -> Memory:
        if (a.count, a.dtype) != (b.count, b.dtype):
            raise ValueError(f"tacit: source ({a.count} of dtype {a.dtype}) "
                             f"and destination ({b.count} of dtype {b.dtype}) "
                             "differ")
        return b

    def _blocks(self, one: Memory, all_: Memory) -> None:
        if one.dtype != all_.dtype or one.count * self.size != all_.count:
            raise ValueError(f"tacit: {all_.count} elements are not {self.size}"
                             f" blocks of {one.count} of the same type")

    @staticmethod
    def _option(prescale: float = 1, postscale: float = 1,
                wire: Optional[str] = None, codec: Optional[Codec] = None,
                timeout: Optional[float] = None,
                algorithm: Optional[str] = None, tag: int = 0,
                layout: Optional[s.CodecLayout] = None) -> s.CollOpt:
        if wire not in s.WIRES:
            raise ValueError(f"tacit: wire is None, 'fp16' or 'bf16', not "
                             f"{wire!r}")
        return s.CollOpt(
            ctypes.sizeof(s.CollOpt), None, prescale, postscale,
            s.WIRES[wire], codec.handle if codec else None,
            0 if timeout is None else max(1, int(timeout * 1000)),
            algorithm.encode() if algorithm else None, 0, tag,
            ctypes.pointer(layout) if layout is not None else None)

    def _submit(self, name: str, options: dict, a: Optional[Memory],
                b: Optional[Memory], *arguments) -> Request:
        opt, out = self._option(**options), ctypes.c_void_p()
        self._check(getattr(library(), name)(self.handle, *arguments, opt,
                                             out))
        request = Request(self, out.value, (a, b, opt, options))
        self._open.add(request)
        return request

    def _done(self, request: Request, status: int) -> None:
        self._open.discard(request)
        if status < 0:  # the library may hold its buffers until it is closed
            self._lost.append(request._keep)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _destroy(context: Context, handle: int, requests: Iterable) -> None:
    """Unfinished requests fail on all ranks and are released."""
    left = list(requests)
    library().tac_comm_destroy(handle)
    for request in left:
        request._abandon()
    del context  # lives until here


class ThreadGroup:
    """Ranks that are threads of this process: each calls comm(rank)."""

    def __init__(self, size: int) -> None:
        lib, out = library(), ctypes.c_void_p()
        check(lib.tac_thread_group_create(size, out))
        self.size, self._handle = size, out.value
        self.close = weakref.finalize(self, lib.tac_thread_group_destroy,
                                      self._handle)

    def comm(self, rank: int, **options) -> Communicator:
        """Blocks until all ranks' threads have called it."""
        context, out = Context(rank, self.size), ctypes.c_void_p()
        check(library().tac_comm_create_threads(
            context.handle, self._handle, rank, _config(options), out),
            context.handle)
        return Communicator(context, out.value)
