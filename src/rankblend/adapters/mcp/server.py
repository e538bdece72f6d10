"""The tools of a memory file, spoken over the Model Context Protocol."""

from __future__ import annotations

import json
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as DeclaredTool

from rankblend.adapters.mcp.parameters import input_schema
from rankblend.adapters.mcp.tools import MemoryTools, Tool
from rankblend.version import __version__

__all__ = ["make_server", "serve"]

_INSTRUCTIONS = (
    "A memory: recall before answering, remember what should last. Before a task with several "
    "steps ask find_procedure, and record_outcome after following one."
)


def make_server(tools: MemoryTools) -> Server[Any]:
    """A server of the official SDK, to be run over any of its transports.

    Every failure of a tool is an error result with `failure_of` it as JSON; none is a protocol
    error, and none is logged.
    """
    known = {tool.name: tool for tool in tools.tools()}

    async def list_tools(
        context: ServerRequestContext[Any],  # noqa: ARG001
        request: PaginatedRequestParams | None,  # noqa: ARG001
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_declared(tool) for tool in known.values()])

    async def call_tool(
        context: ServerRequestContext[Any],  # noqa: ARG001
        request: CallToolRequestParams,
    ) -> CallToolResult:
        tool = known.get(request.name)
        if tool is None:
            return _result({"error": "validation", "problems": ["name: no such tool"]}, failed=True)
        answer, worked = await tools.call(tool, request.arguments or {})
        return _result(answer, failed=not worked)

    return Server(
        "rankblend",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(tools: MemoryTools) -> None:
    """Serve over standard input and output until the input ends."""
    server = make_server(tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _declared(tool: Tool) -> DeclaredTool:
    return DeclaredTool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool.parameters),
        annotations=ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False),
    )


def _result(answer: dict[str, object], *, failed: bool) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=None if failed else answer,
        is_error=failed,
    )
