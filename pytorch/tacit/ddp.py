"""A communication hook for torch's DistributedDataParallel.

    ddp.register_comm_hook(tacit.DDPState(), tacit.ddp_hook)

The hook only hands the bucket to a thread of the state, which submits it, waits
for it in C without Python's lock, and completes the future: so backward goes
on. That thread alone uses the state's communicator, which it has split off.
"""

# No "from __future__ import annotations": DDP looks at the hook's annotations.
import collections
import queue
import threading
import weakref
from typing import Optional

import torch
import torch.distributed as dist

from . import state as saved
from . import structs as s
from .comm import Codec, Communicator, memory_of
from .errors import TacitError
from .groups import communicator
from .library import library


_GRACE_S = 2.0


class _Job:
    """A bucket on its way: what is sent, and the future of the result."""

    def __init__(self, tensor: torch.Tensor, options: dict,
                 home: Optional[torch.Tensor]) -> None:
        self.tensor, self.options, self.home = tensor, options, home
        self.future: torch.futures.Future = torch.futures.Future()
        self.request = None

    def submit(self, comm: Communicator) -> None:
        if self.home is not None:
            self.home.copy_(self.tensor)
            self.tensor = self.home
        self.request = comm.allreduce(self.tensor, op="avg", **self.options)

    def finish(self) -> None:
        self.request.wait()


class _Allocation:
    """Symmetric memory, asked of the thread that owns the communicator."""

    def __init__(self, like: torch.Tensor) -> None:
        self.count, self.type = like.numel(), like.dtype
        self.code = memory_of(like).dtype
        self.future: torch.futures.Future = torch.futures.Future()
        self.tensor: Optional[torch.Tensor] = None

    def submit(self, comm: Communicator) -> None:
        name = next(n for n, c in s.DTYPE_NAMES.items() if c == self.code)
        self.tensor = torch.frombuffer(comm.alloc(self.count, name),
                                       dtype=self.type)

    def finish(self) -> None:
        pass


def _result(future: torch.futures.Future) -> torch.Tensor:
    """Runs as a continuation, where an exception becomes the future's."""
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


def _attempt(job: _Job, what, *arguments) -> bool:
    """False, and the future has the exception, if it raised one."""
    try:
        what(*arguments)
    except Exception as e:  # any: whoever waits must hear of it
        job.future.set_result(e)
        return False
    return True


def _take(jobs: "queue.SimpleQueue", block: bool) -> tuple[bool, list]:
    """All jobs that are there; False if there will be no more."""
    out = []
    try:
        while True:
            job = jobs.get(block and not out)
            if job is None:
                return False, out
            out.append(job)
    except queue.Empty:
        return True, out


def _work(comm: Communicator, jobs: "queue.SimpleQueue") -> None:
    """The thread: submits what has come, waits for the first, and so on."""
    under_way: collections.deque[_Job] = collections.deque()
    more = True
    while more or under_way:
        if more:
            more, new = _take(jobs, block=not under_way)
            under_way += [j for j in new if _attempt(j, j.submit, comm)]
        if under_way:
            job = under_way.popleft()
            if _attempt(job, job.finish):
                job.future.set_result(job.tensor)
            del job  # not kept until the next one comes


def _stop(thread: threading.Thread, jobs: "queue.SimpleQueue",
          comm: Communicator) -> None:
    """What is under way gets a moment; then it is given up, on all ranks, so
    that a program that ends with an error need not wait for others."""
    jobs.put(None)
    thread.join(_GRACE_S)
    if thread.is_alive():
        comm.abort("a DDPState was closed with buckets under way")
        thread.join()
    comm.close()


