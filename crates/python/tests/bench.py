"""One call at 5,000 messages: the package against the Rust library, and against LangChain's own
trimming, in one run.

    python bench.py WINDOWS

``WINDOWS`` is the example ``windows`` of trimtab-binding; build it and the wheel with optimisation:

    cargo build --release -p trimtab-binding --example windows
    ./package python

Prints figures; nothing depends on them.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections import defaultdict
from typing import Any, Callable

import trimtab
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from trimtab.langchain import fitted

MESSAGES = 5_000
WINDOW = 100_000
CALLS = 20
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


def milliseconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def grown(made: list[Any]) -> list[list[Any]]:
    """The rows of a conversation that grows to these, and then by one row at each call."""
    more = [{"role": "user", "content": f"more {at}"} for at in range(CALLS)]
    steps = [made[:count] for count in range(500, len(made) + 1, 500)]
    return steps + [made + more[:at] for at in range(1, CALLS + 1)]


class Library:
    """The same calls in Rust."""

    def __init__(self, program: str) -> None:
        options = json.dumps({"window": WINDOW})
        self._run = subprocess.Popen([program, options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def milliseconds(self, request: bytes) -> float:
        self._run.stdin.write(request + b"\n")
        self._run.stdin.flush()
        return int(self._run.stdout.readline().split(b" ", 1)[0]) / 1000


def trimmed(messages: list[Any]) -> list[Any]:
    return trim_messages(messages, max_tokens=WINDOW, strategy="last",
                         token_counter=count_tokens_approximately)


def main(program: str) -> None:
    library, session, bytes_session, adapted = Library(program), *(trimtab.Session(window=WINDOW) for _ in range(3))
    taken: dict[str, list[float]] = defaultdict(list)
    # As timeit does: collections would count for whoever allocates next.
    gc.disable()
    steps = grown(rows(MESSAGES))
    # An agent keeps its messages, and adds to them.
    hosted_messages = langchain_messages(steps[-1])
    # All in turn at each step, so that other work on the machine slows all of them.
    for step in steps:
        encoded = json.dumps({"messages": step}).encode()
        messages = hosted_messages[: len(step)]
        hosted = ModelRequest(model=None, messages=messages)
        taken["Rust"].append(library.milliseconds(encoded))
        taken["trimtab, bytes"].append(milliseconds(lambda: bytes_session.window_bytes(encoded)))
        taken["trimtab, objects"].append(milliseconds(lambda: session.window({"messages": step})))
        taken["trimtab.langchain"].append(milliseconds(lambda: fitted(adapted, hosted)))
        taken["trim_messages"].append(milliseconds(lambda: trimmed(messages)))
    best = {name: min(times[-CALLS:]) for name, times in taken.items()}
    print(f"one call at {MESSAGES} messages, {len(encoded) / 1e6:.1f} MB, the fastest of {CALLS}")
    for name, time_taken in best.items():
        print(f"{name:18} {time_taken:6.2f} ms, {time_taken / best['Rust']:5.2f} times Rust; "
              f"trim_messages takes {best['trim_messages'] / time_taken:5.1f} times as long")


if __name__ == "__main__":
    main(sys.argv[1])
