"""Results kept by a replay."""

from __future__ import annotations

from pathlib import Path

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.results import Results

__all__ = ["read_results"]


def read_results(path: Path) -> Results:
    """Read them.

    Raises:
        InvalidArgumentError: The file cannot be read or holds something else.
    """
    try:
        return Results.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({type(error).__name__})") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{path}: expected results kept by `rankblend replay --out`"
        ) from error
