"""Trimtab for Strands agents.

    from strands import Agent
    from strands.agent.conversation_manager import NullConversationManager
    from trimtab.strands import Trimtab

    context = Trimtab(window=128_000)
    agent = Agent(model, tools=[*tools, *context.tools],
                  conversation_manager=NullConversationManager())
    context.attach(agent)
"""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable

from strands import Agent, tool
from strands.middleware import InvokeModelStage

from ._hosts import (
    HostRows,
    call_row,
    or_unchanged,
    output_row,
    record_usage,
    recovers,
    row_text,
    text_of,
    tool_functions,
)
from .session import Session


class Trimtab:
    """One conversation."""

    def __init__(self, name: str = "strands", **options: Any) -> None:
        self.session = Session(name, **options)
        self.tools = [tool(f) for f in tool_functions(lambda: self.session)]

    def attach(self, agent: Agent) -> None:
        """Makes the messages of each model call of ``agent`` fit."""
        agent.add_middleware(InvokeModelStage, self._invoke)

    async def _invoke(self, context: Any, next_fn: Callable[[Any], AsyncIterator[Any]]) -> Any:
        while True:
            came = context.messages
            sent = or_unchanged(lambda: fitted(self.session, came, context.tool_specs), came)
            has_begun = False
            try:
                async for event in next_fn(context.replace(messages=sent)):
                    has_begun = has_begun or "event" in event
                    self._record(event)
                    yield event
                return
            except Exception as error:
                if has_begun or not recovers(self.session, _provider_error(error)):
                    raise


    def _record(self, event: Any) -> None:
        usage = event.get("event", {}).get("metadata", {}).get("usage", {})
        record_usage(self.session, usage.get("inputTokens"), usage.get("outputTokens"))


def _provider_error(error: Exception) -> Exception:
    """The error of the provider's SDK, which the framework wraps."""
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def fitted(session: Session, came: list[Any], tool_specs: list[Any] | None) -> list[Any]:
    """The messages to send."""
    rows = HostRows()
    for message in came:
        if message["role"] == "assistant":
            rows.add(_assistant_row(message), (message, None))
        else:
            for block in message["content"]:
                rows.add(_block_row(block), (message, block))
    tools = [
        {"type": "function", "function": {"name": spec["name"], "description": spec["description"],
                                          "parameters": spec["inputSchema"]}}
        for spec in tool_specs or ()
    ]
    sent: list[Any] = []
    blocks_of: Any = None
    for row, place, is_changed in rows.sent(session.window_rows(rows.rows, tools)):
        message, block = place or (None, {"text": row_text(row)})
        if block is None:
            sent.append(message)
            blocks_of = None
            continue
        if is_changed and "toolResult" in block:
            content = [{"text": row_text(row)}]
            block = {**block, "toolResult": {**block["toolResult"], "content": content}}
        if message is not None and message is blocks_of:
            sent[-1]["content"].append(block)
        else:
            role = "assistant" if row["role"] == "assistant" else "user"
            sent.append({**(message or {}), "role": role, "content": [block]})
        blocks_of = message
    return sent


def _assistant_row(message: Any) -> dict[str, Any]:
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    text = "".join(block.get("text", "") for block in message["content"])
    return call_row([(use["toolUseId"], use["name"], use["input"]) for use in uses], text)


def _block_row(block: Any) -> dict[str, Any]:
    result = block.get("toolResult")
    if result is None:
        return {"role": "user", "content": block.get("text", "(media)")}
    content = result["content"]
    texts = [part["text"] if "text" in part else text_of(part.get("json", part)) for part in content]
    return output_row(result["toolUseId"], "\n".join(texts))
