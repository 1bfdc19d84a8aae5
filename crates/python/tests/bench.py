"""One call at 5,000 messages: the package against the Rust library, and against LangChain's own
trimming, in one run.

    python bench.py WINDOWS

``WINDOWS`` is the example ``windows`` of trimtab-binding; build it and the wheel with optimisation:

    cargo build --release -p trimtab-binding --example windows
    ./package python

Prints figures; nothing depends on them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any, Callable

import trimtab
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

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


def grown(made: list[Any], calls: int) -> list[Any]:
    """The requests of a conversation that grows to these rows, and then by one row at each call."""
    more = [{"role": "user", "content": f"more {at}"} for at in range(calls)]
    steps = [made[:count] for count in range(500, len(made) + 1, 500)]
    return [{"messages": rows} for rows in steps + [made + more[:at] for at in range(1, calls + 1)]]


def library(program: str, requests: list[Any]) -> list[float]:
    """What the calls take in Rust."""
    options = json.dumps({"window": WINDOW})
    lines = "\n".join(json.dumps(request) for request in requests)
    run = subprocess.run([program, options], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [int(line.split(b" ", 1)[0]) / 1000 for line in run.stdout.splitlines()]


def main(program: str) -> None:
    requests = grown(rows(MESSAGES), CALLS)
    bytes_of = [json.dumps(request).encode() for request in requests]
    rust = statistics.median(library(program, requests)[-CALLS:])
    session = trimtab.Session(window=WINDOW)
    taken = [milliseconds(lambda body=body: session.window_bytes(body)) for body in bytes_of]
    in_bytes = statistics.median(taken[-CALLS:])
    session = trimtab.Session(window=WINDOW)
    taken = [milliseconds(lambda body=body: session.window(body)) for body in requests]
    in_objects = statistics.median(taken[-CALLS:])
    messages = langchain_messages(rows(MESSAGES))
    trimmed = lambda: trim_messages(messages, max_tokens=WINDOW, strategy="last",
                                    token_counter=count_tokens_approximately)
    theirs = statistics.median(milliseconds(trimmed) for _ in range(5))
    print(f"one call at {MESSAGES} messages, {len(bytes_of[-1]) / 1e6:.1f} MB, in ms: "
          f"Rust {rust:.1f}; Python {in_bytes:.1f} with bytes ({in_bytes / rust:.2f} times), "
          f"{in_objects:.1f} with objects; trim_messages {theirs:.1f}, "
          f"{theirs / in_bytes:.0f} and {theirs / in_objects:.0f} times as long")


if __name__ == "__main__":
    main(sys.argv[1])
