"""Whether a record could be stored and read back unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from rankblend.relevance import CERTAINTY_LEVELS, MATURITY_LEVELS, REVIEW_LEVELS, Scope, is_number
from rankblend.stores._record import Key, Link, Record

LABELS: Mapping[str, Mapping[str, float]] = {
    "review": REVIEW_LEVELS,
    "maturity": MATURITY_LEVELS,
    "certainty": CERTAINTY_LEVELS,
}

dump_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def unsound(records: Sequence[Record]) -> list[str]:
    """Problems of the records a quick look does not pass; metadata values are not looked at."""
    return record_problems(records, [i for i, each in enumerate(records) if not _sound(each)])


def record_problems(records: Sequence[Record], positions: Iterable[int]) -> list[str]:
    """Every problem of the records at some positions: ``drafts[i]: field: …``."""
    return [f"drafts[{i}]: {problem}" for i in positions for problem in _problems(records[i])]


def _sound(record: Record) -> bool:
    """A quick look that passes ordinary records; what it does not pass is looked at closely."""
    try:
        return _ordinary(record)
    except (AttributeError, TypeError):
        return False


def _ordinary(record: Record) -> bool:
    salience, confidence, expires = record.salience, record.confidence, record.expires
    names = (record.key.id, record.layer, record.slot or "-")
    return bool(
        record.text.isascii()
        and all(map(str.isascii, names))
        and all(map(str.strip, names))
        and type(record.key.scope) is Scope
        and type(record.created) is type(record.at) is float
        and math.isfinite(record.created + record.at)
        and record.used is None
        and record.uses == 0
        and (expires is None or (type(expires) is float and math.isfinite(expires)))
        and (salience is None or (type(salience) is float and 0.0 <= salience <= 1.0))
        and (confidence is None or (type(confidence) is float and 0.0 <= confidence <= 1.0))
        and (record.review is None or record.review in REVIEW_LEVELS)
        and (record.maturity is None or record.maturity in MATURITY_LEVELS)
        and (record.certainty is None or record.certainty in CERTAINTY_LEVELS)
        and not record.links
        and all(type(name) is str for name in record.metadata)
    )


def _problems(record: object) -> list[str]:
    if not isinstance(record, Record):
        return [f"expected a Record, got {type(record).__name__}"]
    problems = []
    if type(record.key) is not Key or type(record.key.scope) is not Scope:
        problems.append("key: expected a Key with a Scope")
    elif not (is_text(record.key.id) and record.key.id.strip()):
        problems.append("id: expected text that is not blank")
    if not is_text(record.text):
        problems.append("text: expected text of valid code points")
    for name in ("layer", "slot"):
        value = getattr(record, name)
        if not (is_text(value) and value.strip()) and not (name == "slot" and value is None):
            problems.append(f"{name}: expected text that is not blank")
    for name in ("created", "at", "used", "expires"):
        value = getattr(record, name)
        if not is_number(value) and not (name in ("used", "expires") and value is None):
            problems.append(f"{name}: expected finite seconds, got {type(value).__name__}")
    for name in ("salience", "confidence"):
        value = getattr(record, name)
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            problems.append(f"{name}: expected None or a number in [0, 1]")
    for name, levels in LABELS.items():
        value = getattr(record, name)
        if value is not None and not (isinstance(value, str) and value in levels):
            problems.append(f"{name}: expected None or one of {', '.join(levels)}")
    if type(record.uses) is not int or not 0 <= record.uses < 2**31:
        problems.append("uses: expected a count ≥ 0")
    problems += _link_problems(record.links)
    problems += _metadata_problems(record.metadata)
    return problems


def _link_problems(links: object) -> list[str]:
    if not isinstance(links, tuple | list) or {type(link) for link in links} - {Link}:
        return ["links: expected a tuple of Link"]
    return [
        f"links[{i}]: expected a target and kind that are not blank, and a weight in (0, 1]"
        for i, link in enumerate(links)
        if not (is_text(link.target) and link.target.strip())
        or not (is_text(link.kind) and link.kind.strip())
        or not (is_number(link.weight) and 0 < link.weight <= 1)
        or type(link.verified) is not bool
    ]


def _metadata_problems(metadata: object) -> list[str]:
    if not isinstance(metadata, Mapping):
        return [f"metadata: expected a mapping, got {type(metadata).__name__}"]
    if not all(isinstance(name, str) for name in metadata):
        return ["metadata: expected texts as names"]
    try:
        dump_json(dict(metadata)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return [f"metadata: expected JSON values ({type(error).__name__})"]
    return []


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is text that can be stored: without lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
