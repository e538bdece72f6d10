"""``find_procedure`` as a tool of LangChain, for agents that list their tools themselves."""

from __future__ import annotations

from langchain_core.tools import BaseTool, StructuredTool

from rankblend.adapters.blocking import run_blocking
from rankblend.chat import FindProcedure

__all__ = ["find_procedure_tool"]


def find_procedure_tool(look_up: FindProcedure) -> BaseTool:
    """The tool with which a model looks up procedures that worked before.

    Its calls are never part of what `ProcedureMiddleware` captures, and set no parent.

    Args:
        look_up: The look-up, bound to a memory and a scope.
    """

    def find_procedure(question: str) -> str:
        return run_blocking(look_up(question))

    async def afind_procedure(question: str) -> str:
        return await look_up(question)

    return StructuredTool.from_function(
        func=find_procedure,
        coroutine=afind_procedure,
        name=look_up.name,
        description=look_up.description,
        args_schema=look_up.parameters,
    )
