"""Writing a profile as TOML text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomli_w

from rankblend.profiles._tree import plain_profile

if TYPE_CHECKING:
    from rankblend.profiles._profile import RankingProfile


def dump_profile(profile: RankingProfile) -> str:
    """The profile as TOML, complete and without parents.

    Loading the text gives an equal profile with the same hash. Evidence that was registered from
    Python is not written, only what the profile declares itself; to load the text, it has to be
    registered again.
    """
    tables = plain_profile(profile)
    # A line break inside a multi-line string reads back as \n whatever it was.
    multiline = "\r" not in profile.source
    return tomli_w.dumps(_said(tables), multiline_strings=multiline)


def _said(tables: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing: TOML has no null, and an empty section would be noise."""
    return {
        key: kept
        for key, value in tables.items()
        if value is not None and (kept := _without_none(value)) != {}
    }


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
