"""What every benchmark gets: its peak memory, and the machine in the results.

A benchmark says what it is in ``benchmark.extra_info``: ``reference`` (True: the others of its group
are compared with it), ``target`` (such as ``"<= 1.5 x + 1 ms"``, see `report`), and anything else
worth a note, by its name.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import sqlite3
import sys
from collections.abc import Generator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

PEAK = "peak MiB"
_STATUS = Path("/proc/self/status")
_LIBRARIES = ("numpy", "scipy", "faiss-cpu", "networkx")


def _resident(field: str) -> float | None:
    """A size of this process in MiB: VmRSS now, VmHWM at its greatest. None where none is told."""
    if not _STATUS.exists():
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) / 1024 if found else None


def _give_back() -> None:
    """Memory that is free but still counted would be used again unseen."""
    gc.collect()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def _forget_greatest() -> None:
    """Let VmHWM start anew. The kernel keeps it, so that measuring costs the timed rounds nothing."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:  # no Linux, or not allowed: the greatest of the whole run would say nothing
        return


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note by how much the process grew at its greatest, after the fixtures were made."""
    benchmark = getattr(item, "funcargs", {}).get("benchmark")
    if benchmark is None:
        return (yield)
    _give_back()
    before = _resident("VmRSS")
    _forget_greatest()
    try:
        return (yield)
    finally:
        greatest = _resident("VmHWM")
        if before is not None and greatest is not None:
            benchmark.extra_info.setdefault(PEAK, round(max(greatest - before, 0.0), 1))


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Cores, memory and versions; not the name of the host."""
    machine_info.pop("node", None)
    machine_info["measured on"] = machine()


def machine() -> Mapping[str, str]:
    """What the numbers depend on."""
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**30 if pages else 0.0
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        **{name: version(name) for name in _LIBRARIES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
