"""Finding profiles by name or path: presets, plug-ins, files."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import metadata, resources
from pathlib import Path as FilePath
from types import MappingProxyType

from rankblend.errors import (
    InvalidArgumentError,
    PluginError,
    PluginWarning,
    ProfileError,
    UnknownNameError,
)
from rankblend.profiles._documents import Document, document_from_file, document_from_text
from rankblend.profiles._extend import merge_documents
from rankblend.profiles._problems import ProfileProblems
from rankblend.profiles._profile import RankingProfile
from rankblend.profiles._tables import profile_from_tables
from rankblend.profiles._tree import dump_profile

PLUGIN_GROUP = "rankblend.profiles"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?<!\.toml)\Z")


def load_profile(profile: str | os.PathLike[str] | RankingProfile) -> RankingProfile:
    """The profile of this name or in this file.

    Args:
        profile: The name of a preset or plug-in; a path, as a ``PathLike`` or as text with a
            separator or the ending ``.toml``; or a profile, which is returned as it is. A name
            wins over a file called the same.

    Raises:
        UnknownNameError: No profile has this name.
        ProfileError: The file cannot be read or the profile is invalid: every problem with its path.
        PluginError: The plug-in of this name could not be loaded.
        InvalidArgumentError: ``profile`` is of another type.

    Example:
        >>> load_profile("crewai").score.weights
        (('similarity', 0.5), ('recency', 0.3), ('importance', 0.2))
    """
    if isinstance(profile, RankingProfile):
        return profile
    if isinstance(profile, os.PathLike):
        path = os.fspath(profile)
        if isinstance(path, str):
            return _load(document_from_file(FilePath(path)))
    elif isinstance(profile, str):
        if _is_path(profile):
            return _load(document_from_file(FilePath(profile)))
        return _load_named(profile)
    raise InvalidArgumentError(
        f"profile: expected a name, a path or a RankingProfile, got {type(profile).__name__}"
    )


def read_profile(
    text: str, *, name: str = "profile", folder: str | os.PathLike[str] | None = None
) -> RankingProfile:
    """The profile in a TOML text.

    Args:
        text: As in a profile file.
        name: What it is called in messages, and its name where the text gives none.
        folder: Where relative paths in ``extends`` start; None refuses paths.

    Raises:
        ProfileError: It is no TOML or the profile is invalid: every problem with its path.
    """
    where = None if folder is None else FilePath(folder)
    return _load(document_from_text(text, label=name, key=f"text:{name}", folder=where))


def profile_names() -> tuple[str, ...]:
    """The names of all presets and plug-ins, sorted; plug-ins are not loaded for it."""
    return tuple(sorted({*_presets(), *_plugins()}))


def _load(document: Document) -> RankingProfile:
    problems = ProfileProblems(document.label)
    merged = merge_documents(document, find=_find, problems=problems)
    problems = ProfileProblems(
        document.label,
        origins=merged.origins,
        lines=problems.lines,
        incomplete=not merged.complete,
    )
    return profile_from_tables(merged, problems, name=document.label.removesuffix(".toml"))


@cache
def _load_named(name: str) -> RankingProfile:
    return _load(_named(name))


def _find(name: str, asking: Document) -> Document:
    """The document that ``extends`` of another one means by a name or path."""
    if not _is_path(name):
        return _named(name)
    if asking.folder is None:
        raise InvalidArgumentError(f"{name!r}: only a profile in a file can extend a path")
    return document_from_file(asking.folder / name)


@cache
def _named(name: str) -> Document:
    if name in _presets():
        text = _presets()[name].read_text(encoding="utf-8")
        return document_from_text(text, label=name, key=f"preset:{name}")
    if name in _plugins():
        return _plugin_document(name)
    raise UnknownNameError("profile", name, profile_names())


def _is_path(name: str) -> bool:
    return name.endswith(".toml") or "/" in name or os.sep in name


@cache
def _presets() -> Mapping[str, resources.abc.Traversable]:
    folder = resources.files("rankblend.profiles") / "presets"
    files = {file.name: file for file in folder.iterdir()}
    return MappingProxyType(
        {name.removesuffix(".toml"): files[name] for name in files if name.endswith(".toml")}
    )


@cache
def _plugins() -> Mapping[str, metadata.EntryPoint]:
    """Entry points by name, found once and not loaded; a built-in is never replaced."""
    found: dict[str, metadata.EntryPoint] = {}
    for entry in sorted(
        metadata.entry_points(group=PLUGIN_GROUP), key=lambda it: (it.name, it.value)
    ):
        if not _NAME.match(entry.name):
            reason = "its name is not made of letters, digits, '.', '_' and '-'"
        elif entry.name in _presets():
            reason = "it has the name of a preset"
        elif entry.name in found:
            reason = f"{found[entry.name].value!r} has the same name"
        else:
            found[entry.name] = entry
            continue
        message = f"profile plug-in {entry.name!r} ({entry.value!r}) is skipped: {reason}"
        warnings.warn(message, PluginWarning, stacklevel=2)
    return MappingProxyType(found)


def _plugin_document(name: str) -> Document:
    """The document of a plug-in: TOML text, the path of a TOML file, or a ready profile."""
    entry = _plugins()[name]
    try:
        loaded = entry.load()
    except Exception as error:
        raise PluginError(
            f"profile plug-in {name!r} ({entry.value!r}) could not be loaded: "
            f"{type(error).__name__}"
        ) from error
    try:
        if isinstance(loaded, os.PathLike):
            file = document_from_file(FilePath(loaded))
            return Document(name, f"plugin:{name}", file.tables, file.folder)
        text = dump_profile(loaded) if isinstance(loaded, RankingProfile) else loaded
        if isinstance(text, str):
            return document_from_text(text, label=name, key=f"plugin:{name}")
    except ProfileError as error:
        raise PluginError(f"profile plug-in {name!r}: {error}") from error
    raise PluginError(
        f"profile plug-in {name!r} ({entry.value!r}): expected TOML text, a path or a "
        f"RankingProfile, got {type(loaded).__name__}"
    )
