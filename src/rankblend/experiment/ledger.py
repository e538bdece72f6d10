"""The ledger: every profile ever measured on a query set, so that the best of many is paid for.

A small SQLite file. Per query set, profile and measure it keeps the values summed over the
independent units: enough to correct p for everything that was ever tried there (max-T), and far
less than a value a query. Several processes may write to it.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend import limits
from rankblend.errors import HeldOutSpentError, InvalidArgumentError, LedgerError
from rankblend.experiment.inference import Comparison, Tried, Units, compare, group_units
from rankblend.experiment.results import Results
from rankblend.files import hold, refuse_part, release
from rankblend.profiles import canonical_hash

__all__ = ["Ledger", "QuerySet", "Trial", "split_clusters"]


# What values of one profile on the same queries depend on; sums over other answers are no match.
_ASKED_OF = (
    "dataset", "dataset_hash", "embedder", "statistics", "reach", "depth", "arguments", "top",
    "scoring_version",
)  # fmt: skip


@frozen(eq=False)
class QuerySet:
    """The judged queries of an experiment, in the order of their ids.

    Attributes:
        dataset: What the manifest calls the data set; empty without one.
        ids: q ids, sorted.
        units: Of these queries.
        positions: int64, shape (q,): where each is among the queries of the results.
        hash: SHA-256 of ids, clusters and of what they were asked of (data set with its judgments,
            embedder, depth, …): equal for the same queries in any order.
    """

    dataset: str
    ids: tuple[str, ...]
    units: Units
    positions: NDArray[np.int64]
    hash: str

    @classmethod
    def of(cls, results: Results) -> QuerySet:
        """The query set of some results.

        Raises:
            InvalidArgumentError: No query has judgments.
        """
        judged = np.flatnonzero(results.judged).tolist()
        if not judged:
            raise InvalidArgumentError("results: no query has judgments")
        # Sorted, so that sums over units have the same bits in whatever order queries come.
        positions = np.array(sorted(judged, key=lambda i: results.queries[i]), np.int64)
        ids = tuple(results.queries[i] for i in positions)
        clusters = [results.clusters[i] for i in positions]
        dataset = str(results.manifest.get("dataset", ""))
        asked = {name: results.manifest.get(name) for name in _ASKED_OF}
        key = canonical_hash([asked, [list(pair) for pair in zip(ids, clusters, strict=True)]])
        return cls(dataset, ids, group_units(len(ids), clusters), positions, key)


def split_clusters(
    clusters: Sequence[str], *, held_out: float = 0.5, seed: int = 0
) -> NDArray[np.bool_]:
    """Divide queries into those to explore and those held out, whole clusters at a time.

    Args:
        clusters: The cluster of each of q queries.
        held_out: Share of the clusters held out, in (0, 1); at least one on either side.
        seed: Another seed divides differently.

    Returns:
        bool, shape (q,): True where held out.

    Raises:
        InvalidArgumentError: Fewer than two clusters, or a share out of range.
    """
    limits.check(seed=seed)
    names = sorted(set(clusters))
    if len(names) < 2 or not 0.0 < held_out < 1.0:
        raise InvalidArgumentError("split: expected two clusters or more and a share in (0, 1)")
    count = min(max(round(len(names) * held_out), 1), len(names) - 1)
    order = np.random.default_rng(seed).permutation(len(names))[:count]
    held = {names[i] for i in order}
    return np.array([cluster in held for cluster in clusters], np.bool_)


_APPLICATION = 0x72624C64  # "rbLd"
_VERSION = 1
_SCHEMA = """
CREATE TABLE query_sets (
  hash TEXT PRIMARY KEY, dataset TEXT NOT NULL, ids BLOB NOT NULL, units INTEGER NOT NULL);
CREATE TABLE trials (
  query_set TEXT NOT NULL REFERENCES query_sets, profile TEXT NOT NULL, measure TEXT NOT NULL,
  arm TEXT NOT NULL, mean REAL NOT NULL, sums BLOB NOT NULL, purpose TEXT NOT NULL,
  at TEXT NOT NULL, PRIMARY KEY (query_set, profile, measure)) WITHOUT ROWID;
