"""What a procedural memory tells OpenTelemetry; `docs/telemetry.md` lists every value."""

from __future__ import annotations

from rankblend.reasonlets.errors import ReasonletAdapterError, code_of
from rankblend.telemetry import Operation

__all__ = ["EVALUATE", "GUARD", "RECALL"]


def _explain(error: Exception) -> tuple[str, str]:
    """Our code, else whether it is a bug of an adapter, and the class name."""
    code = code_of(error)
    if code is not None:
        return code, code
    adapter = isinstance(error, ReasonletAdapterError)
    return "adapter_error" if adapter else "exception", type(error).__name__


RECALL = Operation(
    "mnemosyne.recall",
    "How long recalls take.",
    _explain,
    counts=(
        ("candidates", "How many procedures the store found."),
        ("returned", "How many procedures a recall returned."),
    ),
    unit="{reasonlet}",
)
EVALUATE = Operation("mnemosyne.evaluate", "How long evaluators take to judge a run.", _explain)
GUARD = Operation("mnemosyne.guard", "How long guards take to admit a capture.", _explain)
