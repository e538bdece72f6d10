"""MCP: a memory file as a server of tools; ``rankblend mcp`` runs it over standard input and output.

The scope is the server's: a client can name a place below it where that was allowed, and never one
above or beside it.
"""

from __future__ import annotations

from rankblend.errors import MissingDependencyError

try:
    import mcp.server  # noqa: F401
except ImportError:
    raise MissingDependencyError("mcp", "mcp", "the MCP server") from None

from rankblend.adapters.mcp.server import make_server, serve
from rankblend.adapters.mcp.tools import MemoryTools, Tool

__all__ = ["MemoryTools", "Tool", "make_server", "serve"]