CREATE TABLE confirmations (
  query_set TEXT PRIMARY KEY REFERENCES query_sets, profile TEXT NOT NULL, baseline TEXT NOT NULL,
  measure TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
"""


@frozen
class Trial:
    """One profile measured on one query set.

    Attributes:
        query_set: Hash of the queries.
        profile: Hash of what ranked.
        arm: What it was called when it was first measured.
        measure: Which.
        mean: Over the judged queries.
        purpose: Why it was measured.
        at: When, ISO 8601, UTC.
    """

    query_set: str
    profile: str
    arm: str
    measure: str
    mean: float
    purpose: str
    at: str


class Ledger:
    """An open ledger file; close it, or use it in a ``with`` statement.

    Args:
        path: Created when it does not exist.
        timeout: Seconds to wait for another process that is writing.

    Raises:
        InvalidArgumentError: It is a file that belongs to a database.
        LedgerError: The file is no ledger, was written by a newer rankblend, or cannot be used.
    """

    def __init__(self, path: str | PathLike[str], *, timeout: float = 30.0) -> None:
        self.path = Path(path)
        if not self.path.exists():
            refuse_part(self.path)
        with self._told():
            # Transactions are begun by hand: one that only reads first could lose its turn.
            self._db = sqlite3.connect(self.path, timeout=timeout, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise
        hold(self, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._db.close()
        release(self)

    def record(self, results: Results, *, purpose: str) -> int:
        """Note every arm that ran, by every measure, all or nothing.

        What is known already (the same profile on the same queries by the same measure) stays as it
        was first noted.

        Args:
            results: Of an experiment.
            purpose: Why it was run, for those who read the ledger.

        Returns:
            How many trials are new.

        Raises:
            LedgerError: The file cannot be written; nothing was noted.
        """
        asked = QuerySet.of(results)
        with self._writing():
            return self._note(results, asked, purpose)

    def trials(self, results: Results | None = None) -> tuple[Trial, ...]:
        """Everything noted, or what was noted on the queries of some results; oldest first."""
        where = "" if results is None else "WHERE query_set = ?"
        values = () if results is None else (QuerySet.of(results).hash,)
        with self._told():
            rows = self._db.execute(
                "SELECT query_set, profile, arm, measure, mean, purpose, at FROM trials "  # noqa: S608
                f"{where} ORDER BY at, profile, measure",
                values,
            ).fetchall()
        return tuple(Trial(*row) for row in rows)

    def tried(self, results: Results) -> Tried:
        """What was ever measured on the queries of these results; give it to `compare`."""
        asked = QuerySet.of(results)
        with self._told():
            rows = self._db.execute(
                "SELECT profile, measure, sums FROM trials WHERE query_set = ?", (asked.hash,)
            ).fetchall()
        hashes = tuple(sorted({profile for profile, _, _ in rows}))
        position = {profile: at for at, profile in enumerate(hashes)}
        sums = {
            measure: np.full((len(hashes), len(asked.units)), np.nan)
            for measure in {row[1] for row in rows}
        }
        for profile, measure, blob in rows:
            sums[measure][position[profile]] = np.frombuffer(blob, "<f8")
        return Tried(hashes, sums)

    def confirm(
        self, results: Results, *, arm: str, baseline: str, measure: str, seed: int = 0
    ) -> Comparison:
        """Compare one chosen arm with one baseline on held-out queries, once.

        The arm was chosen on other queries, so nothing has to be corrected for: p is that of a
        single test. The queries are spent by it. Asking again for the same two arms and measure
        repeats the answer; anything else is refused.

        Args:
            results: Of these two arms on queries that nothing has been measured on.
            arm: The chosen one.
            baseline: Compared with.
            measure: Which.
            seed: Of the test and the interval.

        Raises:
            HeldOutSpentError: Profiles were measured on some of these queries before, or they have
                confirmed something else.
            UnknownNameError: The results lack an arm or the measure.
        """
        asked = QuerySet.of(results)
        pair = (results.hashes[results.arm(arm)], results.hashes[results.arm(baseline)], measure)
        only = results.pick((baseline, arm), (measure,))
        comparison = compare(only, measures=measure, baselines=baseline, seed=seed)
        with self._writing():
            row = self._db.execute(
                "SELECT profile, baseline, measure FROM confirmations WHERE query_set = ?",
                (asked.hash,),
            ).fetchone()
            if row is not None and tuple(row) != pair:
                raise HeldOutSpentError(2, "they have confirmed another choice already")
            if row is None:
                self._refuse_seen(asked)
                self._note(only, asked, "confirmation")
                self._db.execute(
                    "INSERT INTO confirmations VALUES (?, ?, ?, ?, ?)",
                    (asked.hash, *pair, _now()),
                )
            (tried,) = self._db.execute(
                "SELECT count(DISTINCT profile) FROM trials JOIN query_sets ON query_set = hash "
                "WHERE dataset = ?",
                (asked.dataset,),
            ).fetchone()
        return evolve(comparison, tried=tried)

    def _refuse_seen(self, asked: QuerySet) -> None:
        """Queries on which anything was measured cannot confirm, in whatever set they were."""
        rows = self._db.execute(
            "SELECT hash, ids FROM query_sets WHERE dataset = ?", (asked.dataset,)
        ).fetchall()
        mine = set(asked.ids)
        seen = [key for key, ids in rows if not mine.isdisjoint(json.loads(zlib.decompress(ids)))]
        profiles: set[str] = set()
        for key in seen:
            found = self._db.execute("SELECT profile FROM trials WHERE query_set = ?", (key,))
            profiles.update(profile for (profile,) in found)
        if profiles:
            raise HeldOutSpentError(
                len(profiles), f"{len(profiles)} profiles were measured on some of them before"
            )

    def _note(self, results: Results, asked: QuerySet, purpose: str) -> int:
        ids = zlib.compress(json.dumps(asked.ids).encode())
        self._db.execute(
            "INSERT OR IGNORE INTO query_sets VALUES (?, ?, ?, ?)",
            (asked.hash, asked.dataset, ids, len(asked.units)),
        )
        now, before = _now(), self._db.total_changes
        for measure, table in results.values.items():
            for row, arm in enumerate(results.arms):
                if not results.ran(arm):
                    continue
                values = table[row, asked.positions]
                self._db.execute(
                    "INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        asked.hash, results.hashes[row], measure, arm, float(values.mean()),
                        asked.units.sums(values).astype("<f8").tobytes(), purpose, now,
                    ),
                )  # fmt: skip
        return self._db.total_changes - before

    def _prepare(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == _APPLICATION and version > _VERSION:
            raise LedgerError(
                f"{self.path}: has version {version}, this rankblend reads up to {_VERSION}"
            )
        if application == _APPLICATION and version == _VERSION:
            return
        if tables or application:
            raise LedgerError(f"{self.path}: is not a ledger")
        with self._writing():
            # Another process may have been faster since the look above.
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction that has the file to itself from the start."""
        with self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path}: cannot be used as a ledger ({error})") from error


def _now() -> str:
    return datetime.now(UTC).isoformat()
