"""The structures and constants of the C headers, mirrored for ctypes.

Nothing here is checked by a compiler, so tests/test_layout.py compares every
size, offset and constant with the headers, and library.py the ABI number with
the library. Names are those of the headers without tac_ and TAC_.
"""

from __future__ import annotations

import ctypes as c

ABI = 2  # TAC_ABI: grows when a structure changes

VOID_P, CHAR_P, SIZE = c.c_void_p, c.c_char_p, c.c_size_t

OK, INPROGRESS = 0, 1
ERR_ARG, ERR_NOMEM, ERR_UNSUPPORTED, ERR_MISMATCH = -1, -4, -6, -7
ERR_TIMEOUT, ERR_PEER, ERR_ABORTED, ERR_STATE = -8, -9, -10, -11

F32, F64, F16, BF16, I32, I64, U8 = range(7)
DTYPE_BYTES = {F32: 4, F64: 8, F16: 2, BF16: 2, I32: 4, I64: 8, U8: 1}
DTYPE_NAMES = {"f32": F32, "f64": F64, "f16": F16, "bf16": BF16, "i32": I32,
               "i64": I64, "u8": U8}

OPS = {"sum": 0, "avg": 1, "min": 2, "max": 3, "prod": 4}

COLLS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "barrier",
         "send", "recv")
COLL_COUNT = 7

WIRE_SAME = -1
WIRES = {None: WIRE_SAME, "fp16": F16, "bf16": BF16}

LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG = range(4)
PROGRESS_CALLER, PROGRESS_THREAD = range(2)

ROLE_PARAM, ROLE_MOMENT, ROLE_STATISTIC, ROLE_COUNTER, ROLE_BUFFER = range(5)
MERGE_DEFAULT, MERGE_KEEP, MERGE_AVERAGE = range(3)
START_BROADCAST, START_VERIFY, START_LOADED = range(3)
SYNC_FIXED = 0
OUTERS = {"average": 0, "sgd": 1, "heavy_ball": 2, "nesterov": 3, "slowmo": 4,
          "adam": 5}
WEIGHTINGS = {"uniform": 0, "samples": 1, "steps": 2}
STALES = {"delayed": 0, "eager": 1}

STATE_MAX_DIMS = 8
LOCALSGD_LEVELS = 4
TENSOR_ROLES = 5

LogFn = c.CFUNCTYPE(None, VOID_P, c.c_int, CHAR_P)
OobStart = c.CFUNCTYPE(c.c_int, VOID_P, VOID_P, VOID_P, SIZE,
                       c.POINTER(VOID_P))
OobTest = c.CFUNCTYPE(c.c_int, VOID_P, VOID_P)
OobCancel = c.CFUNCTYPE(None, VOID_P, VOID_P)


class ContextConfig(c.Structure):
    """tac_context_config."""

    _fields_ = [("struct_size", SIZE), ("rank", c.c_int), ("world", c.c_int),
                ("level", c.c_int), ("log", LogFn), ("log_arg", VOID_P),
                ("threads", c.c_int), ("local_ranks", c.c_int),
                ("trace_events", SIZE)]


class CommConfig(c.Structure):
    """tac_comm_config."""

    _fields_ = [("struct_size", SIZE), ("transport", CHAR_P),
                ("timeout_ms", c.c_int), ("stall_warn_ms", c.c_int),
                ("progress", c.c_int), ("deterministic", c.c_int),
                ("staging_bytes", SIZE), ("message_bytes", SIZE),
                ("check", c.c_int), ("emulate", CHAR_P),
                ("algorithms", CHAR_P), ("tune_file", CHAR_P),
                ("recorder", c.c_int), ("dump", CHAR_P)]


class Oob(c.Structure):
    """tac_oob."""

    _fields_ = [("struct_size", SIZE), ("start", OobStart), ("test", OobTest),
                ("cancel", OobCancel), ("arg", VOID_P)]


class CodecPart(c.Structure):
    """tac_codec_part."""

    _fields_ = [("name", CHAR_P), ("offset", SIZE), ("count", SIZE),
                ("ndim", c.c_int), ("shape", c.POINTER(SIZE))]


class CodecLayout(c.Structure):
    """tac_codec_layout."""

    _fields_ = [("n", SIZE), ("parts", c.POINTER(CodecPart)),
                ("grad_scale", c.c_double)]


class CodecStats(c.Structure):
    """tac_codec_stats."""

    _fields_ = [("calls", c.c_uint64), ("calls_plain", c.c_uint64),
                ("bytes_before", c.c_uint64), ("bytes_after", c.c_uint64),
                ("calls_not_finite", c.c_uint64),
                ("residual_norm", c.c_double)]


class CollOpt(c.Structure):
    """tac_coll_opt."""

    _fields_ = [("struct_size", SIZE), ("stream", VOID_P),
                ("prescale", c.c_double), ("postscale", c.c_double),
                ("wire_dtype", c.c_int), ("codec", VOID_P),
                ("timeout_ms", c.c_int), ("algorithm", CHAR_P),
                ("flags", c.c_uint), ("tag", c.c_uint64),
                ("layout", c.POINTER(CodecLayout))]


