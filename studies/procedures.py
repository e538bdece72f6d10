"""What a track record is worth: real procedures and real runs in a procedural memory.

    python -m studies.procedures ../shared/data [--limit 10] [--out docs/procedures-study.md]

Everything is embedded with wordllama, offline. Without --out the page goes to the terminal.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from attrs import evolve
from rich.console import Console

import rankblend as rb
from rankblend.embedders import Embedder
from rankblend.experiment.datasets import Dataset, load_tau2_banking, load_taubench_runs
from rankblend.experiment.evaluate import evaluate, remember_dataset
from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.report import Report, Section, Table
from rankblend.experiment.report._report import as_markdown
from rankblend.experiment.results import Results
from studies.outcome import clear, contrast_cell, decimals
from studies.procedure_arms import MEASURES
from studies.procedure_banking import FOLDS, banking_results
from studies.procedure_runs import Replayed, replayed

__all__ = ["procedures_report"]

BANKING, RUNS = "tau2_banking", "taubench/gpt-4o-airline.json"
_BASELINE = "similarity only"


def procedures_report(data: Path, embedder: Embedder, *, limit: int | None = None) -> Report:
    """Both studies.

    Args:
        data: The folder of the data sets.
        embedder: Of questions.
        limit: At most so many tasks of each, and few documents that none of them requires, to try
            it; all for None.
    """
    dataset = load_tau2_banking(data / BANKING)
    runs = load_taubench_runs(data / RUNS)
    if limit is not None:
        dataset = _few(dataset, limit)
        runs = tuple(run for run in runs if int(run.task) < limit)
    texts, titles = (
        asyncio.run(banking_results(dataset, embedder, titles=titles)) for titles in (False, True)
    )
    opening, instruction = (
        asyncio.run(replayed(runs, embedder, instructions=told)) for told in (False, True)
    )
    return Report(
        "Procedures with a track record",
        (
            _summary(texts, titles, opening, instruction),
            _banking_section(dataset, texts, titles, embedder),
            _runs_section(len(runs), opening, instruction),
            Section("Repeat it", ("`make procedures DATA=path/to/data`; about a minute.",)),
        ),
    )


def _few(dataset: Dataset, limit: int) -> Dataset:
    queries = dataset.queries[:limit]
    required = {document for query in queries for document in query.relevant}
    kept = [
        document
        for number, document in enumerate(dataset.memories)
        if document["id"] in required or number % 50 == 0
    ]
    return evolve(dataset, queries=queries, memories=tuple(kept))


def _summary(texts: Results, titles: Results, opening: Replayed, told: Replayed) -> Section:
    """The numbers first, those against us among them."""
    moved = [contrast for found in (opening, told) for contrast in _change(found)]
    bank, by_title = compare(texts, baselines=_BASELINE), compare(titles, baselines=_BASELINE)
    return Section(
        "What came out",
        (
            f"**Banking.** Without a record the profile ranks as the cosine does "
            f"({_told(bank, 'mnemosyne, no floor')}). Its floor of .5 costs: "
            f"{_told(bank, 'mnemosyne, floor .5')}; where only titles are remembered "
            f"{_told(by_title, 'mnemosyne, floor .5')}, and nothing at all is found for "
            f"{_empty(titles, 'mnemosyne, floor .5')} of {len(titles.queries)} tasks. A record made "
            f"of other tasks helps: {_told(bank, 'with a record, no floor')}. Part of that is what "
            "many tasks require: the record alone, over the 200 most similar, reaches "
            f"{_value(bank, 'the record alone, pool 200')}.",
            "**Runs.** Before and after the verdicts, with what customers first say as the "
            f"question: {_moved(opening)}. With the whole instruction: {_moved(told)}. Of these "
            f"{len(moved)} intervals, over {len(opening.results.queries)} questions of "
            f"{len(set(opening.results.clusters))} tasks, "
            f"{sum(clear(c.interval) != 0 for c in moved)} leave out zero. The whole ranking, after "
            f"the verdicts, against similarity alone: {_against(opening)}; with the instruction "
            f"{_against(told)}.",
            "Figures in brackets are 95 % intervals of the difference, by bootstrap over whole "
            "tasks; `*`: p < .05, corrected over the arms and measures of the comparison.",
        ),
    )


def _banking_section(
    dataset: Dataset, texts: Results, titles: Results, embedder: Embedder
) -> Section:
    return Section(
        f"{len(dataset.memories)} procedures of a bank",
        (
            "Documents of τ²-bench banking, each remembered as a Reasonlet "
            "with its numbered steps as graph, and recalled for the "
            f"{len(dataset.queries)} tasks that require some of them; ten are returned. A Reasonlet "
            "is found by the question it answered. A document has none, so once its whole text and "
            "once its title stands for it. A task's question is the customer's whole instruction.",
            f"*With a record*: in {FOLDS} folds, every task of the other folds has left one run, "
            "which worked, on each procedure it requires. So a task's own requirements are never "
            "in the record it is asked with. The record holds successes only, and procedures of "
            "the everyday kind have more of them. *The record alone* orders the 200 most similar "
            "by success rate and shows how far that goes.",
            _reference(dataset, embedder),
        ),
        (
            _table(compare(texts, baselines=_BASELINE), "whole text is the question"),
            _table(compare(titles, baselines=_BASELINE), "title is the question"),
        ),
    )


def _reference(dataset: Dataset, embedder: Embedder) -> str:
    """What the same texts reach as ordinary memories, words included."""
    with rb.Memory.open(":memory:", embedder=embedder) as memory:
        remember_dataset(memory, dataset)
        found = evaluate(memory, dataset, "default", measures=("nDCG@10", "R@10"), top=10)
    ndcg, recall = (decimals(float(found.measures[name].mean())) for name in ("nDCG@10", "R@10"))
    return (
        "For comparison: the same texts as ordinary memories under the profile `default`, which "
        f"reads words, too, reach nDCG@10 {ndcg} and R@10 {recall} without any record."
    )


def _runs_section(count: int, opening: Replayed, instruction: Replayed) -> Section:
    told = opening.produced
    return Section(
        f"{count} runs of an agent",
        (
            f"{count} runs of τ-bench airline (an agent on 50 tasks, four trials of each), replayed "
            "as a chat pipeline would have: for each run the procedure recalled first is its "
            "parent; `transcript_to_capture` makes the capture of the whole run; the agent takes "
            "each for a success. Three trials are learned, the successful runs of the fourth are "
            "asked for, each trial held out in turn. A recalled procedure is right when it goes "
            "the way that run then went (same tools, same names of arguments, same order). Then the "
            "environment's verdict is recorded for every learned run and the same is asked again.",
            f"Of the learned runs, over all folds, {told.get('created', 0)} became new procedures, "
            f"{told.get('version', 0)} new versions, {told.get('execution', 0)} only a run; "
            f"{opening.skipped} called no tool that succeeded and hold no procedure. "
            f"{opening.unanswerable} of the successful held-out runs went a way that no learned run "
            "had gone; nothing can be found for them, and they are left out.",
            "A task's question is what the customer said first (such as wanting to change a "
            "flight), or, in the second table, the instruction of the simulated customer, which is "
            "the same in all trials and which no agent sees.",
        ),
        (
            _table(compare(opening.results, baselines=_BASELINE), "first words"),
            _table(compare(instruction.results, baselines=_BASELINE), "instruction"),
            _change_table(opening, instruction),
        ),
    )


_BEFORE, _AFTER = "before any verdict", "after the verdicts"


def _change(found: Replayed) -> Comparison:
    return compare(found.results.pick([_BEFORE, _AFTER]), baselines=_BEFORE)


def _change_table(opening: Replayed, instruction: Replayed) -> Table:
    rows = [
        (question, c.measure, decimals(c.baseline_value), decimals(c.value), contrast_cell(c),
         c.wins, c.losses, c.queries)
        for question, found in (("first words", opening), ("instruction", instruction))
        for c in _change(found)
    ]  # fmt: skip
    return Table(
        ("question", "measure", "before", "after", "difference", "better", "worse", "queries"), rows
    )


def _table(comparison: Comparison, title: str) -> Table:
    by_arm: dict[str, list[str]] = {}
    first = [decimals(c.baseline_value) for c in comparison if c.arm == comparison.contrasts[0].arm]
    empty = {}
    for c in comparison:
        by_arm.setdefault(c.arm, []).append(f"{decimals(c.value)}, {contrast_cell(c)}")
        empty[c.arm] = c.empty
    queries = comparison.contrasts[0].queries
    rows = [(_BASELINE, *first, 0, queries)]
    rows += [(arm, *cells, empty[arm], queries) for arm, cells in by_arm.items()]
    return Table((title, *MEASURES, "nothing found", "queries"), rows)


def _of(comparison: Comparison, arm: str, measure: str):
    return next(c for c in comparison if c.arm == arm and c.measure == measure)


def _moved(found: Replayed) -> str:
    """Each measure before and after the verdicts."""
    return "; ".join(
        f"{c.measure} {decimals(c.baseline_value)} before, {decimals(c.value)} after, "
        f"{contrast_cell(c)}"
        for c in _change(found)
    )


def _against(found: Replayed) -> str:
    comparison = compare(found.results, baselines=_BASELINE)
    return _told(comparison, "after the verdicts")


def _value(comparison: Comparison, arm: str, measure: str = "nDCG@10") -> str:
    return f"{measure} {decimals(_of(comparison, arm, measure).value)}"


def _told(comparison: Comparison, arm: str, measure: str = "nDCG@10") -> str:
    contrast = _of(comparison, arm, measure)
    return f"{measure} {decimals(contrast.value)}, {contrast_cell(contrast)}"


def _empty(results: Results, arm: str) -> int:
    return int(results.empty[results.arm(arm)].sum())


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, help="Tasks of each data set, to try it.")
    parser.add_argument("--out", type=Path, help="The page (default: only the terminal).")
    options = parser.parse_args()
    with Console(stderr=True).status("measuring"):
        report = procedures_report(options.data, rb.embedders.wordllama(), limit=options.limit)
    if options.out is None:
        Console().print(as_markdown(report), markup=False, soft_wrap=True)
    else:
        report.write(options.out)


if __name__ == "__main__":
    main()
