"""Replays whose results are kept in the work folder, so that an interrupted study goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.plans import Arm, Plan
from rankblend.experiment.replay import replay
from rankblend.experiment.results import Results
from rankblend.files import write_whole
from rankblend.profiles import RankingProfile
from studies.outcome import MEASURE
from studies.subjects import Subject

__all__ = ["measured"]


def measured(
    subject: Subject, arms: Plan | Mapping[str, RankingProfile], *, top: int = 100
) -> Results:
    """`replay` by `MEASURE`; what was measured before is read again.

    Results are known by the recording's manifest and queries, the arms' names and hashes and
    ``top``. They do not know of changes of this package that its version does not tell: empty the
    work folder after one.
    """
    listed = arms.all_arms if isinstance(arms, Plan) else [Arm(n, p) for n, p in arms.items()]
    recording = subject.recording
    key = [
        recording.manifest.to_json(),
        recording.query_hash,
        [[arm.name, arm.hash] for arm in listed],
        top,
    ]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    path = recording.path.with_name("results") / f"{digest[:32]}.json"
    if path.is_file():
        try:
            return Results.from_json(path.read_text(encoding="utf-8"))
        except InvalidArgumentError:
            path.unlink()
    results = replay(recording, arms, [MEASURE], top=top)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, results.to_json())
    return results
