"""Every block of README and docs runs, and shows what really comes out.

A page is read from top to bottom in an empty folder:

========== =====================================================================================
fence      what happens
========== =====================================================================================
python     It runs, all of a page's in one namespace. What it prints must be the ``text`` block that
           follows it directly, if there is one.
console    After each ``$ rankblend …`` the shown output must be the real one. Where none is shown
           the command is only parsed: its name and its options must exist. ``$ cat file`` shows a
           file, or makes it where there is none. Other programs are not run.
toml       It must be TOML, and a profile that loads if it has a score or extends another. One whose
           first line is ``# name.toml`` becomes a file of that name.
json       It must be JSON.
text       For reading.
========== =====================================================================================

One line ``…`` in an output stands for any number of lines. ``RANKBLEND_DOCS=write`` puts the real
output into the pages instead of comparing, with as many lines before and after the dots as there were.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from attrs import define

from rankblend.cli import commands, console
from rankblend.cli.app import app, run
from rankblend.profiles import load_profile, read_profile

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "console", "toml", "json", "text"}
COLUMNS = 112
_FENCE = re.compile(r"^```(\S*)[ ]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]+\.toml)\n")


@define
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    follows_directly: bool


def _blocks(page: str) -> list[Block]:
    found = []
    end = 0
    for match in _FENCE.finditer(page):
        between = page[end : match.start()]
        line = page.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], match[2], line, not between.strip()))
        end = match.end()
    return found


class Reading:
    """One page being read in an empty folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks = _blocks(path.read_text(encoding="utf-8"))
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.changed: dict[int, str] = {}

    def read(self) -> None:
        """All blocks, top to bottom."""
        for position, block in enumerate(self.blocks):
            where = f"{self.path.name}:{block.line}"
            assert block.language in LANGUAGES, f"{where}: fence {block.language!r}"
            if block.language == "python":
                following = self.blocks[position + 1 : position + 2]
                self._python(position, block, following[0] if following else None, where)
            elif block.language == "console":
                self._console(position, block, where)
            elif block.language == "toml":
                self._toml(block, where)
            elif block.language == "json":
                json.loads(block.text)

    def _python(self, position: int, block: Block, following: Block | None, where: str) -> None:
        # Blank lines first, so that a traceback names the line of the page.
        code = compile("\n" * block.line + block.text, str(self.path), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self.namespace)
        if following is not None and following.language == "text" and following.follows_directly:
            real = _fitted(following.text, printed.getvalue())
            self._settle(position + 1, following.text, real, where)

    def _console(self, position: int, block: Block, where: str) -> None:
        real = [
            f"$ {command}\n{_fitted(shown, self._answer(command, shown, where))}"
            for command, shown in _commands(block.text)
        ]
        self._settle(position, block.text, "".join(real), where)

    def _answer(self, command: str, shown: str, where: str) -> str:
        """What a command really says; what is shown where it is not run."""
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if words[0] == "cat":
            file = Path(words[1])
            if not file.exists():
                file.write_text(shown, encoding="utf-8")
            return file.read_text(encoding="utf-8")
        if words[0] != "rankblend":
            return shown
        _parse(words[1:], where)
        if not shown.strip():
            return shown
        return _said_by(words[1:])

    def _toml(self, block: Block, where: str) -> None:
        tables = tomllib.loads(block.text)
        named = _FILE.match(block.text)
        if named is not None:
            Path(named[1]).write_text(block.text, encoding="utf-8")
        if {"score", "extends"} & tables.keys():
            if named is None:
                read_profile(block.text, name=where)
            else:
                load_profile(Path(named[1]))

    def _settle(self, position: int, shown: str, real: str, where: str) -> None:
        if shown != real and os.environ.get("RANKBLEND_DOCS") == "write":
            self.changed[position] = real
            return
        assert shown == real, f"{where}: this is not what comes out"

    def rewrite(self) -> None:
        """Put what really comes out into the page."""
        if not self.changed:
            return
        counter = iter(range(len(self.blocks)))

        def replaced(match: re.Match[str]) -> str:
            text = self.changed.get(next(counter), match[2])
            return f"```{match[1]}\n{text}```"

        page = self.path.read_text(encoding="utf-8")
        self.path.write_text(_FENCE.sub(replaced, page), encoding="utf-8")


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command after ``$`` with the output shown below it; a backslash continues a line."""
    assert text.startswith("$ "), "a console block begins with a command"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        last = next(n for n, line in enumerate(lines) if not line.endswith("\\\n"))
        yield "".join(lines[: last + 1]).removesuffix("\n"), "".join(lines[last + 1 :])


def _said_by(arguments: list[str]) -> str:
    said = io.StringIO()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        contextlib.suppress(SystemExit),
    ):
        run(arguments)
    return said.getvalue()


def _parse(arguments: list[str], where: str) -> None:
    commands.register(app)
    group: Any = typer.main.get_command(app)
    names = [word for word in arguments if not word.startswith("-")]
    command = group
    for name in names:  # as deep as there are groups of commands
        if hasattr(command, "commands"):
            assert name in command.commands, f"{where}: there is no command {name!r}"
            command = command.commands[name]
    known = {option for param in command.params for option in param.opts} | {"--help"}
    for word in arguments:
        option = word.partition("=")[0]
        if option.startswith("--"):
            assert option in known, f"{where}: {names[:1]} has no option {option}"


def _fitted(shown: str, real: str) -> str:
    """The real output with what the page leaves out left out, without blanks at line ends."""
    lines = [f"{line.rstrip()}\n" for line in real.splitlines()]
    wanted = shown.splitlines(keepends=True)
    if "…\n" in wanted:
        before = wanted.index("…\n")
        after = len(wanted) - before - 1
        if before + after < len(lines):
            lines[before : len(lines) - after] = ["…\n"]
    return "".join(lines)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals of one width, without colors."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    for one in (console.output, console.errors):
        monkeypatch.setattr(one, "_width", COLUMNS)


@pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
@pytest.mark.usefixtures("wide")
def test_page_when_read_from_top_to_bottom_then_everything_in_it_is_so(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKBLEND_DEBUG", raising=False)
    reading = Reading(page)
    reading.read()
    reading.rewrite()


@pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_page_when_it_links_to_another_then_that_is_there(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.compile(r"^#+ (.*)$", re.MULTILINE)
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name}: {target}"
        if anchor:
            titles = headings.findall(_FENCE.sub("", linked.read_text(encoding="utf-8")))
            assert anchor in {_anchor(title) for title in titles}, f"{page.name}: {target}"


def _anchor(title: str) -> str:
    plain = re.sub(r"[^\w\- ]", "", title.lower())
    return plain.strip().replace(" ", "-")


def test_pages_when_counted_then_each_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "index.md" or f"({name})" in index, f"docs/index.md does not link {name}"


def test_output_when_fitted_then_a_line_of_dots_stands_for_any_lines() -> None:
    assert _fitted("a\n…\nd\n", "a\nb\nc \nd\n") == "a\n…\nd\n"
    assert _fitted("…\nx\n", "b\nc\nd\n") == "…\nd\n"
    assert _fitted("a\n…\n", "b\nc\n") == "b\n…\n"
    assert _fitted("a\n", "a\nb\n") == "a\nb\n"
    assert _fitted("a\n…\nb\n", "a\nb\n") == "a\nb\n"


def test_commands_when_split_then_continued_lines_belong_together() -> None:
    text = "$ rankblend recall x \\\n    --db m.db\nout\n$ rankblend demo\n"
    assert list(_commands(text)) == [
        ("rankblend recall x \\\n    --db m.db", "out\n"),
        ("rankblend demo", ""),
    ]
