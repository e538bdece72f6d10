"""Doors from other libraries: OpenAI, Anthropic, LangChain, LlamaIndex, MCP; each behind its extra.

Nothing is imported here. Each module imports the library it is for, and only that one.
"""
