"""`Memory`: remember, recall, explain; the facade over the catalog, its stores and a profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.checks import Problems
from rankblend.embedders import Embedder, checked, identity
from rankblend.errors import (
    InvalidArgumentError,
    MemoryNotFoundError,
    StoreClosedError,
    StoreError,
    StoreFailedError,
)
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import _arguments as arguments
from rankblend.recall._ask import Rounds, away
from rankblend.recall._embedding import EMBEDDER, check_embedder, check_name, embed_query
from rankblend.recall._engine import Engine, default_stores
from rankblend.recall._items import read_edges, read_items
from rankblend.recall._live import LiveEngine, Snapshots
from rankblend.recall._pipeline import answer
from rankblend.recall._portable import export_lines, read_batch, write_lines
from rankblend.recall._question import ProfileLike, Question, Reranker, read_question
from rankblend.recall._result import Recall, StoredMemory
from rankblend.recall._write import Batch, Progress, collecting_seldom, owned_keys, write
from rankblend.relevance import Scope
from rankblend.stores import DEFAULT_LAYERS, Key, LayerPolicy, Link, Seed, Statistics, Store
from rankblend.stores.catalog import Catalog, Compaction
from rankblend.stores.graph import edges_of

if TYPE_CHECKING:
    import networkx as nx

ScopeLike = Scope | str


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

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | None = None,
        profile: ProfileLike = "default",
        stores: Iterable[Store] | None = None,
        reranker: Reranker | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        clock: Callable[[], datetime] | None = None,
        store_timeout: float | None = None,
        busy_timeout: float = 5.0,
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
            busy_timeout: Seconds a write waits for another process that is writing, above 0.
            statistics: What keyword statistics are taken over: ``root``, ``visible`` or ``store``.
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
        arguments.check_options(
            problems, busy_timeout=busy_timeout, store_timeout=store_timeout, statistics=statistics,
            functions={"embedder": embedder, "tokenizer": tokenizer, "clock": clock,
                       "token_counter": token_counter, "reranker": reranker},
        )  # fmt: skip
        policies = arguments.read_layers(problems, layers)
        given = arguments.read_stores(problems, stores)
        if given is not None and tokenizer is not None:
            problems.add("tokenizer", "give it to default_stores when you give stores")
        problems.raise_if_any()
        recipe = load_profile(profile)
        chosen = given if given is not None else default_stores(tokenizer=tokenizer)
        with ExitStack() as undo:
            for store in chosen:
                undo.callback(store.close)
            catalog = Catalog.open(path, busy_timeout=busy_timeout)
            undo.callback(catalog.close)
            check_embedder(catalog, embedder, opening=True)
            engine = LiveEngine(catalog, chosen, {**DEFAULT_LAYERS, **policies})
            engine.load()
            memory = cls(
                engine,
                embedder=embedder,
                profile=recipe,
                reranker=reranker,
                clock=clock or arguments.system_clock,
                store_timeout=None if store_timeout is None else float(store_timeout),
                statistics=Statistics(statistics),
                allow_subtree=bool(allow_subtree),
                count_tokens=token_counter or arguments.quarter_of_the_characters,
            )
            undo.pop_all()
        return memory

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

    def recall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: ProfileLike | None = None,
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
            weights: Weights to change for this call: of the score (``similarity``) or of a node
                below it (``words.keyword``).
            filters: Hard conditions, ``{field: value | [values] | {"gte": …}}`` over metadata,
                layer and times.
            prefer: The same, soft: the satisfied share is the ``structured`` evidence.
            seeds: Ids of memories or names of entities for the graph to start from.
            as_of: Answer as of this valid time: revisions valid then, ages measured to then.
            now: The present; None for the clock.
            include_expired: Show expired memories too.
            reinforce: Count one use, at the present, of each returned memory stored exactly at a
                query's scope.
            strict: Raise when a store fails instead of going on without its evidence.

        Returns:
            Matches with scores and contributions; explains itself; says when it is degraded.

        Raises:
            InvalidArgumentError, InvalidScopeError, UnknownNameError, ProfileError: The arguments.
            StoreFailedError, StoreTimeoutError: With ``strict`` only.
            MemoryContractError: A store proposed what this query may not see; always.
        """
        ask = partial(
            self._question, query=query, scope=scope, reach=reach, top=top, profile=profile,
            weights=weights, filters=filters, prefer=prefer, seeds=seeds, as_of=as_of, now=now,
            include_expired=include_expired,
        )  # fmt: skip
        return self._answered(ask, reinforce=reinforce, strict=strict)

    async def arecall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: ProfileLike | None = None,
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
        ask = partial(
            self._question, query=query, scope=scope, reach=reach, top=top, profile=profile,
            weights=weights, filters=filters, prefer=prefer, seeds=seeds, as_of=as_of, now=now,
            include_expired=include_expired,
        )  # fmt: skip
        return await away(partial(self._answered, ask, reinforce=reinforce, strict=strict))

    def get(self, id: str, *, scope: ScopeLike) -> StoredMemory:
        """One memory by id: one stored at exactly this scope, else what a recall from it may show.

        Raises:
            MemoryNotFoundError: Unknown or not visible from here.
        """
        engine = self._open_engine()
        problems = Problems()
        if not isinstance(id, str):
            problems.add("id", f"expected text, got {type(id).__name__}")
        where = arguments.read_scope(problems, "scope", scope)
        problems.raise_if_any()
        engine.catch_up()
        if where is not None:
            key: Key | None = Key(where, id)
            if key is not None and not engine.holds(key):
                key = engine.catalog.locate(engine.sight(where, self._now(None)), [id])[0]
            record = engine.catalog.get(key) if key is not None else None
            if record is not None:
                return StoredMemory.of(record)
        raise MemoryNotFoundError([id], str(where))

    def to_networkx(self, *, scope: ScopeLike) -> nx.MultiDiGraph:
        """The graph of links that a scope sees, for any networkx algorithm; a copy.

        Edges carry ``kind``, ``weight``, ``verified``, ``scope``, and ``memory`` where a memory
        owns them; nodes that are memories carry ``memory=True``.
        """
        engine, where = self._open_engine(), Scope.of(scope)
        engine.refresh()
        with engine.lock.reading():
            for _, store in engine.walkers():
                return store.to_networkx(engine.sight(where, self._now(None)))
        raise InvalidArgumentError("to_networkx: this memory was opened without a graph store")

    def __len__(self) -> int:
        """How many memories are stored, at all scopes."""
        engine = self._open_engine()
        engine.catch_up()
        return len(engine.catalog)

    def __bool__(self) -> bool:
        """True, also while it is empty: ``if memory`` asks whether there is one."""
        return True

    @property
    def profile(self) -> RankingProfile:
        """The recipe used when a recall names none."""
        return self._profile

    @property
    def stores(self) -> Mapping[str, Store]:
        """The stores that are asked, by name, in the order in which their proposals become seeds."""
        engine = self._open_engine()
        engine.refresh()
        return MappingProxyType(engine.stores)

    @property
    def embedder(self) -> str | None:
        """Identity of the embedder the memories were written with, ``name/dimension``, if any."""
        return self._open_engine().catalog.get_meta(EMBEDDER)

    @property
    def statistics(self) -> str:
        """Over which memories keyword statistics are taken."""
        return self._statistics.value

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
            salience: Importance in [0, 1]; None says nothing, which is not 0.
            confidence: How sure the writer is, in [0, 1], or None.
            review: ``confirmed``, ``unreviewed``, ``flagged`` or None.
            maturity: ``settled``, ``provisional`` or None.
            certainty: ``stated``, ``inferred`` or None.
            links: Ids of memories or names of entities, or `Link`s.
            at: Valid from; None for now, or from when the revision it replaces is, where that is
                later (the clock has gone backwards): without ``at`` it always becomes current.
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
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> list[str]:
        """Store several memories in one transaction: all of them, or none.

        Args:
            items: Mappings with the arguments of `remember`; those moved from elsewhere may bring
                ``created``, ``uses`` and ``used`` too. One id may come several times at one scope,
                as its revisions.
            embed: False: memories that bring no vector get none; `reembed` makes them later.
            progress: Told now and then how many texts have been embedded so far.

        Returns:
            The ids, in order.

        Raises:
            As `remember`; problems name the item, e.g. ``items[3].salience``.
        """
        return self._remember(items, named=True, embed=embed, progress=progress)

    def link(
        self,
        source: str,
        target: str,
        *,
        scope: ScopeLike,
        kind: str = "related",
        weight: float = 1.0,
        verified: bool = False,
        at: datetime | str | None = None,
    ) -> None:
        """Join two nodes, ids of memories or names of entities; it holds from ``at``, or always."""
        item = {"source": source, "target": target, "kind": kind, "weight": weight}
        self.link_many([{**item, "verified": verified, "at": at}], scope=scope)

    def link_many(self, links: Iterable[Mapping[str, Any]], *, scope: ScopeLike) -> None:
        """Join many pairs of nodes in one transaction; see `link`."""
        self._open_engine().add_edges(read_edges(links, scope))

    def add_networkx(self, graph: nx.Graph, *, scope: ScopeLike) -> int:
        """Store the edges of a networkx graph, owned by one scope; returns how many.

        Nodes are ids of memories or names of entities. ``kind``, ``weight`` (in (0, 1]) and
        ``verified`` are read from the edges' attributes and stored; other attributes are not.

        Raises:
            InvalidArgumentError: A node that is not text, or a bad weight; nothing is stored.
        """
        edges, _ = edges_of(graph, Scope.of(scope))
        self._open_engine().add_edges(edges)
        return len(edges)

    def unlink(self, source: str, target: str, *, scope: ScopeLike, kind: str = "related") -> int:
        """Remove what `link` made at exactly this scope; returns how many links that were."""
        item = {"source": source, "target": target, "kind": kind}
        return self._open_engine().remove_edges(read_edges([item], scope))

    def forget(self, ids: str | Iterable[str], *, scope: ScopeLike) -> int:
        """Erase memories stored at exactly this scope, with all their revisions.

        Raises:
            MemoryNotFoundError: An id is unknown or not visible from the scope (the same words).
            ScopeMismatchError: An id is visible from the scope but stored elsewhere.
        """
        engine = self._open_engine()
        return engine.forget(owned_keys(engine, ids, scope, now=lambda: self._now(None)))

    def reinforce(self, ids: str | Iterable[str], *, scope: ScopeLike) -> int:
        """Count one use of memories stored at exactly this scope; errors as in `forget`."""
        engine = self._open_engine()
        keys = owned_keys(engine, ids, scope, now=lambda: self._now(None))
        return engine.reinforce(keys, self._now(None))

    def reembed(self, embedder: Embedder, *, batch: int = 256) -> int:
        """Replace all vectors by those of another embedder, in one transaction: of the whole file.

        Procedures in the file are embedded anew with the memories, or nothing is.

        Vectors of earlier revisions are dropped: queries as of the past then have no similarity.

        Returns:
            How many memories have a vector now; procedures always have one.

        Raises:
            EmbeddingError: The embedder failed; nothing was changed.
            InvalidArgumentError: The embedder has no name by which a file could recognize it.
        """
        engine = self._open_engine()
        check_name(engine.catalog, embedder)
        count = engine.reembed(
            lambda texts: checked(embedder, texts, batch_size=batch), lambda: identity(embedder)
        )
        self._embedder = embedder
        return count

    def relabel(self, name: str) -> None:
        """Note another name for the embedder of the file, its vectors being right as they are.

        For files that were written while the embedder had no name that tells, and for an embedder
        that was renamed. Memories and procedures keep their vectors.

        Args:
            name: What `rankblend.embedders.identity` has before its last ``/``; not blank.

        Raises:
            InvalidArgumentError: A blank name, or a file without an embedder.
        """
        self._open_engine().relabel(name)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write everything in the file as JSON lines; returns how many lines.

        Every revision, use and link of the memories, then the procedures with their runs.

        The file appears under its name only when it is complete; where it cannot be written that is
        an `InvalidArgumentError` about the path or a `StoreError`.
        """
        return write_lines(path, export_lines(self._open_engine().catalog))

    def import_(
        self,
        path: str | os.PathLike[str] | Batch,
        *,
        scope: ScopeLike | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Read JSON lines, exported or written by hand, in one transaction: all of them, or none.

        A line has the arguments of an item of `remember_many`, or with ``"type": "link"`` those of
        `link`; several of one id are revisions. What an export with vectors has none for stays so.

        Args:
            path: The file, or what `read_batch` read from it.
            scope: Of lines that name none.
            progress: Told now and then how many texts have been embedded so far.

        Returns:
            How many memories, revisions and links were read.

        Raises:
            InvalidArgumentError: Every problem with the number of its line; nothing is stored.
            EmbedderMismatchError: Its vectors are of another embedder; nothing is stored.
        """
        engine = self._open_engine()
        batch = path if isinstance(path, Batch) else read_batch(path, self._now(None), scope)
        write(engine, batch, self._embedder, progress=progress)
        return len(batch.items) + len(batch.edges) + len(batch.procedures)

    def compact(self) -> Compaction:
        """Rewrite the file: no byte of what was erased is left in it, and its space is given back.

        What is forgotten is overwritten at once, and the log beside the file is emptied when the
        last one closes it; this does both now, and shrinks the file. Call it again if the answer
        says that somebody was still reading an older state.

        Raises:
            StoreError: The file could not be rewritten; it is as it was.
        """
        return self._open_engine().compact()

    def close(self) -> None:
        """Close the file and all stores; closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._snapshots.clear()
            try:
                self._engine.save()
            finally:
                self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"profile={self._profile.name!r}"
        return f"<Memory {state}>"

    @collecting_seldom()
    def _remember(
        self, items: object, *, named: bool, embed: bool, progress: Progress | None = None
    ) -> list[str]:
        engine = self._open_engine()
        batch = Batch(read_items(items, now=self._now(None), named=named))
        stored = write(engine, batch, self._embedder if embed else None, progress=progress)
        return [record.id for record in stored]

    def _answered(
        self,
        ask: Callable[[], tuple[Engine, Question]],
        abandoned: Future[None] | None = None,
        *,
        reinforce: bool,
        strict: bool,
    ) -> Recall:
        engine, question = ask()
        if strict:
            for name in engine.behind:
                raise StoreFailedError(name, "write")
        try:
            rounds = Rounds(self._store_timeout, strict=strict, abandoned=abandoned)
            result = answer(engine, question, rounds)
        except Exception:
            raise
        except BaseException:
            # Ctrl-C may have stopped a store while it was putting its rows in order.
            self._engine.distrust()
            self._snapshots.clear()
            raise
        return self._reinforced(result, question) if reinforce else result

    def _open_engine(self) -> LiveEngine:
        if self._closed:
            raise StoreClosedError("this memory is closed; open it again with Memory.open")
        return self._engine

    def _now(self, given: float | None) -> float:
        if given is not None:
            return given
        problems = Problems()
        now = problems.clock(self._clock)
        problems.raise_if_any()
        return now

    def _question(self, **given: Any) -> tuple[Engine, Question]:
        live = self._open_engine()
        question = read_question(
            given,
            allow_subtree=self._allow_subtree,
            profile=self._profile,
            statistics=self._statistics,
            present=self._now,
            embed=self._embed_query if self._embedder is not None else None,
            reranker=self._reranker,
            count_tokens=self._count_tokens,
        )
        live.refresh()
        if question.as_of is None:
            return live, question
        return self._snapshots.at(question.as_of, {each.root for each in question.scopes}), question

    def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        catalog, embedder = self._engine.catalog, self._embedder
        return None if embedder is None else embed_query(catalog, embedder, text)

    def _reinforced(self, result: Recall, question: Question) -> Recall:
        """Count the uses; a result that was found is not lost because that could not be written."""
        owned = [
            Key(match.memory.scope, match.memory.id)
            for match in result
            if match.memory.scope in question.scopes
        ]
        try:
            if owned:
                self._engine.reinforce(owned, question.present)
        except StoreError as error:
            note = f"uses were not counted: {error}"
            trace = evolve(result.trace, notes=(*result.trace.notes, note))
            return evolve(result, trace=trace)
        return result
