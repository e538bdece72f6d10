"""A folder of evidence, read anew whenever it changed; what is withdrawn stays withdrawn."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from attrs import field, frozen

from rankblend.errors import EvidenceError
from rankblend.files import write_whole
from rankblend.forks import guard
from rankblend.rerank._admission import AdmissionDecision, AdmissionRequest
from rankblend.rerank._trial import EvidencePolicy, ReleaseEvidence

_EVIDENCE, _WITHDRAWN = ".evidence.json", ".withdrawn.json"
_Stamp = tuple[tuple[str, int, int, int], ...]


@frozen
class LedgerEntry:
    """One piece of evidence as it stands in the ledger.

    Attributes:
        evidence: It.
        withdrawn: Why it no longer counts, or None.
    """

    evidence: ReleaseEvidence
    withdrawn: str | None


@frozen(eq=False)
class _Contents:
    entries: Mapping[str, LedgerEntry]
    latest_first: tuple[LedgerEntry, ...]
    unreadable: Mapping[str, str]


class EvidenceLedger:
    """Evidence as one file each, named by its id; a withdrawal is a file beside it.

    Nothing is ever changed or deleted in it, so any number of processes may read and write it. An
    edited file no longer fits its name and counts for nothing.

    Args:
        folder: Where; made by the first `add`.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        guard(self, "_lock")
        self._read: tuple[_Stamp, _Contents] | None = None

    def add(self, evidence: ReleaseEvidence) -> str:
        """Write evidence down; writing the same twice is no error.

        Returns:
            Its id.

        Raises:
            EvidenceError: The folder cannot be written.
        """
        self._write(f"{evidence.id}{_EVIDENCE}", evidence.plain())
        return evidence.id

    def withdraw(self, evidence_id: str, *, reason: str) -> None:
        """Take evidence back, for ever; the next recall of every process heeds it.

        The first withdrawal of an entry stands. An older entry for the same version may admit again
        once a newer, worse one is gone: `standing` tells which do.

        Args:
            evidence_id: As given by `add`.
            reason: One line, shown by every recall it no longer admits.

        Raises:
            EvidenceError: No such evidence, or the folder cannot be written.
        """
        if self.get(evidence_id).withdrawn is None:
            self._write(f"{evidence_id}{_WITHDRAWN}", {"reason": reason})

    def get(self, evidence_id: str) -> LedgerEntry:
        """One entry.

        Raises:
            EvidenceError: No such evidence, or it cannot be read.
        """
        contents = self._contents()
        if evidence_id in contents.entries:
            return contents.entries[evidence_id]
        if evidence_id in contents.unreadable:
            raise EvidenceError(f"evidence {evidence_id!r}: {contents.unreadable[evidence_id]}")
        raise EvidenceError(
            f"evidence {evidence_id!r}: not in this ledger; `rankblend evidence list` shows what is"
        )

    def standing(self, like: ReleaseEvidence) -> tuple[ReleaseEvidence, ...]:
        """Evidence for the same version that is not withdrawn, the latest measurement first."""
        return tuple(
            entry.evidence
            for entry in self.entries()
            if entry.withdrawn is None and entry.evidence.version == like.version
        )

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Everything readable, the latest measurement first."""
        return self._contents().latest_first

    def unreadable(self) -> Mapping[str, str]:
        """Id → why its file counts for nothing."""
        return self._contents().unreadable

    def _contents(self) -> _Contents:
        """What the folder holds now: every file's state is compared, so no change is missed."""
        stamp = _stamp(self.folder)
        with self._lock:
            if self._read is None or self._read[0] != stamp:
                self._read = stamp, _load(self.folder, [name for name, *_ in stamp])
            return self._read[1]

    def _write(self, name: str, plain: Mapping[str, object]) -> None:
        target = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(target, json.dumps(plain, indent=1, ensure_ascii=False))
        except OSError as error:
            raise EvidenceError(
                f"ledger: {target.name} cannot be written ({error.strerror}); "
                "check the folder's permissions and space"
            ) from error


def _as_ledger(given: EvidenceLedger | str | PathLike[str]) -> EvidenceLedger:
    return given if isinstance(given, EvidenceLedger) else EvidenceLedger(given)


@frozen
class EvidenceAdmission:
    """Admits what recorded evidence supports.

    Args:
        ledger: Where the evidence is, or its folder.
        policy: When it is enough.
        clock: The present, for expiry.

    Example:
        >>> admission = EvidenceAdmission(EvidenceLedger("no-such-folder"))
        >>> request = AdmissionRequest(
        ...     feature="reranking", name="relevance-rerank@1", profile_hash="", scoring_version=1,
        ...     signal_schema_hash="")
        >>> admission(request).reason
        'no evidence for this profile and version'
    """

    ledger: EvidenceLedger = field(converter=_as_ledger)
    policy: EvidencePolicy = field(factory=EvidencePolicy)
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def __call__(self, request: AdmissionRequest) -> AdmissionDecision:
        """Admit iff an entry matches exactly, stands, has not expired and satisfies the policy.

        Of several entries the latest measurement decides: a newer, worse one is not outvoted by an
        older one.
        """
        fitting = [entry for entry in self.ledger.entries() if entry.evidence.matches(request)]
        standing = [entry.evidence for entry in fitting if entry.withdrawn is None]
        if not standing:
            if fitting:
                return AdmissionDecision(
                    False, fitting[0].evidence.id, f"evidence withdrawn: {fitting[0].withdrawn}"
                )
            return AdmissionDecision(False, reason="no evidence for this profile and version")
        latest = standing[0]
        if self.clock() >= latest.expires:
            return AdmissionDecision(False, latest.id, "the evidence has expired")
        refusals = self.policy.refusals(latest)
        if refusals:
            return AdmissionDecision(False, latest.id, f"evidence insufficient: {refusals[0]}")
        return AdmissionDecision(True, latest.id, "admitted by evidence")


def _stamp(folder: Path) -> _Stamp:
    found = []
    try:
        with os.scandir(folder) as files:
            for file in files:
                if file.name.endswith((_EVIDENCE, _WITHDRAWN)) and not file.name.startswith("."):
                    state = file.stat()
                    found.append((file.name, state.st_mtime_ns, state.st_size, state.st_ino))
    except FileNotFoundError:
        return ()
    return tuple(sorted(found))


def _load(folder: Path, names: list[str]) -> _Contents:
    entries: dict[str, LedgerEntry] = {}
    unreadable: dict[str, str] = {}
    withdrawn = {
        name.removesuffix(_WITHDRAWN): _reason(folder / name)
        for name in names
        if name.endswith(_WITHDRAWN)
    }
    for name in names:
        if not name.endswith(_EVIDENCE):
            continue
        identifier = name.removesuffix(_EVIDENCE)
        try:
            plain = json.loads((folder / name).read_text(encoding="utf-8"))
            evidence = ReleaseEvidence.read(plain)
        except (OSError, ValueError) as error:
            unreadable[identifier] = f"cannot be read ({type(error).__name__})"
            continue
        if evidence.id != identifier:
            unreadable[identifier] = "was changed after it was written"
            continue
        entries[identifier] = LedgerEntry(evidence, withdrawn.get(identifier))
    latest_first = sorted(
        entries.values(), key=lambda e: (e.evidence.measured, e.evidence.id), reverse=True
    )
    return _Contents(entries, tuple(latest_first), unreadable)


def _reason(path: Path) -> str:
    """A withdrawal counts however damaged its file is."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return "reason not readable"
