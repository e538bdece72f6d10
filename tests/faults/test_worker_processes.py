"""Processes that a replay starts end with the one that started them, however that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import PATIENCE, SOURCES

from rankblend.limits import LIMITS

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
    pytest.mark.skipif(LIMITS["n_jobs"].most < 2, reason="needs two processors"),
]

RECORDING = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "recording.arrow"
_REPLAYING = """
import sys
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay

while True:
    replay(Recording.open(sys.argv[1]), ["default", "rrf"], n_jobs=int(sys.argv[2]))
    print("replayed", flush=True)
"""


def stat(pid: int) -> tuple[str, int]:
    """State and parent of a process; Z for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "Z", 0
    return fields[0], int(fields[1])


def children(pid: int) -> set[int]:
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {number for number in numbers if stat(number)[1] == pid}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("jobs", [2, -1])
def test_workers_when_their_parent_is_ended_then_they_end_too(
    end: signal.Signals, jobs: int
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _REPLAYING, str(RECORDING), str(jobs)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    started: set[int] = set()
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "replayed\n"
        started = children(parent.pid)
        workers = LIMITS["n_jobs"].most if jobs == -1 else jobs
        assert workers <= len(started) <= workers + 2  # and two that keep track of files
        parent.send_signal(end)
        parent.wait(PATIENCE)
        patience = time.monotonic() + PATIENCE
        while any(stat(pid)[0] != "Z" for pid in started) and time.monotonic() < patience:
            time.sleep(0.05)
        assert not [pid for pid in started if stat(pid)[0] != "Z"]
    finally:
        if parent.poll() is None:
            parent.kill()
            parent.wait()
        if parent.stdout is not None:
            parent.stdout.close()
