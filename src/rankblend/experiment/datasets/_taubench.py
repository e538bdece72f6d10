"""τ-bench runs: what an agent did on the same tasks again and again, and whether it succeeded.

Source: Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains"
(2024), historical trajectories (MIT).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from attrs import field, frozen

from rankblend.experiment.datasets._dataset import read_json, reading


@frozen
class TaskRun:
    """One attempt at a task.

    Attributes:
        task: Which task.
        trial: Number of the attempt, from 0.
        success: Whether the environment ended in the wanted state.
        instruction: What the simulated customer was told to want.
        messages: The conversation as chat messages, tool calls included.
        tools: Names of the tools called, in order.
        wanted: Names of the actions of the reference solution, in order; what the task is about,
            not what the agent did.
    """

    task: str
    trial: int
    success: bool
    instruction: str = field(repr=False)
    messages: tuple[Mapping[str, Any], ...] = field(repr=False, hash=False)
    tools: tuple[str, ...]
    wanted: tuple[str, ...] = ()


def load_taubench_runs(path: str | PathLike[str]) -> tuple[TaskRun, ...]:
    """Read a file of historical trajectories such as ``gpt-4o-airline.json``.

    Returns:
        The runs by trial, then by task: the order in which a memory could have learned from them.

    Raises:
        InvalidArgumentError: The file holds something else.
    """
    expected = "a list of runs with task_id, trial, reward, info and traj"
    data = read_json(Path(path))
    with reading("τ-bench", path, expected):
        if not isinstance(data, list):
            raise TypeError
        runs = [
            TaskRun(
                str(run["task_id"]),
                int(run["trial"]),
                float(run["reward"]) == 1.0,
                run["info"]["task"]["instruction"],
                tuple(run["traj"]),
                tuple(_tools(run["traj"])),
                tuple(action["name"] for action in run["info"]["task"].get("actions", ())),
            )
            for run in data
        ]
        return tuple(sorted(runs, key=lambda run: (run.trial, int(run.task))))


def _tools(messages: list[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"]
