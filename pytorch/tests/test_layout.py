"""The mirrored structures and constants against the C headers.

A C program that prints sizes, offsets and values is made from the mirrors, so
nothing has to be kept up by hand.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import ranks  # noqa: F401  (puts the package on the path)
from tacit import structs as s

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["context", "comm", "codec", "state", "localsgd", "version"]

CONSTANTS = {
    "TAC_ABI": s.ABI, "TAC_OK": s.OK, "TAC_INPROGRESS": s.INPROGRESS,
    "TAC_COLL_COUNT": s.COLL_COUNT, "TAC_WIRE_SAME": s.WIRE_SAME,
    "TAC_STATE_MAX_DIMS": s.STATE_MAX_DIMS, "TAC_SYNC_FIXED": s.SYNC_FIXED,
    "TAC_LOCALSGD_LEVELS": s.LOCALSGD_LEVELS,
    "TAC_TENSOR_ROLES": s.TENSOR_ROLES, "TAC_DTYPE_COUNT": 7,
    "TAC_OP_COUNT": len(s.OPS),
    **{"TAC_" + n: getattr(s, n) for n in vars(s)
       if n.startswith(("ERR_", "LOG_", "PROGRESS_", "ROLE_", "MERGE_",
                        "START_"))},
    **{"TAC_" + n.upper(): v for n, v in s.DTYPE_NAMES.items()},
    **{"TAC_" + n.upper(): v for n, v in s.OPS.items()},
    **{"TAC_COLL_" + n.upper(): i for i, n in enumerate(s.COLLS)},
    **{"TAC_OUTER_" + n.upper(): v for n, v in s.OUTERS.items()},
    **{"TAC_WEIGHT_" + n.upper(): v for n, v in s.WEIGHTINGS.items()},
    **{"TAC_STALE_" + n.upper(): v for n, v in s.STALES.items()},
}


def mirrored() -> dict[str, tuple[int, int]]:
    """What the program should print."""
    out = {name: (value, 0) for name, value in CONSTANTS.items()}
    for name, mirror in s.MIRRORS.items():
        out[name] = (ctypes.sizeof(mirror), 0)
        for field, _ in mirror._fields_:
            at = getattr(mirror, field)
            out[f"{name}.{field}"] = (at.offset, at.size)
    return out


def program() -> str:
    """The C source."""
    lines = [f'#include "tacit/{h}.h"' for h in HEADERS]
    lines += ["#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    show = 'printf("%s %lld %lld\\n", "{}", (long long)({}), (long long)({}));'
    for name in CONSTANTS:
        lines.append(show.replace("{}", name, 2).replace("{}", "0"))
    for name, mirror in s.MIRRORS.items():
        lines.append(show.replace("{}", name, 1)
                     .replace("{}", f"sizeof({name})", 1).replace("{}", "0"))
        for field, _ in mirror._fields_:
            lines.append(
                show.replace("{}", f"{name}.{field}", 1)
                .replace("{}", f"offsetof({name}, {field})", 1)
                .replace("{}", f"sizeof((({name} *)0)->{field})", 1))
    return "\n".join(lines + ["return 0; }", ""])


def declared() -> dict[str, tuple[int, int]]:
    """What it prints."""
    compiler = os.environ.get("CC") or "cc"
    includes = [f"-I{ROOT / part / 'include'}"
                for part in ("base", "comm", "localsgd")]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "layout.c")
        source.write_text(program())
        subprocess.run([*compiler.split(), "-std=c11", *includes, str(source),
                        "-o", f"{folder}/layout"], check=True)
        text = subprocess.run([f"{folder}/layout"], check=True,
                              capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {name: (int(a), int(b)) for name, a, b in rows}


class Layout(unittest.TestCase):
    """Every structure, field and constant."""

    def test_mirrors_are_the_headers(self) -> None:
        if not shutil.which(os.environ.get("CC", "cc").split()[0]):
            self.skipTest("there is no C compiler")
        self.maxDiff = None
        self.assertEqual(mirrored(), declared())


if __name__ == "__main__":
    unittest.main()
