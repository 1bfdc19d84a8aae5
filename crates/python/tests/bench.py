"""One call at 5,000 messages: Trimtab against LangChain's own trimming, in one run.

Prints figures; nothing depends on them.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any, Callable

import trimtab
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

MESSAGES = 5_000
WINDOW = 100_000
TEXT = "all is well in this line of the log, nothing to see, go on. " * 6


def rows(count: int) -> list[Any]:
    made: list[Any] = []
    while len(made) < count:
        at = len(made)
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        made += [{"role": "user", "content": f"{at} {TEXT}"},
                 {"role": "assistant", "content": None, "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": f"c{at}", "content": f"{at} {TEXT}"},
                 {"role": "assistant", "content": f"{at} done"}]
    return made[:count]


def langchain_messages(made: list[Any]) -> list[Any]:
    def message(row: Any) -> Any:
        if row["role"] == "user":
            return HumanMessage(row["content"])
        if row["role"] == "tool":
            return ToolMessage(row["content"], tool_call_id=row["tool_call_id"])
        calls = [{"id": call["id"], "name": "read", "args": {}} for call in row.get("tool_calls") or ()]
        return AIMessage(row["content"] or "", tool_calls=calls)

    return [message(row) for row in made]


def median(work: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def main() -> None:
    made = rows(MESSAGES)
    session = trimtab.Session(window=WINDOW)
    # A session grows message by message, as in a real conversation.
    for count in range(500, MESSAGES, 500):
        session.window_bytes(json.dumps({"messages": made[:count]}).encode())
    body = json.dumps({"messages": made}).encode()
    session.window_bytes(body)
    steps = iter(range(1, 1000))

    def next_call() -> None:
        more = [{"role": "user", "content": f"more {at}"} for at in range(next(steps))]
        session.window_bytes(body[:-2] + b"," + json.dumps(more).encode()[1:-1] + b"]}")

    ours = median(next_call, 20)
    messages = langchain_messages(made)
    theirs = median(lambda: trim_messages(messages, max_tokens=WINDOW, strategy="last",
                                          token_counter=count_tokens_approximately), 5)
    print(f"one call at {MESSAGES} messages, {len(body) / 1e6:.1f} MB: trimtab {ours:.1f} ms, "
          f"trim_messages {theirs:.1f} ms, {theirs / ours:.1f} times")


if __name__ == "__main__":
    main()
