#!/bin/bash
# The line on a terminal: never wider than it, made of whole figures, gone in the
# end; an ETA that a run that goes on does not get wrong; silence of other ranks.
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIPPED: no python3 for a terminal"; exit 77; }
. "$SOURCE/scripts/env"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$BUILD/ddp_train" "$work" <<'P'
import fcntl, os, pty, re, struct, subprocess, sys, termios
program, work = sys.argv[1:]
failed = []

def run(columns, *options):
    """What the program writes to a terminal's stderr."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen(
        [program, "--model", "mlp:16", "--data", "synth:6000", "--batch", "8",
         "--threads", "1", "--log-every", "5", *options],
        stdout=subprocess.DEVNULL, stderr=side, stdin=subprocess.DEVNULL,
        env=dict(os.environ, TERM="xterm"))
    os.close(side)
    data = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        data += piece
    os.close(main)
    if p.wait() != 0:
        failed.append(f"{columns} columns: exit code {p.returncode}")
    return data.decode()

FIGURE = (r"step \d+/\d+|eta [\dhmins ]+?|loss [\d.]+|acc [\d.]+ %|\d+ img/s|"
          r"comm \d+ %|lr [\d.e+-]+|syncs \d+|scale [\d.e+]+|skipped \d+")
for columns in (12, 40, 60, 80, 200):
    # It draws every 0.2 s: long enough for this machine, however fast it is.
    for epochs in (6, 24, 96):
        text = run(columns, "--ranks", "2", "--epochs", str(epochs), "--precision", "fp16")
        lines = [x for x in re.split(r"\r|\x1b\[K|\n", text) if x]
        if lines or columns == 12:
            break
    if not lines and columns > 12:
        failed.append(f"{columns} columns: nothing drawn")
    for line in lines:
        bare = re.sub(r"^\[[#.]*\] ", "", line)
        if len(line) >= columns:
            failed.append(f"{columns} columns: {line!r} is too wide")
        if bare != line and columns < 70:
            failed.append(f"{columns} columns: a bar")
        for part in bare.split("  "):
            if part and not re.fullmatch(FIGURE, part):
                failed.append(f"{columns} columns: cut figure {part!r}")
    if columns >= 60 and lines and not all("loss" in x for x in lines):
        failed.append(f"{columns} columns: no loss")
    if lines and not text.endswith("\r\x1b[K"):
        failed.append(f"{columns} columns: something is left: {text[-40:]!r}")
for why in failed[:10]:
    print("FAILED:", why)
sys.exit(1 if failed else 0)
P
