"""The parts of a profile as a type, so that one still being read can be checked like a finished one."""

# ruff: noqa: D102 - what each part is, RankingProfile says

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rankblend.profiles.recipe import Floors, Pool, Select, SignalRecipe
from rankblend.relevance.blend import ScopeBlend
from rankblend.relevance.composers import Node
from rankblend.relevance.evidence import Evidence

__all__ = ["Recipe"]


class Recipe(Protocol):
    """The parts of a profile, checked or not; ``score`` is None only while one is read."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def evidence(self) -> Mapping[str, Evidence]: ...
    @property
    def signals(self) -> Mapping[str, SignalRecipe]: ...
    @property
    def nodes(self) -> Mapping[str, Node]: ...
    @property
    def score(self) -> Node | None: ...
    @property
    def rerank(self) -> Node | None: ...
    @property
    def reranking(self) -> str: ...
    @property
    def floors(self) -> Floors: ...
    @property
    def ties(self) -> tuple[str, ...]: ...
    @property
    def scope(self) -> ScopeBlend: ...
    @property
    def select(self) -> Select: ...
    @property
    def must_sum_to(self) -> Mapping[str, float]: ...
