"""Child processes of the fault tests: started, forked again and again, killed by their own id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest

import rankblend

HERE = Path(__file__).resolve().parent
SOURCES = Path(rankblend.__file__).resolve().parents[1]
PATIENCE = 120  # seconds until a process that should end counts as one that never does

_CALL = "import sys, deeds; getattr(deeds, sys.argv[1])(*sys.argv[2:])"
# Reads [deed, *arguments] lines, does each in a fork of its own and says with what status it ended.
_FORKING = """
import json, os, sys, traceback
import deeds

for line in sys.stdin:
    deed, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            getattr(deeds, deed)(*arguments)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    print("pid", child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def child(deed: str, *arguments: object, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A Python process that does one of `deeds`."""
    return _python([_CALL, deed, *map(str, arguments)], prefix=prefix, errors=subprocess.PIPE)


def finished(process: subprocess.Popen[str]) -> list[str]:
    """The lines a process printed; fails with its errors unless it ended well or was killed."""
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, -signal.SIGKILL), errors
    return out.splitlines()


def said(process: subprocess.Popen[str]) -> str:
    """The next line a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def tell(process: subprocess.Popen[str], line: str = "") -> None:
    """Send a process a line."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def namespace(*commands: str) -> list[str]:
    """The start of a command that runs in a mount namespace of its own, prepared by commands."""
    tools = [shutil.which(tool) for tool in ("unshare", "mount", "sh")]
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    if None in tools or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount file systems (unshare -m) on this machine")
    return ["unshare", "-m", "sh", "-c", f'{" && ".join(commands)} && exec "$0" "$@"']


def read_only(folder: Path) -> list[str]:
    """The start of a command to which a folder is a read-only file system, for root too."""
    return namespace(f"mount --bind '{folder}' '{folder}'", f"mount -o remount,bind,ro '{folder}'")


class Forks:
    """A process that has imported everything and does each deed in a fork of itself.

    Starting Python and importing takes half a second, forking some milliseconds: so hundreds of
    processes can be killed in a test.
    """

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        with errors.open("w") as stream:
            self._process = _python([_FORKING], errors=stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=PATIENCE)

    def run(
        self,
        deed: str,
        *arguments: object,
        kill_after: int | None = None,
        by: signal.Signals = signal.SIGKILL,
    ) -> tuple[list[str], bool]:
        """Do a deed.

        Args:
            deed: Name of a function of `deeds`.
            arguments: What it is given; JSON values or paths.
            kill_after: Send it a signal as soon as it has printed so many lines.
            by: Which one.

        Returns:
            The lines it printed, and whether it was killed.
        """
        plain = [str(each) if isinstance(each, Path) else each for each in arguments]
        tell(self._process, json.dumps([deed, *plain]))
        pid = 0
        lines: list[str] = []
        while True:
            line = said(self._process)
            word, _, number = line.partition(" ")
            if word == "ended":
                assert int(number) in (0, -signal.SIGKILL), self._errors.read_text()
                return lines, int(number) != 0
            assert line, self._errors.read_text()
            if word == "pid":
                pid = int(number)
            else:
                lines.append(line)
            if pid and kill_after is not None and len(lines) >= kill_after:
                os.kill(pid, by)
                pid = 0


def _python(
    arguments: Sequence[str], *, errors: int | IO[str], prefix: Sequence[str] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{HERE}"},
    )
