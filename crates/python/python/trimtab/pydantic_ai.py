"""Trimtab for Pydantic AI.

    from pydantic_ai import Agent
    from trimtab.pydantic_ai import Trimtab

    agent = Agent(model, capabilities=[Trimtab(window=128_000)])
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import messages as ai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.toolsets import FunctionToolset

from ._hosts import (
    HostRows,
    call_row,
    or_unchanged,
    output_row,
    record_usage,
    recovers,
    row_text,
    tool_functions,
)
from .session import Session


class Trimtab(AbstractCapability[Any]):
    """Makes the messages of each model request fit, for one conversation."""

    def __init__(self, name: str = "pydantic-ai", **options: Any) -> None:
        self.session = Session(name, **options)

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset(tool_functions(lambda: self.session))

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        came = request_context.messages
        parameters = request_context.model_request_parameters
        sent = or_unchanged(lambda: fitted(self.session, came, parameters), came)
        return replace(request_context, messages=sent)

    async def after_model_request(
        self, ctx: Any, *, request_context: Any, response: ai.ModelResponse
    ) -> ai.ModelResponse:
        usage = response.usage
        record_usage(self.session, usage.input_tokens, usage.output_tokens)
        return response

    async def on_model_request_error(
        self, ctx: Any, *, request_context: Any, error: Exception
    ) -> ai.ModelResponse:
        if recovers(self.session, error):
            raise RetryModelRequest() from error
        raise error


def fitted(session: Session, came: list[ai.ModelMessage], parameters: Any) -> list[ai.ModelMessage]:
    """The messages to send."""
    rows = HostRows()
    for message in came:
        if isinstance(message, ai.ModelResponse):
            rows.add(_response_row(message), (message, None))
        else:
            for part in message.parts:
                rows.add(_part_row(part), (message, part))
    tools = [
        {"type": "function", "function": {"name": tool.name, "description": tool.description,
                                          "parameters": tool.parameters_json_schema}}
        for tool in parameters.function_tools
    ]
    sent: list[ai.ModelMessage] = []
    parts_of: ai.ModelRequest | None = None
    for row, place, is_changed in rows.sent(session.window_rows(rows.rows, tools)):
        message, part = place or (None, _new_part(row))
        if part is None:
            sent.append(message or ai.ModelResponse(parts=[ai.TextPart(row_text(row))]))
            parts_of = None
            continue
        if is_changed and isinstance(part, ai.ToolReturnPart):
            part = replace(part, content=row_text(row))
        if message is not None and message is parts_of:
            sent[-1] = replace(sent[-1], parts=[*sent[-1].parts, part])
        else:
            sent.append(replace(message, parts=[part]) if message else ai.ModelRequest(parts=[part]))
        parts_of = message
    return sent


def _new_part(row: dict[str, Any]) -> Any:
    return None if row["role"] == "assistant" else ai.UserPromptPart(row_text(row))


def _response_row(message: ai.ModelResponse) -> dict[str, Any]:
    parts = message.parts
    calls = [p for p in parts if isinstance(p, ai.ToolCallPart)]
    text = "".join(p.content for p in parts if isinstance(p, ai.TextPart))
    return call_row([(c.tool_call_id, c.tool_name, c.args_as_json_str()) for c in calls], text)


def _part_row(part: Any) -> dict[str, Any]:
    if isinstance(part, ai.ToolReturnPart):
        return output_row(part.tool_call_id, part.model_response_str())
    if isinstance(part, ai.RetryPromptPart) and part.tool_name is not None:
        return output_row(part.tool_call_id, part.model_response())
    role = "system" if isinstance(part, ai.SystemPromptPart) else "user"
    content = getattr(part, "content", "")
    return {"role": role, "content": content if isinstance(content, str) else str(content)}
