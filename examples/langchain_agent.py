"""An agent of LangChain with a procedural memory, and a chain over a memory; fake models, no network.

python examples/langchain_agent.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

import rankblend as rb
from rankblend.adapters.langchain import MemoryRetriever, ProcedureMiddleware
from rankblend.chat import CaptureQueue, ChatOptions
from rankblend.reasonlets import ReasonletMemory


class Model(FakeMessagesListChatModel):
    """Says its replies in turn, and prints what the system tells it."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Accepts any tools."""
        del tools
        return self

    def _generate(self, messages: Any, *arguments: Any, **keywords: Any) -> Any:
        if messages[0].type == "system":
            print(messages[0].content)
        return super()._generate(messages, *arguments, **keywords)


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} is refunded"


def ask(question: str) -> Any:
    return {"messages": [HumanMessage(question)]}


async def run() -> None:
    calling = AIMessage("", tool_calls=[{"name": "refund", "args": {"order": 7}, "id": "1"}])
    model = Model(responses=[calling, AIMessage("Refunded."), AIMessage("As before.")])
    memory = ReasonletMemory(lambda texts: [[1.0, 0.0] for _ in texts])
    async with memory, CaptureQueue(memory) as queue:
        options = ChatOptions(default_scope="tenant:acme")
        middleware = ProcedureMiddleware(memory, queue=queue, options=options)
        agent = create_agent(model, tools=[refund], middleware=[middleware])
        await agent.ainvoke(ask("Please refund order 7"))
        await queue.join()
        answer = await agent.ainvoke(ask("Please refund order 9"))
        print(answer["messages"][-1].content)


def main() -> None:
    asyncio.run(run())
    with rb.Memory.open(":memory:") as memory:
        memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
        retriever = MemoryRetriever(memory=memory, scope="tenant:acme/user:7", top=3)
        for document in retriever.invoke("Who approves a refund?"):
            print(document.id, document.page_content, document.metadata["signals"])


if __name__ == "__main__":
    main()
