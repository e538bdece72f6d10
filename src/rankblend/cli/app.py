"""The application: commands, exit codes, and errors as one readable line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.markup import escape

from rankblend.cli.console import errors
from rankblend.errors import RankblendError, StoreError
from rankblend.version import __version__

__all__ = ["EXIT_INTERRUPTED", "EXIT_STORE", "EXIT_USAGE", "app", "run"]

EXIT_STORE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

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
    """Run the command line and exit: 0 done, 1 a file failed, 2 wrong input, 130 interrupted.

    Mistakes of the user are one line (or one line a problem) on standard error, never a traceback;
    ``RANKBLEND_DEBUG=1`` shows it nevertheless.
    """
    from rankblend.cli import commands

    commands.register(app)
    try:
        code = app(arguments, prog_name="rankblend", standalone_mode=False)
    except RankblendError as error:
        _complain(error)
        code = EXIT_STORE if _is_of_a_file(error) else EXIT_USAGE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (| head): not an error, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if os.environ.get("RANKBLEND_DEBUG"):
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        _print_error(f"{where}{error.strerror or type(error).__name__}")
        code = EXIT_STORE
    except Exception as error:
        # click's own errors are not importable through typer in every version of it.
        show = getattr(error, "show", None)
        if type(error).__name__ == "Abort":
            code = EXIT_INTERRUPTED
        elif callable(show):
            show()
            code = getattr(error, "exit_code", EXIT_USAGE)
        else:
            raise
    if code == EXIT_INTERRUPTED:  # some versions of typer hand over the code, others raise
        errors.print("interrupted; nothing half-written was kept", style="yellow")
    sys.exit(code if isinstance(code, int) else 0)


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
