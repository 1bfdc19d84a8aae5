"""The scripted session of the adapters with LangChain's own ways to make messages fit.

    python compare.py [PAGE]

Prints, for each way, how far the session came. Fails if ours did not come to the end, or if the page
tells another number of rounds.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from adapters import MAX_OUTPUT, TASK
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, wrap_model_call
from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openai import ChatOpenAI
from provider import NEEDLE, ROUNDS, WINDOW, Provider, output
from trimtab.langchain import TrimtabMiddleware


@wrap_model_call
def trimmed(request: Any, handler: Any) -> Any:
    """``trim_messages``, as its documentation shows it."""
    kept = trim_messages(request.messages, max_tokens=WINDOW - 2_000, strategy="last",
                         token_counter=count_tokens_approximately, start_on=("human", "ai"),
                         include_system=True, allow_partial=False)
    return handler(request.override(messages=kept))


FOUND = "read the line back"
WAYS: dict[str, list[Any]] = {
    "none": [],
    "trim_messages": [trimmed],
    "ContextEditingMiddleware": [
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=WINDOW // 2, keep=3)]),
    ],
    "TrimtabMiddleware": [TrimtabMiddleware(window=WINDOW, max_output=MAX_OUTPUT)],
}


def fetch(part: int) -> str:
    """Fetch a part."""
    return output(part)


def told_rounds(page: str, name: str) -> int | None:
    """The rounds that a page tells, in the row of a middleware."""
    row = re.search(rf"^\| `?{name}\b[^|]*\| ([0-9]+) \|", page, re.MULTILINE)
    return int(row[1]) if row else None


def main(path: str | None = None) -> int:
    page = Path(path).read_text() if path else None
    failed = 1
    wrong = 0
    for name, middleware in WAYS.items():
        provider = Provider()
        chat = ChatOpenAI(model=name, base_url=provider.url, api_key="none", max_retries=0)
        agent = create_agent(chat, [fetch], middleware=middleware)
        try:
            state = agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 300})
            end = FOUND if NEEDLE in state["messages"][-1].text else "did not find the line"
        except Exception as error:
            end = f"{type(error).__name__}: {str(error)[:90]}"
        rounds = min(provider.steps.get(name, 0), ROUNDS)
        print(f"{name}: {rounds} of {ROUNDS} rounds, {provider.overflows.get(name, 0)} refused; {end}")
        provider.close()
        told = told_rounds(page, name) if page else rounds
        if told != rounds:
            print(f"{path} tells {told} rounds for {name}", file=sys.stderr)
            wrong = 1
        if name == "TrimtabMiddleware" and rounds == ROUNDS and end == FOUND:
            failed = 0
    return failed or wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
