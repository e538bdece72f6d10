"""The versions, in one place."""

from __future__ import annotations

__all__ = ["SCORING_VERSION", "__version__"]

__version__ = "0.1.0"

SCORING_VERSION = 1
"""Raised when the same profile over the same evidence gets another score or order."""
