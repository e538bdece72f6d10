"""The application: commands, exit codes, and errors as one readable line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.markup import escape

from rankblend.cli.console import errors, speak_plainly
from rankblend.errors import RankblendError, StoreError
from rankblend.version import __version__

__all__ = ["EXIT_INTERRUPTED", "EXIT_PIPE", "EXIT_STORE", "EXIT_USAGE", "app", "run"]

EXIT_STORE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141  # as a program that SIGPIPE ends; 0 would say that a gate was passed

app = typer.Typer(
    name="rankblend",
    help="Compose what several memory stores say into one ranking that can be explained.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankblend {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options before any command."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    0 done, 1 a file failed, 2 wrong input, 3 a gate stays shut, 130 interrupted, 141 the reader of
    the output has gone (``| head``). Mistakes of the user are one line (or one line a problem) on
    standard error, never a traceback; ``RANKBLEND_DEBUG=1`` shows it nevertheless.
    """
    from rankblend.cli import commands

    commands.register(app)
    speak_plainly()
    try:
        code = _code(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = EXIT_PIPE
    except SystemExit as ended:  # as typer and rich end where a pipe is closed
        code = EXIT_PIPE if isinstance(ended.__context__, BrokenPipeError) else ended.code
    if code == EXIT_PIPE:  # what is left in the buffer goes nowhere, without a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else 0)


def _code(arguments: list[str] | None) -> object:
    """Run a command; its exit code."""
    try:
        code: object = app(arguments, prog_name="rankblend", standalone_mode=False)
    except RankblendError as error:
        _complain(error)
        return EXIT_STORE if _is_of_a_file(error) else EXIT_USAGE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        if os.environ.get("RANKBLEND_DEBUG"):
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        _print_error(f"{where}{error.strerror or type(error).__name__}")
        return EXIT_STORE
    except Exception as error:
        # click's own errors are not importable through typer in every version of it.
        show = getattr(error, "show", None)
        if type(error).__name__ == "Abort":
            code = EXIT_INTERRUPTED
        elif callable(show):
            show()
            return getattr(error, "exit_code", EXIT_USAGE)
        else:
            raise
    if code == EXIT_INTERRUPTED:  # some versions of typer hand over the code, others raise
        errors.print("interrupted; nothing half-written was kept", style="yellow")
    return code


def _is_of_a_file(error: RankblendError) -> bool:
    """Whether the file failed: as a store of memories tells, or as one of procedures does."""
    from rankblend.reasonlets import ReasonletUnavailableError

    if isinstance(error, ReasonletUnavailableError):
        return error.what == "store"
    return isinstance(error, StoreError)


def _complain(error: RankblendError) -> None:
    if os.environ.get("RANKBLEND_DEBUG"):
        raise error
    problems = getattr(error, "problems", None) or (str(error),)
    for problem in problems:
        _print_error(str(problem))


def _print_error(message: str) -> None:
    errors.print(f"[red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
