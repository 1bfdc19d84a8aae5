"""Trimtab for the Google Agent Development Kit.

    from google.adk.runners import InMemoryRunner
    from trimtab.google_adk import TrimtabPlugin

    plugin = TrimtabPlugin(window=128_000)
    agent = LlmAgent(name="coder", model=model, tools=[*tools, *plugin.tools])
    runner = InMemoryRunner(agent=agent, plugins=[plugin])
"""

from __future__ import annotations

from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from ._hosts import (
    HostRows,
    Sessions,
    call_row,
    or_unchanged,
    output_row,
    record_usage,
    recovers,
    row_text,
    text_of,
)
from .session import GREP_TOOL, READ_TOOL, Session


class TrimtabPlugin(BasePlugin):
    """Makes the contents of each model request fit. Each session of ADK is a conversation."""

    def __init__(self, name: str = "google-adk", **options: Any) -> None:
        super().__init__(name="trimtab")
        self._sessions = Sessions(name, options)
        self.tools = [self.tool_output_cache, self.tool_output_cache_grep]
        self._came: dict[str, list[types.Content]] = {}

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        came = list(llm_request.contents)
        self._came[callback_context.session.id] = came
        llm_request.contents = self._fitted(callback_context, came)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        if llm_response.partial:
            return
        self._came.pop(callback_context.session.id, None)
        usage = llm_response.usage_metadata
        if usage is not None:
            session = self._session(callback_context)
            record_usage(session, usage.prompt_token_count, usage.candidates_token_count)

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: Any, error: Exception
    ) -> Any:
        session = self._session(callback_context)
        came = self._came.get(callback_context.session.id)
        model = callback_context.get_invocation_context().agent.canonical_model
        while came is not None and recovers(session, error):
            llm_request.contents = self._fitted(callback_context, came)
            try:
                async for response in model.generate_content_async(llm_request):
                    if not response.partial:
                        return response
            except Exception as again:
                error = again
        return None

    def tool_output_cache(
        self, ref_id: str, tool_context: Any, offset: int = 0, limit: int = 0
    ) -> dict[str, str]:
        """Read lines of a stored tool output.

        Args:
            ref_id: The ref that the shortened output names.
            offset: The first line, counted from 0.
            limit: The number of lines; 0 for as many as fit.
        """
        given = {"ref_id": ref_id, "offset": offset, "limit": limit or None}
        return {"result": self._session(tool_context).retrieve(READ_TOOL, given).text}

    def tool_output_cache_grep(
        self, pattern: str, tool_context: Any, ref_id: str = "", regex: bool = False
    ) -> dict[str, str]:
        """Search stored tool outputs.

        Args:
            pattern: What to look for.
            ref_id: The ref of one output; all outputs are searched without it.
            regex: True if the pattern is a regular expression.
        """
        given = {"pattern": pattern, "ref_id": ref_id or None, "regex": regex}
        return {"result": self._session(tool_context).retrieve(GREP_TOOL, given).text}

    def _session(self, context: Any) -> Session:
        return self._sessions.get(context.session.id)

    def _fitted(self, context: Any, came: list[types.Content]) -> list[types.Content]:
        session = self._session(context)
        return or_unchanged(lambda: fitted(session, came), came)


def fitted(session: Session, came: list[types.Content]) -> list[types.Content]:
    """The contents to send."""
    rows = HostRows()
    for content in came:
        parts = content.parts or []
        if content.role == "model":
            rows.add(_model_row(content), (content, None))
            continue
        for part in parts:
            rows.add(_part_row(part), (content, part))
    sent: list[types.Content] = []
    parts_of: types.Content | None = None
    for row, place, is_changed in rows.sent(session.window_rows(rows.rows)):
        content, part = place or (None, types.Part(text=row_text(row)))
        if part is None:
            sent.append(content)
            parts_of = None
            continue
        if is_changed and part.function_response is not None:
            answer = part.function_response.model_copy(update={"response": {"result": row_text(row)}})
            part = part.model_copy(update={"function_response": answer})
        if content is not None and content is parts_of:
            sent[-1].parts.append(part)
        else:
            role = "model" if row["role"] == "assistant" else "user"
            sent.append(types.Content(role=content.role if content else role, parts=[part]))
        parts_of = content
    return sent


def _model_row(content: types.Content) -> dict[str, Any]:
    parts = content.parts or []
    calls = [p.function_call for p in parts if p.function_call is not None]
    text = "".join(p.text for p in parts if p.text and not p.thought)
    return call_row([(_id(call), call.name or "", call.args or {}) for call in calls], text)


def _part_row(part: types.Part) -> dict[str, Any]:
    answer = part.function_response
    if answer is None:
        return {"role": "user", "content": part.text or "(media)"}
    response = answer.response or {}
    texts = [value for value in response.values() if isinstance(value, str)]
    # A single text is shown as it is, so that its lines can be read.
    content = texts[0] if len(response) == 1 and texts else text_of(response)
    return output_row(_id(answer), content)


def _id(call: Any) -> str:
    return call.id or call.name or ""
