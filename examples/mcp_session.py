"""The MCP server of a memory file, asked by the official client over standard streams.

python examples/mcp_session.py
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client

# As a host of tools would be told: rankblend mcp --db agent.db --scope tenant:acme
SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-c", "from rankblend.cli import main; main()",
          "mcp", "--db", "agent.db", "--scope", "tenant:acme", "--embedder", "none"],
)  # fmt: skip


async def ask(session: ClientSession, tool: str, **arguments: Any) -> None:
    answer = await session.call_tool(tool, arguments)
    (content,) = answer.content
    print(tool, "failed:" if answer.is_error else "says:")
    print(json.dumps(json.loads(content.text), indent=1)[:600])


async def main() -> None:
    async with (
        stdio_client(SERVER) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        print([tool.name for tool in (await session.list_tools()).tools])
        await ask(session, "remember", text="Refunds over 500 need approval", id="policy")
        await ask(session, "recall", query="Who approves a refund?")
        await ask(session, "explain", query="Who approves a refund?", id="policy")
        await ask(session, "recall", query="anything", below="user:7")


if __name__ == "__main__":
    asyncio.run(main())
