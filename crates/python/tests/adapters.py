"""Every adapter with its real framework, against the scripted provider.

Each framework runs the same session: two dozen rounds of two parallel calls with outputs up to
5 MB, a provider with a window of 20,000 tokens, and one line of the largest output read back by
its ref. Without the adapter the same session must fail. In a third run, the adapter is told a
window that is too large, so that the provider refuses a request and the adapter recovers.

``python adapters.py [NAME...]`` runs all adapters but LiteLLM's, or those that are named.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import traceback
import warnings
from typing import Any, Callable

from provider import NEEDLE, WINDOW, Provider, output

TASK = "fetch all parts, then find the needle"
TOO_LARGE_A_WINDOW = 2 * WINDOW
MAX_OUTPUT = 500

os.environ["OPENAI_API_KEY"] = "none"
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"


def options(window: int) -> dict[str, Any]:
    return {"window": window, "max_output": MAX_OUTPUT}


def langchain(url: str, model: str, window: int | None) -> str:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from trimtab.langchain import TrimtabMiddleware

    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    chat = ChatOpenAI(model=model, base_url=url, max_retries=0)
    middleware = [TrimtabMiddleware(**options(window))] if window else []
    agent = create_agent(chat, [fetch], middleware=middleware)
    messages = {"messages": [{"role": "user", "content": TASK}]}
    state = agent.invoke(messages, {"recursion_limit": 200})
    return state["messages"][-1].text


def openai_agents(url: str, model: str, window: int | None) -> str:
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool
    from openai import AsyncOpenAI
    from trimtab.openai_agents import Trimtab

    @function_tool
    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    client = AsyncOpenAI(base_url=url, max_retries=0)
    answers: Any = OpenAIResponsesModel(model=model, openai_client=client)
    tools: list[Any] = [fetch]
    if window:
        context = Trimtab(**options(window))
        tools, answers = [*tools, *context.tools], context.model(answers)
    agent = Agent(name="fetcher", tools=tools, model=answers)
    return asyncio.run(Runner.run(agent, TASK, max_turns=100)).final_output


def openai_agents_filter(url: str, model: str, window: int | None) -> str:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
    from openai import AsyncOpenAI
    from trimtab.openai_agents import Trimtab

    @function_tool
    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    client = AsyncOpenAI(base_url=url, max_retries=0)
    answers = OpenAIChatCompletionsModel(model=model, openai_client=client)
    context = Trimtab(**options(window)) if window else None
    agent = Agent(name="fetcher", tools=[fetch, *(context.tools if context else [])], model=answers)
    config = RunConfig(call_model_input_filter=context.input_filter if context else None)

    async def run() -> str:
        given: Any = TASK
        while True:
            try:
                return (await Runner.run(agent, given, max_turns=100, run_config=config)).final_output
            except Exception as error:
                if not (context and context.recover(error)):
                    raise
                given = context.last_input

    return asyncio.run(run())


def openai_agents_session(url: str, model: str, window: int | None) -> str:
    from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool
    from openai import AsyncOpenAI
    from trimtab.openai_agents import TrimtabSession

    @function_tool
    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    client = AsyncOpenAI(base_url=url, max_retries=0)
    answers = OpenAIResponsesModel(model=model, openai_client=client)
    session: Any = TrimtabSession("test", **options(window)) if window else SQLiteSession("test")
    tools = [fetch, *(session.tools if window else [])]
    # A run ends after the tools of one answer, so that the session gives the items of every call.
    agent = Agent(name="fetcher", tools=tools, model=answers, tool_use_behavior="stop_on_first_tool")

    async def run() -> str:
        text = TASK
        while True:
            try:
                result = await Runner.run(agent, text, session=session)
            except Exception as error:
                if not (window and session.recover(error)):
                    raise
                continue
            if result.new_items[-1].type == "message_output_item":
                return result.final_output
            text = "go on"

    return asyncio.run(run())


def pydantic_ai(url: str, model: str, window: int | None) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from trimtab.pydantic_ai import Trimtab

    capabilities = [Trimtab(**options(window))] if window else []
    chat = OpenAIChatModel(model, provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(chat, capabilities=capabilities)

    @agent.tool_plain
    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    return agent.run_sync(TASK).output


def strands(url: str, model: str, window: int | None) -> str:
    from strands import Agent, tool
    from strands.agent.conversation_manager import NullConversationManager
    from strands.models.openai import OpenAIModel
    from trimtab.strands import Trimtab

    @tool
    def fetch(part: int) -> str:
        """Fetch a part."""
        return output(part)

    chat = OpenAIModel(client_args={"base_url": url, "max_retries": 0}, model_id=model)
    context = Trimtab(**options(window)) if window else None
    tools = [fetch, *(context.tools if context else [])]
    manager = NullConversationManager()
    agent = Agent(chat, tools=tools, conversation_manager=manager, callback_handler=None)
    if context:
        context.attach(agent)
    return str(agent(TASK)).strip()


def google_adk(url: str, model: str, window: int | None) -> str:
    from adk_model import ChatModel
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from trimtab.google_adk import TrimtabPlugin

    def fetch(part: int) -> dict[str, str]:
        """Fetch a part."""
        return {"result": output(part)}

    plugin = TrimtabPlugin(**options(window)) if window else None
    tools = [fetch, *(plugin.tools if plugin else [])]
    agent = LlmAgent(name="fetcher", model=ChatModel(model=model, url=url), tools=tools)
    runner = InMemoryRunner(agent=agent, app_name="test", plugins=[plugin] if plugin else [])

    async def run() -> str:
        session = await runner.session_service.create_session(app_name="test", user_id="u")
        task = types.Content(role="user", parts=[types.Part(text=TASK)])
        text = ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=task):
            for part in (event.content.parts if event.content else None) or []:
                text = part.text or text
        return text

    return asyncio.run(run())


def litellm(url: str, model: str, window: int | None) -> str:
    import json

    import litellm as api
    import trimtab
    from trimtab.litellm import completion

    api.suppress_debug_info = True
    session = trimtab.Session(**options(window or WINDOW))
    parameters = {"type": "object", "properties": {"part": {"type": "integer"}}}
    fetch = {"type": "function", "function": {"name": "fetch", "parameters": parameters}}
    messages: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        request = {"model": f"openai/{model}", "api_base": url, "messages": messages,
                   "num_retries": 0, "tools": [fetch, *(session.tools if window else [])]}
        answer = completion(session, **request) if window else api.completion(**request)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            name, arguments = call.function.name, call.function.arguments
            text = (output(json.loads(arguments)["part"]) if name == "fetch"
                    else session.retrieve(name, arguments).text)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


ADAPTERS: dict[str, tuple[str, Callable[[str, str, int | None], str]]] = {
    "langchain": ("langchain", langchain),
    "openai_agents": ("agents", openai_agents),
    "openai_agents_filter": ("agents", openai_agents_filter),
    "openai_agents_session": ("agents", openai_agents_session),
    "pydantic_ai": ("pydantic_ai", pydantic_ai),
    "google_adk": ("google.adk", google_adk),
    "strands": ("strands", strands),
    "litellm": ("litellm", litellm),
}
# It needs other versions than the rest, so it is not in the same environment.
ONLY_IF_NAMED = {"litellm"}


def check(name: str, run: Callable[[str, str, int | None], str]) -> None:
    """Runs one adapter; raises if a rule does not hold."""
    provider = Provider()
    try:
        fails = False
        try:
            fails = NEEDLE not in run(provider.url, f"{name}-plain", None)
        except Exception:
            fails = True
        assert fails, "the session ends well without the adapter"
        assert provider.overflows.get(f"{name}-plain"), "it failed for another reason"
        fitting = run(provider.url, f"{name}-fits", WINDOW)
        assert NEEDLE in fitting, fitting
        assert provider.overflows.get(f"{name}-fits", 0) == 0, "the provider refused a window"
        recovered = run(provider.url, f"{name}-recovers", TOO_LARGE_A_WINDOW)
        assert NEEDLE in recovered, recovered
        assert provider.overflows.get(f"{name}-recovers"), "there was nothing to recover from"
        print(f"{name}: ok, largest window {provider.largest[f'{name}-fits']} of {WINDOW} tokens")
    finally:
        provider.close()


def main(names: list[str]) -> int:
    warnings.filterwarnings("error", message="trimtab: ")
    # Frameworks report every refused request, and some every step.
    logging.disable(logging.CRITICAL)
    failed = 0
    for name, (module, run) in ADAPTERS.items():
        if name not in (names or ADAPTERS.keys() - ONLY_IF_NAMED):
            continue
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            print(f"{name}: SKIPPED, {module} is not installed")
            continue
        try:
            check(name, run)
        except Exception:
            failed += 1
            print(f"{name}: FAILED")
            traceback.print_exc(limit=-4)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
