"""Trimtab for LangChain and LangGraph agents.

    from langchain.agents import create_agent
    from trimtab.langchain import TrimtabMiddleware

    agent = create_agent(model, tools, middleware=[TrimtabMiddleware(window=128_000)])

Each thread of a checkpointer is a conversation of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ._hosts import (
    HostRows,
    Sessions,
    call_row,
    or_unchanged,
    output_row,
    record_usage,
    recovers,
    row_text,
    tool_functions,
)
from .session import Session

_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")


class TrimtabMiddleware(AgentMiddleware):
    """Makes the messages of each model call fit, and gives the model the retrieval tools."""

    def __init__(self, name: str = "langchain", **options: Any) -> None:
        super().__init__()
        self._sessions = Sessions(name, options)
        functions = tool_functions(self.session)
        self.tools = [StructuredTool.from_function(f, parse_docstring=True) for f in functions]

    def session(self) -> Session:
        """The session of the current thread."""
        return self._sessions.get(_thread())

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        session = self.session()
        while True:
            try:
                return recorded(session, handler(fitted(session, request)))
            except Exception as error:
                if not recovers(session, error):
                    raise

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        session = self.session()
        while True:
            try:
                sent = await asyncio.to_thread(fitted, session, request)
                return recorded(session, await handler(sent))
            except Exception as error:
                if not recovers(session, error):
                    raise


def recorded(session: Session, response: ModelResponse) -> ModelResponse:
    """The response, whose usage was recorded."""
    usages = [getattr(message, "usage_metadata", None) for message in response.result]
    for usage in filter(None, usages):
        record_usage(session, usage.get("input_tokens"), usage.get("output_tokens"))
    return response


def fitted(session: Session, request: ModelRequest) -> ModelRequest:
    """The request with messages that fit."""

    def messages() -> list[AnyMessage]:
        rows = HostRows()
        if request.system_message is not None:
            rows.add({"role": "system", "content": request.system_message.content}, None)
        for message in request.messages:
            rows.add(row_of(message), message)
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        sent = rows.sent(session.window_rows(rows.rows, tools))
        return [message_of(*row) for row in sent if row.row["role"] != "system" or row.place]

    return request.override(messages=or_unchanged(messages, request.messages))


def row_of(message: AnyMessage) -> dict[str, Any]:
    """A message as a Chat row."""
    if isinstance(message, ToolMessage):
        return output_row(message.tool_call_id, message.content)
    if isinstance(message, AIMessage):
        calls = [(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls]
        content = message.content
        if isinstance(content, list):
            # Some providers repeat the calls among the parts.
            parts = (part if isinstance(part, dict) else {"type": "text", "text": part} for part in content)
            content = [part for part in parts if part.get("type") not in _CALL_BLOCKS]
        return call_row(calls, content)
    role = "system" if isinstance(message, SystemMessage) else "user"
    return {"role": role, "content": message.content}


def message_of(row: dict[str, Any], message: AnyMessage | None, is_changed: bool) -> AnyMessage:
    """The host's own message where a row has one."""
    if message is None:
        return AIMessage(row_text(row)) if row["role"] == "assistant" else HumanMessage(row_text(row))
    if is_changed and isinstance(message, ToolMessage):
        return message.model_copy(update={"content": row["content"]})
    return message


def _thread() -> str | None:
    from langgraph.config import get_config

    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
