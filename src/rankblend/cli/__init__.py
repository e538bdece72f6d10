"""The command line: one file a command, no logic that the library lacks."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the ``rankblend`` command and exit with its code."""
    try:
        from rankblend.cli.app import run

        run()
    except KeyboardInterrupt:  # while still importing: `run` itself says more
        raise SystemExit(130) from None
