"""Trimtab for the OpenAI Agents SDK.

    from agents import Agent, RunConfig, Runner
    from trimtab.openai_agents import Trimtab

    context = Trimtab(window=128_000)
    agent = Agent(name="coder", tools=[*tools, *context.tools], model=context.model(model))
    await Runner.run(agent, "...")

``context.model`` wraps a model, and also recovers from overflows. Without it, pass
``RunConfig(call_model_input_filter=context.input_filter)``.
"""

from __future__ import annotations

from typing import Any, AsyncIterator

from agents import FunctionTool, function_tool
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData

from ._hosts import or_unchanged, recovers, tool_functions
from .session import Session


class Trimtab:
    """One conversation."""

    def __init__(self, name: str = "openai-agents", **options: Any) -> None:
        self.session = Session(name, dialect="responses", **options)
        functions = tool_functions(lambda: self.session)
        self.tools: list[FunctionTool] = [function_tool(f) for f in functions]

    def model(self, model: Model) -> Model:
        """A model that is called with a window that fits."""
        return TrimtabModel(self, model)

    def input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """For ``RunConfig.call_model_input_filter``."""
        given = data.model_data
        items = self.items(given.instructions, given.input)
        return ModelInputData(input=items, instructions=given.instructions)

    def items(self, instructions: str | None, items: Any) -> Any:
        """The items to send instead of these."""

        def fitted() -> Any:
            request: dict[str, Any] = {"input": items}
            if instructions:
                request["instructions"] = instructions
            return self.session.window(request)["input"]

        return or_unchanged(fitted, items)


class TrimtabModel(Model):
    """Calls another model with a window that fits."""

    def __init__(self, context: Trimtab, inner: Model) -> None:
        self._context, self._inner = context, inner

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        while True:
            items = self._context.items(system_instructions, input)
            try:
                return await self._inner.get_response(system_instructions, items, *more, **named)
            except Exception as error:
                if not recovers(self._context.session, error):
                    raise

    async def stream_response(
        self, system_instructions: Any, input: Any, *more: Any, **named: Any
    ) -> AsyncIterator[Any]:
        while True:
            items = self._context.items(system_instructions, input)
            has_begun = False
            try:
                events = self._inner.stream_response(system_instructions, items, *more, **named)
                async for event in events:
                    has_begun = True
                    yield event
                return
            except Exception as error:
                if has_begun or not recovers(self._context.session, error):
                    raise