class CommOpStats(c.Structure):
    """tac_comm_op_stats."""

    _fields_ = [("calls", c.c_uint64), ("calls_symmetric", c.c_uint64),
                ("bytes_logical", c.c_uint64), ("bytes_wire", c.c_uint64),
                ("bytes_between_hosts", c.c_uint64), ("busy_s", c.c_double),
                ("wait_s", c.c_double), ("exposed_s", c.c_double),
                ("cpu_s", c.c_double)]


class CommStats(c.Structure):
    """tac_comm_stats."""

    _fields_ = [("op", CommOpStats * COLL_COUNT), ("total", CommOpStats)]


class StateItem(c.Structure):
    """tac_state_item."""

    _fields_ = [("name", CHAR_P), ("dtype", c.c_int), ("ndim", c.c_int),
                ("shape", SIZE * STATE_MAX_DIMS), ("data", VOID_P)]


StateVisit = c.CFUNCTYPE(c.c_int, VOID_P, c.POINTER(StateItem))


class StateVisitor(c.Structure):
    """tac_state_visitor."""

    _fields_ = [("visit", StateVisit), ("arg", VOID_P), ("prefix", CHAR_P)]


class SyncSchedule(c.Structure):
    """tac_sync_schedule."""

    _fields_ = [("kind", c.c_int), ("every", c.c_int64),
                ("start", c.c_int64), ("min_every", c.c_int64),
                ("max_every", c.c_int64), ("alpha", c.c_double),
                ("power", c.c_double), ("bytes_per_second", c.c_double),
                ("next", VOID_P), ("arg", VOID_P)]


class Outer(c.Structure):
    """tac_outer."""

    _fields_ = [("kind", c.c_int), ("lr", c.c_double),
                ("momentum", c.c_double), ("beta2", c.c_double),
                ("eps", c.c_double), ("fn", VOID_P), ("arg", VOID_P),
                ("state_per_element", c.c_int)]


class SyncLevel(c.Structure):
    """tac_sync_level."""

    _fields_ = [("ranks", c.c_int), ("every", c.c_int64)]


class LocalsgdConfig(c.Structure):
    """tac_localsgd_config."""

    _fields_ = [("struct_size", SIZE), ("schedule", SyncSchedule),
                ("total", c.c_int64), ("outer", Outer), ("codec", CHAR_P),
                ("weighting", c.c_int), ("fragments", c.c_int64),
                ("strided", c.c_int), ("delay", c.c_int64),
                ("alpha", c.c_double), ("stale", c.c_int),
                ("levels", SyncLevel * LOCALSGD_LEVELS),
                ("n_levels", c.c_int), ("late", c.c_int),
                ("deadline_s", c.c_double), ("drop_probability", c.c_double),
                ("seed", c.c_uint64)]


class LocalsgdTensor(c.Structure):
    """tac_localsgd_tensor."""

    _fields_ = [("name", CHAR_P), ("role", c.c_int), ("merge", c.c_int),
                ("dtype", c.c_int), ("count", SIZE), ("data", VOID_P),
                ("layer", c.c_int64), ("mean_of", CHAR_P)]


class LocalStep(c.Structure):
    """tac_local_step."""

    _fields_ = [("lr", c.c_double), ("loss", c.c_double),
                ("samples", c.c_double), ("skipped", c.c_int)]


class SyncEvent(c.Structure):
    """tac_sync_event."""

    _fields_ = [("synced", c.c_int), ("level", c.c_int),
                ("fragment", c.c_int64), ("interval", c.c_int64),
                ("arrived", c.c_int), ("late", c.c_int)]


class LocalsgdStats(c.Structure):
    """tac_localsgd_stats."""

    _fields_ = [("attempts", c.c_int64), ("micro_steps", c.c_int64),
                ("skipped", c.c_int64), ("syncs", c.c_int64),
                ("syncs_level", c.c_int64 * LOCALSGD_LEVELS),
                ("bytes_logical", c.c_uint64), ("bytes_wire", c.c_uint64),
                ("bytes_control", c.c_uint64),
                ("bytes_role", c.c_uint64 * TENSOR_ROLES),
                ("bytes_level", c.c_uint64 * LOCALSGD_LEVELS),
                ("sync_s", c.c_double), ("wait_s", c.c_double),
                ("last_interval", c.c_int64), ("delta_norm", c.c_double),
                ("consensus_distance", c.c_double), ("cosine", c.c_double),
                ("dropped", c.c_int64)]


# Every mirror with the name of its original, for the test of layouts.
MIRRORS = {
    "tac_context_config": ContextConfig, "tac_comm_config": CommConfig,
    "tac_oob": Oob, "tac_codec_part": CodecPart,
    "tac_codec_layout": CodecLayout, "tac_codec_stats": CodecStats,
    "tac_coll_opt": CollOpt, "tac_comm_op_stats": CommOpStats,
    "tac_comm_stats": CommStats, "tac_state_item": StateItem,
    "tac_state_visitor": StateVisitor, "tac_sync_schedule": SyncSchedule,
    "tac_outer": Outer, "tac_sync_level": SyncLevel,
    "tac_localsgd_config": LocalsgdConfig,
    "tac_localsgd_tensor": LocalsgdTensor, "tac_local_step": LocalStep,
    "tac_sync_event": SyncEvent, "tac_localsgd_stats": LocalsgdStats,
}


def as_dict(struct: c.Structure) -> dict:
    """The fields of a structure of numbers, arrays as lists."""
    out = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        out[name] = list(value) if isinstance(value, c.Array) else value
    return out
