"""Trimtab for the OpenAI Agents SDK.

    from agents import Agent, Runner
    from trimtab.openai_agents import Trimtab

    context = Trimtab(window=128_000)
    agent = Agent(name="coder", tools=[*tools, *context.tools], model=context.model(model))
    await Runner.run(agent, "...")

``context.model`` wraps a model: every call fits, and an overflow is recovered from. Two other ways
do less. ``RunConfig(call_model_input_filter=context.input_filter)`` sees each request once: after an
overflow, the run ends with an error; if ``context.recover(error)`` is true, run again with
``context.last_input``.
``TrimtabSession`` is a session of the SDK: it fits what earlier runs left, but not what one run adds.
"""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Sequence

from agents import FunctionTool, SQLiteSession, function_tool
from agents.memory import Session as AgentsSession
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData

from ._hosts import or_unchanged, record_usage, recovers, tool_functions
from .session import Session


class Trimtab:
    """One conversation."""

    def __init__(self, name: str = "openai-agents", **options: Any) -> None:
        self.session = Session(name, dialect="responses", **options)
        functions = tool_functions(lambda: self.session)
        self.tools: list[FunctionTool] = [function_tool(f) for f in functions]
        self.last_input: list[Any] = []
        """The items of the last request of ``input_filter``, as the SDK gave them."""

    def model(self, model: Model) -> Model:
        """A model that is called with a window that fits."""
        return TrimtabModel(self, model)

    def input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """For ``RunConfig.call_model_input_filter``."""
        given = data.model_data
        self.last_input = given.input
        items = self.items(given.instructions, given.input, data.agent.tools)
        return ModelInputData(input=items, instructions=given.instructions)

    def recover(self, error: Exception) -> bool:
        """True if a run failed for the size of its input, and the next one will be smaller."""
        return recovers(self.session, error)

    def items(self, instructions: str | None, items: Any, tools: Sequence[Any] = ()) -> Any:
        """The items to send instead of these."""

        def fitted() -> Any:
            request: dict[str, Any] = {"input": items}
            if instructions:
                request["instructions"] = instructions
            defined = [_definition(tool) for tool in tools if isinstance(tool, FunctionTool)]
            if defined:
                request["tools"] = defined
            return self.session.window(request)["input"]

        return or_unchanged(fitted, items)


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.params_json_schema}


class TrimtabModel(Model):
    """Calls another model with a window that fits."""

    def __init__(self, context: Trimtab, inner: Model) -> None:
        self._context, self._inner = context, inner

    async def _items(self, instructions: Any, items: Any, tools: Any) -> Any:
        return await asyncio.to_thread(self._context.items, instructions, items, tools)

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any,
        *more: Any, **named: Any,
    ) -> Any:
        while True:
            items = await self._items(system_instructions, input, tools)
            try:
                answer = await self._inner.get_response(
                    system_instructions, items, model_settings, tools, *more, **named
                )
                usage = answer.usage
                record_usage(self._context.session, usage.input_tokens, usage.output_tokens)
                return answer
            except Exception as error:
                if not recovers(self._context.session, error):
                    raise

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any,
        *more: Any, **named: Any,
    ) -> AsyncIterator[Any]:
        while True:
            items = await self._items(system_instructions, input, tools)
            has_begun = False
            try:
                events = self._inner.stream_response(
                    system_instructions, items, model_settings, tools, *more, **named
                )
                async for event in events:
                    has_begun = True
                    yield event
                return
            except Exception as error:
                if has_begun or not recovers(self._context.session, error):
                    raise


class TrimtabSession:
    """A session of the SDK that gives each run a window of what the runs before it left.

        session = TrimtabSession("chat-1", window=128_000, inner=SQLiteSession("chat-1", "chats.db"))
        agent = Agent(name="coder", tools=[*tools, *session.tools])
        await Runner.run(agent, "...", session=session)

    ``inner`` keeps all items as they came; without it, memory does. If a run ends with an error
    for which ``recover`` is true, run it again: the window is smaller then.
    """

    def __init__(self, name: str, *, inner: AgentsSession | None = None, **options: Any) -> None:
        self.session_id = name
        self.session_settings = None
        self._inner = inner or SQLiteSession(name)
        self._context = Trimtab(name, **options)
        self.tools = self._context.tools

    def recover(self, error: Exception) -> bool:
        """True if a run failed for the size of its input, and the next one will be smaller."""
        return self._context.recover(error)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items to send; with a limit, the newest items as they came."""
        items = await self._inner.get_items(limit)
        if limit is not None or not items:
            return items
        return await asyncio.to_thread(self._context.items, None, items)

    async def add_items(self, items: list[Any]) -> None:
        """Appends items."""
        await self._inner.add_items(items)

    async def pop_item(self) -> Any:
        """Removes the newest item."""
        return await self._inner.pop_item()

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._inner.clear_session()