class DDPState:
    """What ddp_hook needs. Making one is collective.

    group         the process group of the DistributedDataParallel
    comm          instead: a Communicator of the same ranks in the same order
    wire          "fp16" or "bf16": buckets of f32 travel as 16 bits, are added
                  in f32 and rounded once more
    codec         stronger compression of f32 ("int8", "topk:0.01,ef", ...);
                  not together with wire
    symmetric     True: buckets are copied to memory that all ranks of the host
                  share and averaged there, which is faster than through the
                  staging of the transport but holds the gradients once more;
                  None: where ranks share memory, without wire and codec
    timeout       seconds that a bucket may take
    module        names the parameters whose state a codec keeps, which saving
                  and loading that state need
    grad_scale    the loss scale that gradients carry; set it before each
                  backward pass if it changes (codecs keep residuals without it)

    close() ends its thread; without it that happens when the state is no
    longer used, at the latest when the program ends.
    """

    def __init__(self, group: object = None,
                 comm: Optional[Communicator] = None, *,
                 wire: Optional[str] = None, codec: Optional[str] = None,
                 symmetric: Optional[bool] = None,
                 timeout: Optional[float] = None,
                 module: Optional[torch.nn.Module] = None,
                 grad_scale: float = 1.0) -> None:
        if wire not in s.WIRES:
            raise ValueError(f"tacit: wire is None, 'fp16' or 'bf16', not "
                             f"{wire!r}")
        if wire and codec not in (None, "none"):
            raise ValueError("tacit: give wire or codec, not both; the codec "
                             "'fp16,ef' has the cast with error feedback")
        parent = comm if comm is not None else communicator(group)
        self.comm = parent.split()
        self.wire, self.timeout = wire, timeout
        self.codec = Codec(self.comm, codec or "none")
        self.grad_scale = grad_scale
        if symmetric is None:
            shared = self.comm.transport.startswith(("shm:", "thread:"))
            symmetric = shared and not wire and not self.codec.handle
        self.symmetric = symmetric
        self._names: dict[int, tuple[bytes, torch.Tensor]] = {
            id(p): (name.encode(), p)
            for name, p in (module.named_parameters() if module else ())}
        self._layouts: dict[int, tuple[tuple, s.CodecLayout]] = {}
        self._homes: dict[tuple, torch.Tensor] = {}
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        thread = threading.Thread(target=_work, name="tacit-ddp", daemon=True,
                                  args=(self.comm, self._jobs))
        thread.start()
        self.close = weakref.finalize(self, _stop, thread, self._jobs,
                                      self.comm)

    def stats(self) -> dict[str, dict]:
        """Of the communicator; while no bucket is under way."""
        return self.comm.stats()

    # ---- a bucket

    def submit(self, tensor: torch.Tensor, index: int = 0,
               parameters: Optional[list] = None) -> torch.futures.Future:
        """Averages a flat tensor over the ranks; a future of the result.

        `index` tells buckets of one step apart. The result is the tensor
        itself; if `symmetric`, other memory, until the next call with that
        index.
        """
        if not self.close.alive:
            raise TacitError(s.ERR_STATE, "this DDPState is closed")
        memory_of(tensor)  # says what can't be sent, in the caller's thread
        job = _Job(tensor, self._options(tensor, index, parameters),
                   self._home(tensor, index))
        future = job.future.then(_result)
        self._jobs.put(job)
        return future

    def _options(self, tensor: torch.Tensor, index: int,
                 parameters: Optional[list]) -> dict:
        options = {"timeout": self.timeout, "tag": index}
        if tensor.dtype == torch.float32:
            options["wire"] = self.wire
            if self.codec.handle:
                options["codec"] = self.codec
                options["layout"] = self._layout(index, parameters)
        return options

    def _name(self, p: torch.Tensor) -> bytes:
        """The module's; else a number, equal on all ranks, because they meet
        parameters in the same order."""
        if id(p) not in self._names:
            self._names[id(p)] = (f"p{len(self._names)}".encode(), p)
        return self._names[id(p)][0]

    def _layout(self, index: int,
                parameters: Optional[list]) -> Optional[s.CodecLayout]:
        """Which parameters the bucket is made of, one after the other."""
        if parameters is None:
            return None
        key = tuple(id(p) for p in parameters)
        if self._layouts.get(index, (None,))[0] != key:
            self._layouts[index] = (key, self._make_layout(parameters))
        layout = self._layouts[index][1]
        layout.grad_scale = self.grad_scale
        return layout

    def _make_layout(self, parameters: list) -> s.CodecLayout:
        parts, offset = (s.CodecPart * len(parameters))(), 0
        for part, p in zip(parts, parameters):
            shape = (s.SIZE * p.dim())(*p.shape)
            part.name, part.offset = self._name(p), offset
            part.count, part.ndim, part.shape = p.numel(), p.dim(), shape
            offset += p.numel()
        return s.CodecLayout(len(parts), parts, self.grad_scale)

    def _home(self, tensor: torch.Tensor,
              index: int) -> Optional[torch.Tensor]:
        """The bucket's symmetric memory. A collective call: buckets are the
        same on all ranks, and so the first meetings with each of them."""
        if not self.symmetric or tensor.numel() == 0:
            return None
        key = (index, tensor.numel(), tensor.dtype)
        if key not in self._homes:
            self._homes[key] = self._allocate(tensor)
        return self._homes[key]

    def _allocate(self, tensor: torch.Tensor) -> torch.Tensor:
        job = _Allocation(tensor)
        self._jobs.put(job)
        return job.future.then(_result).wait()

    # ---- checkpoints

    def state_dict(self) -> saved.State:
        """What the codec keeps: residuals, warm starts, of this rank."""
        if not self.codec.handle:
            return {}
        return saved.save(self._visit, self.comm._check)

    def load_state_dict(self, state: saved.State) -> None:
        """Before the first step; needs `module`."""
        if not self.codec.handle:
            return
        if not self._names:
            raise ValueError("tacit: give DDPState the module, so that what "
                             "was saved can be told apart")
        parameters = [p for _, p in self._names.values()]
        self.comm._check(library().tac_codec_expect(
            self.codec.handle, self._make_layout(parameters)))
        saved.load(state, self._visit, self.comm._check)

    def _visit(self, visitor: s.StateVisitor) -> int:
        return library().tac_codec_visit(self.codec.handle, visitor)


def ddp_hook(state: DDPState,
             bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket's gradients over the ranks, as DDP itself would."""
    return state.submit(bucket.buffer(), bucket.index(),
                        bucket.parameters() if state.codec.handle else None)
