"""Trimtab for LangChain and LangGraph agents.

    from langchain.agents import create_agent
    from trimtab.langchain import TrimtabMiddleware

    agent = create_agent(model, tools, middleware=[TrimtabMiddleware(window=128_000)])

Each thread of a checkpointer is a conversation of its own.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from functools import cache
from typing import Any, Awaitable, Callable, NamedTuple, Sequence

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


class KeptMessage(NamedTuple):
    """A message that was converted."""

    message: AnyMessage
    content: Any
    calls: Any
    """Copies, because a message may be changed in place; None if it cannot have calls."""
    row: dict[str, Any]


class HostMemory(NamedTuple):
    """What was converted for the last call: an agent calls with the same objects, and some more."""

    messages: list[KeptMessage]
    tools: dict[int, tuple[Any, dict[str, Any]]]
    """Tools and their definitions, by the ids of the tools."""

    def next(self, messages: Sequence[AnyMessage], tools: Sequence[Any]) -> HostMemory:
        """The same for the next call: only what is new is converted."""
        known = [
            kept if message is kept.message and message.content == kept.content
            and (kept.calls is None or message.tool_calls == kept.calls) else converted(message)
            for message, kept in zip(messages, self.messages)
        ]
        new = [converted(message) for message in messages[len(known):]]
        defined = {id(tool): self.tools.get(id(tool)) or (tool, convert_to_openai_tool(tool)) for tool in tools}
        return HostMemory(known + new, defined)


def fitted(session: Session, request: ModelRequest) -> ModelRequest:
    """The request with messages that fit."""

    def messages() -> list[AnyMessage]:
        memory = session._host_memory or HostMemory([], {})
        memory = session._host_memory = memory.next(request.messages, request.tools)
        rows = HostRows()
        if request.system_message is not None:
            rows.add({"role": "system", "content": request.system_message.content}, None)
        rows.extend([kept.row for kept in memory.messages], request.messages)
        tools = [definition for _, definition in memory.tools.values()]
        sent = rows.sent(session._window_rows(rows.rows, tools, are_kept=True))
        return [message_of(*row) for row in sent if row.row["role"] != "system" or row.place]

    return request.override(messages=or_unchanged(messages, request.messages))


def converted(message: AnyMessage) -> KeptMessage:
    """A message with its Chat row."""
    content = deepcopy(message.content)
    kind = _kind(type(message))
    if kind == "tool":
        return KeptMessage(message, content, None, output_row(message.tool_call_id, content))
    if kind != "assistant":
        return KeptMessage(message, content, None, {"role": kind, "content": content})
    calls = deepcopy(message.tool_calls)
    shown = content
    if isinstance(shown, list):
        # Some providers repeat the calls among the parts.
        parts = (part if isinstance(part, dict) else {"type": "text", "text": part} for part in shown)
        shown = [part for part in parts if part.get("type") not in _CALL_BLOCKS]
    row = call_row([(call["id"] or "", call["name"], call["args"]) for call in calls], shown)
    return KeptMessage(message, content, calls, row)


@cache
def _kind(message: type) -> str:
    """The role of messages of a class. ``isinstance`` is slow for classes of pydantic."""
    kinds = {ToolMessage: "tool", AIMessage: "assistant", SystemMessage: "system"}
    return next((kind for base, kind in kinds.items() if issubclass(message, base)), "user")


def message_of(row: dict[str, Any], message: AnyMessage | None, is_changed: bool) -> AnyMessage:
    """The host's own message where a row has one."""
    if message is None:
        return AIMessage(row_text(row)) if row["role"] == "assistant" else HumanMessage(row_text(row))
    if is_changed and _kind(type(message)) == "tool":
        return message.model_copy(update={"content": row["content"]})
    return message


def _thread() -> str | None:
    from langgraph.config import get_config

    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
