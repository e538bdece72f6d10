"""`Memory`: remember, recall, explain; the facade over the catalog, its stores and a profile."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.embedders import Embedder, checked, identity
from rankblend.errors import (
    EmbedderMismatchError,
    InvalidArgumentError,
    MemoryNotFoundError,
    ScopeMismatchError,
    StoreClosedError,
)
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import arguments
from rankblend.recall.answer import Question, Reranker, answer
from rankblend.recall.arguments import Problems
from rankblend.recall.asking import drive, drive_async
from rankblend.recall.engine import Engine, default_stores
from rankblend.recall.live import LiveEngine
from rankblend.recall.match import Recall, StoredMemory
from rankblend.recall.portable import export_lines, write_lines
from rankblend.recall.snapshot import Snapshots
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog, Filters
from rankblend.stores.layers import DEFAULT_LAYERS, LayerPolicy
from rankblend.stores.protocol import Edge, Key, Link, Record, Seed, Statistics, Store

__all__ = ["Memory", "stored_embedder"]

ScopeLike = Scope | str
_EMBEDDER = "embedder"
_REMEMBER_DEFAULTS: Mapping[str, object] = {
    "id": None, "layer": "semantic", "key": None, "salience": None, "confidence": None,
    "review": None, "maturity": None, "certainty": None, "links": (), "at": None, "expires": None,
    "metadata": None, "vector": None,
}  # fmt: skip


class Memory:
    """A multi-layer memory in one file: several stores, one explained ranking.

    Open it with `Memory.open`; use it as a context manager or call `close`. It may be used from
    several threads, and several processes may open one file.

    Example:
        >>> memory = Memory.open(":memory:")
        >>> memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
        'policy'
        >>> memory.recall("refund approval", scope="tenant:acme/user:7")[0].memory.id
        'policy'
        >>> memory.close()
    """

    def __init__(
        self,
        engine: LiveEngine,
        *,
        embedder: Embedder | None,
        profile: RankingProfile,
        reranker: Reranker | None,
        clock: Callable[[], datetime],
        store_timeout: float | None,
        statistics: Statistics,
        allow_subtree: bool,
        count_tokens: Callable[[str], int],
    ) -> None:
        self._engine = engine
        self._embedder = embedder
        self._profile = profile
        self._reranker = reranker
        self._clock = clock
        self._store_timeout = store_timeout
        self._statistics = statistics
        self._allow_subtree = allow_subtree
        self._count_tokens = count_tokens
        self._snapshots = Snapshots(engine)
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | None = None,
        profile: RankingProfile | str | os.PathLike[str] = "default",
        stores: Iterable[Store] | None = None,
        reranker: Reranker | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        clock: Callable[[], datetime] | None = None,
        store_timeout: float | None = None,
        statistics: str = "root",
        layers: Mapping[str, LayerPolicy] | None = None,
        allow_subtree: bool = False,
        token_counter: Callable[[str], int] | None = None,
    ) -> Memory:
        """Open a memory, creating the file when there is none.

        Args:
            path: A file, or ``":memory:"``.
            embedder: Texts → vectors; see `rankblend.embedders`. Without one, memories have the
                vectors they are given, and queries have none: similarity is absent, not zero.
            profile: The recipe used when a recall names none.
            stores: Stores beside the catalog's own two; None for `default_stores`. They belong to
                the memory from now on and are closed with it.
            reranker: Decides whether a profile's reranking may serve.
            tokenizer: Text → tokens, for coverage and keywords; None for the built-in one.
            clock: Returns the present as an aware datetime; None for the system's clock.
            store_timeout: Seconds a store may take during a recall, or None for no limit.
            statistics: ``root``, ``visible`` or ``store``: over which memories keyword statistics
                are taken.
            layers: Policies by layer name, added to the defaults.
            allow_subtree: Permit ``reach="subtree"``.
            token_counter: Text → length for ``max_tokens`` caps; None: characters / 4, rounded up.

        Raises:
            InvalidArgumentError: All problems with the arguments at once.
            UnknownNameError, ProfileError: The profile.
            EmbedderMismatchError: The file was written with another embedder.
            CatalogCorruptError, CatalogVersionError, CatalogBusyError: The file.
        """
        problems = Problems()
        if store_timeout is not None and not (
            isinstance(store_timeout, int | float)
            and not isinstance(store_timeout, bool)
            and math.isfinite(store_timeout)
            and store_timeout > 0
        ):
            problems.add("store_timeout: expected None or a positive number of seconds")
        if statistics not in set(Statistics):
            problems.add(f"statistics: expected root, visible or store, got {statistics!r:.40}")
        for name, value in (
            ("embedder", embedder), ("tokenizer", tokenizer), ("clock", clock),
            ("token_counter", token_counter), ("reranker", reranker),
        ):  # fmt: skip
            if value is not None and not callable(value):
                problems.add(f"{name}: expected a callable, got {type(value).__name__}")
        for name, policy in (layers or {}).items():
            if not isinstance(policy, LayerPolicy):
                problems.add(f"layers[{name!r}]: expected a LayerPolicy")
        problems.raise_if_any()
        recipe = load_profile(profile)
        chosen = tuple(stores) if stores is not None else default_stores(tokenizer=tokenizer)
        catalog = Catalog.open(path)
        try:
            engine = LiveEngine(catalog, chosen, {**DEFAULT_LAYERS, **(layers or {})})
            engine.load()
            memory = cls(
                engine,
                embedder=embedder,
                profile=recipe,
                reranker=reranker,
                clock=clock or _system_clock,
                store_timeout=store_timeout,
                statistics=Statistics(statistics),
                allow_subtree=bool(allow_subtree),
                count_tokens=token_counter or _quarter_of_the_characters,
            )
            memory._check_embedder()
        except BaseException:
            catalog.close()
            raise
        return memory

    # Writing

    def remember(
        self,
        text: str,
        *,
        scope: ScopeLike,
        id: str | None = None,
        layer: str = "semantic",
        key: str | None = None,
        salience: float | None = None,
        confidence: float | None = None,
        review: str | None = None,
        maturity: str | None = None,
        certainty: str | None = None,
        links: Sequence[str | Link] = (),
        at: datetime | str | None = None,
        expires: datetime | str | None = None,
        metadata: Mapping[str, object] | None = None,
        vector: Any = None,
    ) -> str:
        """Store one memory durably; with an id known at this scope, as its new revision.

        Args:
            text: What to remember; not blank.
            scope: Where it belongs; exactly this scope owns it.
            id: Unique at its scope; None for a new random one.
            layer: Its layer; see `LayerPolicy`.
            key: What it is about: in layers with policy ``shadow`` the nearest scope's memory of a
                key hides those farther up.
            salience, confidence: In [0, 1]; None says nothing, which is not 0.
            review: ``confirmed``, ``unreviewed`` or ``flagged``; maturity: ``settled`` or
                ``provisional``; certainty: ``stated`` or ``inferred``.
            links: Ids of memories or names of entities, or `Link`s.
            at: Valid from; None for now.
            expires: Not shown from then on.
            metadata: JSON values, for filters.
            vector: The embedding, shape (d,); None to have the embedder make it.

        Returns:
            The id.

        Raises:
            InvalidArgumentError: All problems at once; nothing is stored.
            EmbeddingError: The embedder failed; nothing is stored.
            StoreError: The catalog could not be written; nothing is stored.
        """
        item = {
            "text": text, "scope": scope, "id": id, "layer": layer, "key": key,
            "salience": salience, "confidence": confidence, "review": review,
            "maturity": maturity, "certainty": certainty, "links": links, "at": at,
            "expires": expires, "metadata": metadata, "vector": vector,
        }  # fmt: skip
        return self._remember([item], named=False, embed=True)[0]

    def remember_many(
        self, items: Iterable[Mapping[str, Any]], *, embed: bool = True
    ) -> list[str]:
        """Store several memories in one transaction: all of them, or none.

        Args:
            items: Mappings with the arguments of `remember`.
            embed: False leaves memories that bring no vector without one; `reembed` makes them
                later.

        Returns:
            The ids, in order.

        Raises:
            As `remember`; problems name the item, e.g. ``items[3].salience``.
        """
        return self._remember([*items], named=True, embed=embed)

    def link(
        self,
        source: str,
        target: str,
        *,
        scope: ScopeLike,
        kind: str = "related",
        weight: float = 1.0,
        verified: bool = False,
    ) -> None:
        """Join two nodes, each the id of a memory or the name of an entity; the scope owns it."""
        self.link_many(
            [{"source": source, "target": target, "kind": kind, "weight": weight,
              "verified": verified}],
            scope=scope,
        )  # fmt: skip

    def link_many(self, links: Iterable[Mapping[str, Any]], *, scope: ScopeLike) -> None:
        """Join many pairs of nodes in one transaction; see `link`."""
        self._open_engine().add_edges(_read_edges(links, scope))

    def unlink(
        self, source: str, target: str, *, scope: ScopeLike, kind: str = "related"
    ) -> int:
        """Remove what `link` made at exactly this scope; returns how many links that were."""
        item = {"source": source, "target": target, "kind": kind}
        return self._open_engine().remove_edges(_read_edges([item], scope))

    def forget(self, ids: str | Iterable[str], *, scope: ScopeLike) -> int:
        """Erase memories stored at exactly this scope, with all their revisions.

        Raises:
            MemoryNotFoundError: An id is unknown or not visible from the scope (the same words).
            ScopeMismatchError: An id is visible from the scope but stored elsewhere.
        """
        engine = self._open_engine()
        return engine.forget(self._owned(engine, ids, scope))

    def reinforce(self, ids: str | Iterable[str], *, scope: ScopeLike) -> int:
        """Count one use of memories stored at exactly this scope; errors as in `forget`."""
        engine = self._open_engine()
        return engine.reinforce(self._owned(engine, ids, scope), self._now(None))

    # Reading

    def recall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: RankingProfile | str | os.PathLike[str] | None = None,
        weights: Mapping[str, float] | None = None,
        filters: Mapping[str, object] | None = None,
        prefer: Mapping[str, object] | None = None,
        seeds: Sequence[str | Seed] = (),
        as_of: datetime | str | None = None,
        now: datetime | str | None = None,
        include_expired: bool = False,
        reinforce: bool = False,
        strict: bool = False,
    ) -> Recall:
        """What a scope may see that is worth most for a query, best first.

        Args:
            query: The question. Blank is a cold start: memories come from activity and salience.
            scope: One scope or several; the union of what they see is visible.
            reach: ``subtree`` also shows memories stored below the scope, where permitted.
            top: At most this many; None for the profile's number; 0 returns nothing.
            profile: Another recipe for this call: a name, a path or a profile.
            weights: Weights of the profile's score to change for this call.
            filters: Hard conditions, ``{field: value | [values] | {"gte": …}}`` over metadata,
                layer and times.
            prefer: The same, soft: the satisfied share is the ``structured`` evidence.
            seeds: Ids of memories or names of entities for the graph to start from.
            as_of: Answer as of this valid time: revisions valid then, ages measured to then.
            now: The present; None for the clock.
            include_expired: Show expired memories too.
            reinforce: Count one use of each returned memory stored exactly at a query's scope.
            strict: Raise when a store fails instead of going on without its evidence.

        Returns:
            Matches with scores and contributions; explains itself; says when it is degraded.

        Raises:
            InvalidArgumentError, InvalidScopeError, UnknownNameError, ProfileError: The arguments.
            StoreFailedError, StoreTimeoutError: With ``strict`` only.
            MemoryContractError: A store proposed what this query may not see; always.
        """
        engine, question = self._question(
            query, scope, reach, top, profile, weights, filters, prefer, seeds, as_of, now,
            include_expired=include_expired,
        )  # fmt: skip
        result = drive(answer(engine, question), timeout=self._store_timeout, strict=strict)
        if reinforce:
            self._reinforce_owned(result, question)
        return result

    async def arecall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: RankingProfile | str | os.PathLike[str] | None = None,
        weights: Mapping[str, float] | None = None,
        filters: Mapping[str, object] | None = None,
        prefer: Mapping[str, object] | None = None,
        seeds: Sequence[str | Seed] = (),
        as_of: datetime | str | None = None,
        now: datetime | str | None = None,
        include_expired: bool = False,
        reinforce: bool = False,
        strict: bool = False,
    ) -> Recall:
        """`recall` without blocking the event loop: stores side by side, the same answer."""
        engine, question = self._question(
            query, scope, reach, top, profile, weights, filters, prefer, seeds, as_of, now,
            include_expired=include_expired,
        )  # fmt: skip
        result = await drive_async(
            answer(engine, question), timeout=self._store_timeout, strict=strict
        )
        if reinforce:
            self._reinforce_owned(result, question)
        return result

    def get(self, id: str, *, scope: ScopeLike) -> StoredMemory:
        """One memory by id, as seen from a scope: the nearest of that id.

        Raises:
            MemoryNotFoundError: Unknown or not visible from here.
        """
        engine = self._open_engine()
        problems = Problems()
        where = arguments.read_scope(problems, "scope", scope)
        problems.raise_if_any()
        assert where is not None
        key = engine.find(id, where)
        record = engine.catalog.get(key) if key is not None else None
        if record is None:
            raise MemoryNotFoundError([id], str(where))
        return StoredMemory.of(record)

    def __len__(self) -> int:
        """How many memories are stored, at all scopes."""
        engine = self._open_engine()
        engine.refresh()
        return len(engine.catalog)

    @property
    def profile(self) -> RankingProfile:
        """The recipe used when a recall names none."""
        return self._profile

    # Housekeeping

    def reembed(self, embedder: Embedder, *, batch: int = 256) -> int:
        """Write all vectors anew with another embedder; returns how many memories that were."""
        engine = self._open_engine()
        count = 0
        for records in engine.catalog.iter_records(batch):
            rows, has_vector = checked(embedder, [record.text for record in records])
            vectors = [
                row if has else None for row, has in zip(rows, has_vector, strict=True)
            ]
            engine.catalog.put_vectors([record.key for record in records], vectors)
            count += len(records)
        engine.catalog.set_meta(_EMBEDDER, identity(embedder))
        return count

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every revision, use and link as JSON lines; returns how many lines.

        The file appears under its name only when it is complete.
        """
        return write_lines(path, export_lines(self._open_engine().catalog))

    def close(self) -> None:
        """Close the file and all stores; closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._snapshots.clear()
            self._engine.save()
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"profile={self._profile.name!r}"
        return f"<Memory {state}>"

    # Inside

    def _open_engine(self) -> LiveEngine:
        if self._closed:
            raise StoreClosedError("this memory is closed; open it again with Memory.open")
        return self._engine

    def _now(self, given: float | None) -> float:
        if given is not None:
            return given
        now = self._clock()
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidArgumentError("clock: expected it to return an aware datetime")
        return now.timestamp()

    def _remember(
        self, items: Sequence[Mapping[str, Any]], *, named: bool, embed: bool
    ) -> list[str]:
        engine = self._open_engine()
        problems, now = Problems(), self._now(None)
        records: list[Record | None] = []
        vectors: list[NDArray[np.float32] | None] = []
        for position, item in enumerate(items):
            where = f"items[{position}]." if named else ""
            if not isinstance(item, Mapping):
                problems.add(f"items[{position}]: expected a mapping of the arguments of remember")
                continue
            unknown = item.keys() - _REMEMBER_DEFAULTS.keys() - {"text", "scope"}
            for name in sorted(map(str, unknown)):
                problems.add(f"{where}{name}: no such argument of remember")
            given = {**_REMEMBER_DEFAULTS, **{k: v for k, v in item.items() if k not in unknown}}
            vectors.append(arguments.read_vector(problems, f"{where}vector", given.pop("vector")))
            given["id"] = uuid.uuid4().hex if given["id"] is None else given["id"]
            text, scope = given.pop("text", None), given.pop("scope", None)
            records.append(
                arguments.read_record(problems, where, text=text, scope=scope, now=now, **given)
            )
        keys = [record.key for record in records if record is not None]
        if len(set(keys)) < len(keys):
            problems.add("items: one id occurs twice at one scope; remember it in two calls")
        problems.raise_if_any()
        ready = [record for record in records if record is not None]
        self._embed_missing(engine, ready, vectors, embed=embed)
        stored = engine.put(
            [
                record if vector is None else evolve(record, vector=vector)
                for record, vector in zip(ready, vectors, strict=True)
            ]
        )
        return [record.id for record in stored]

    def _embed_missing(
        self,
        engine: LiveEngine,
        records: Sequence[Record],
        vectors: list[NDArray[np.float32] | None],
        *,
        embed: bool,
    ) -> None:
        """Fill in the vectors that were not given, and hold all to the dimension of the file."""
        missing = [i for i, vector in enumerate(vectors) if vector is None]
        stored = engine.catalog.get_meta(_EMBEDDER)
        dimension = _dimension(engine.catalog)
        if embed and self._embedder is not None and missing:
            rows, has_vector = checked(
                self._embedder, [records[i].text for i in missing], dimension
            )
            for i, row, has in zip(missing, rows, has_vector, strict=True):
                if has:
                    vectors[i] = row
            if stored is None and any(has_vector):
                engine.catalog.set_meta(_EMBEDDER, identity(self._embedder))
        sizes = {vector.size for vector in vectors if vector is not None}
        expected = dimension if dimension is not None else min(sizes, default=None)
        if sizes - {expected}:
            raise InvalidArgumentError(
                f"vector: expected {expected} dimensions, as in this memory, got "
                f"{sorted(sizes - {expected})}"
            )

    def _check_embedder(self) -> None:
        stored = self._engine.catalog.get_meta(_EMBEDDER)
        if self._embedder is None or stored is None:
            return
        given = identity(self._embedder)
        if stored != given:
            raise EmbedderMismatchError(stored, given)

    def _owned(self, engine: LiveEngine, ids: str | Iterable[str], scope: ScopeLike) -> list[Key]:
        problems = Problems()
        wanted = arguments.read_ids(problems, ids)
        where = arguments.read_scope(problems, "scope", scope)
        problems.raise_if_any()
        assert where is not None
        engine.refresh()
        found = [engine.find(identifier, where) for identifier in wanted]
        unseen = [i for i, key in zip(wanted, found, strict=True) if key is None]
        if unseen:
            raise MemoryNotFoundError(unseen, str(where))
        foreign = [key.id for key in found if key is not None and key.scope != where]
        if foreign:
            raise ScopeMismatchError(foreign, str(where))
        return [key for key in found if key is not None]

    def _question(
        self,
        query: str,
        scope: object,
        reach: str,
        top: int | None,
        profile: RankingProfile | str | os.PathLike[str] | None,
        weights: Mapping[str, float] | None,
        filters: Mapping[str, object] | None,
        prefer: Mapping[str, object] | None,
        seeds: Sequence[str | Seed],
        as_of: datetime | str | None,
        now: datetime | str | None,
        *,
        include_expired: bool,
    ) -> tuple[Engine, Question]:
        live = self._open_engine()
        problems = Problems()
        text = arguments.read_query(problems, query)
        scopes = arguments.read_scopes(problems, scope)
        reached = arguments.read_reach(problems, reach, allowed=self._allow_subtree)
        problems.integer("top", top, least=0)
        hard = arguments.read_filters(problems, "filters", filters)
        arguments.read_filters(problems, "prefer", prefer)
        starts = arguments.read_seeds(problems, seeds)
        valid_at = arguments.read_time(problems, "as_of", as_of)
        present = arguments.read_time(problems, "now", now)
        if weights is not None and not isinstance(weights, Mapping):
            problems.add("weights: expected a mapping from signals to numbers")
        problems.raise_if_any()
        recipe = self._profile if profile is None else load_profile(profile)
        if weights:
            recipe = recipe.with_weights(weights)
        live.refresh()
        engine: Engine = live
        if valid_at is not None:
            engine = self._snapshots.at(valid_at, {scope.root for scope in scopes})
        question = Question(
            text,
            scopes,
            recipe,
            reached,
            self._statistics,
            valid_at if valid_at is not None else self._now(present),
            valid_at,
            top,
            hard,
            dict(prefer or {}),
            starts,
            bool(include_expired),
            self._embed_query if self._embedder is not None else None,
            self._reranker,
            self._count_tokens,
        )
        return engine, question

    def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        assert self._embedder is not None
        rows, has_vector = checked(self._embedder, [text], _dimension(self._engine.catalog))
        return rows[0] if has_vector[0] else None

    def _reinforce_owned(self, result: Recall, question: Question) -> None:
        owned = [
            Key(match.memory.scope, match.memory.id)
            for match in result
            if match.memory.scope in question.scopes
        ]
        if owned:
            self._engine.reinforce(owned, question.now)


def _read_edges(links: Iterable[Mapping[str, Any]], scope: ScopeLike) -> list[Edge]:
    problems = Problems()
    where = arguments.read_scope(problems, "scope", scope)
    edges = []
    for position, item in enumerate(links):
        name = f"links[{position}]"
        if not isinstance(item, Mapping) or not {"source", "target"} <= item.keys():
            problems.add(f"{name}: expected a mapping with source and target")
            continue
        for unknown in sorted(item.keys() - {"source", "target", "kind", "weight", "verified"}):
            problems.add(f"{name}.{unknown}: no such property of a link")
        for part in ("source", "target"):
            problems.text(f"{name}.{part}", item[part], limit=arguments.MAX_ID)
        kind = problems.text(f"{name}.kind", item.get("kind", "related"), limit=100)
        weight = problems.fraction(f"{name}.weight", item.get("weight", 1.0))
        if not weight:
            problems.add(f"{name}.weight: expected a number above 0")
        if where is not None and weight:
            edges.append(
                Edge(where, item["source"], item["target"], kind, weight,
                     bool(item.get("verified", False)))
            )  # fmt: skip
    problems.raise_if_any()
    return edges


def _dimension(catalog: Catalog) -> int | None:
    stored = catalog.get_meta("dimension")
    return None if stored is None else int(stored)


def _system_clock() -> datetime:
    return datetime.now(UTC)


def _quarter_of_the_characters(text: str) -> int:
    """A common rule of thumb for English; pass ``token_counter`` for a model's own count."""
    return -(-len(text) // 4)


def stored_embedder(path: str | os.PathLike[str]) -> str | None:
    """Identity of the embedder a file was written with, ``name/dimension``; None for a new file."""
    if not Path(path).exists():
        return None
    with Catalog.open(path) as catalog:
        return catalog.get_meta(_EMBEDDER)
