"""A scripted provider with a real window, for the tests of the adapters in all languages.

It speaks Chat Completions and Responses, refuses what providers refuse (calls without outputs,
outputs without calls, prompts over its window), and plays an agent that fetches many large
outputs, two at a time, and then reads one line of the largest back by its ref.

``python3 provider.py`` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROUNDS = 24
WINDOW = 20_000
NEEDLE = "needle-4711"
BYTES_PER_TOKEN = 4
REF = re.compile(r'tool_output_cache\(\{\\*"ref_id\\*":\\*"([a-z2-7]{16})')


def output(part: int) -> str:
    """The output of ``fetch(part)``: some KB, and 5 MB with the needle for the last one."""
    line = f"part {part}: all is well in this line of the log, nothing to see, go on"
    if part == 2 * ROUNDS - 1:
        lines = [f"{at} {line}" for at in range(71_000)]
        lines[40_000] = f"the line that is looked for: {NEEDLE}"
        return "\n".join(lines)
    return "\n".join(f"{at} {line}" for at in range((part % 5) * 120 + 10))


class Provider:
    """Plays one script for each model name."""

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.steps: dict[str, int] = {}
        self.overflows: dict[str, int] = {}
        self.largest: dict[str, int] = {}
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with provider._lock:
                    status, answer = provider.answer(request)
                self._send(status, answer, request.get("stream", False))

            def do_GET(self) -> None:
                name = self.path.rsplit("/", 1)[-1]
                figures = {"steps": provider.steps.get(name, 0),
                           "overflows": provider.overflows.get(name, 0)}
                self._send(200, figures, False)

            def _send(self, status: int, answer: Any, stream: bool) -> None:
                kind, body = "application/json", json.dumps(answer)
                if stream and status == 200:
                    kind, body = "text/event-stream", _events(answer)
                data = body.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()

    def answer(self, request: dict[str, Any]) -> tuple[int, Any]:
        """The status and the answer to a request."""
        model, is_chat = request["model"], "messages" in request
        rows = request["messages"] if is_chat else request["input"]
        text = json.dumps(rows)
        fault = chat_fault(rows) if is_chat else responses_fault(rows)
        if fault:
            return 400, _error(fault, "invalid_request")
        tokens = (len(text) + len(json.dumps(request.get("tools", [])))) // BYTES_PER_TOKEN
        if tokens > self.window:
            self.overflows[model] = self.overflows.get(model, 0) + 1
            return 400, _error(
                f"This model's maximum context length is {self.window} tokens. However, your "
                f"messages resulted in {tokens} tokens. Please reduce the length of the messages.",
                "context_length_exceeded",
            )
        self.largest[model] = max(self.largest.get(model, 0), tokens)
        step = self.steps.get(model, 0)
        self.steps[model] = step + 1
        said, calls = play(step, text)
        write = chat_answer if is_chat else responses_answer
        return 200, write(model, step, said, calls, tokens)


def play(step: int, text: str) -> tuple[str | None, list[tuple[str, Any]]]:
    """What the model says and calls at a step."""
    if step < ROUNDS:
        return None, [("fetch", {"part": 2 * step}), ("fetch", {"part": 2 * step + 1})]
    if step == ROUNDS:
        refs = REF.findall(text)
        if not refs:
            return "failed: there is no ref in the window", []
        return None, [("tool_output_cache_grep", {"ref_id": refs[-1], "pattern": "needle-"})]
    found = re.findall(r"looked for: (needle-[0-9]+)", text)
    return f"finished with {found[-1] if found else 'nothing'}", []


def chat_fault(rows: list[Any]) -> str | None:
    """What is wrong with the pairing of calls and outputs."""
    if not rows:
        return "[] is too short - 'messages'"
    open_calls: set[str] = set()
    for row in rows:
        if row["role"] == "tool":
            if row["tool_call_id"] not in open_calls:
                return "messages with role 'tool' must be a response to a preceding tool call"
            open_calls.remove(row["tool_call_id"])
        elif open_calls:
            return "an assistant message with 'tool_calls' must be followed by tool messages"
        open_calls |= {call["id"] for call in row.get("tool_calls") or ()}
    return "tool calls without outputs" if open_calls else None


def responses_fault(rows: list[Any]) -> str | None:
    """The same for Responses."""
    calls = [row["call_id"] for row in rows if row.get("type") == "function_call"]
    outputs = [row["call_id"] for row in rows if row.get("type") == "function_call_output"]
    if sorted(calls) != sorted(outputs):
        return "No tool output found for function call"
    return None


def chat_answer(model: str, step: int, said: str | None, calls: Any, tokens: int) -> Any:
    made = [
        {"id": f"call_{step}_{at}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": said}
    if made:
        message["tool_calls"] = made
    reason = "tool_calls" if made else "stop"
    return {
        "id": f"chatcmpl-{step}", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20},
    }


def responses_answer(model: str, step: int, said: str | None, calls: Any, tokens: int) -> Any:
    items: list[Any] = [
        {"type": "function_call", "id": f"fc_{step}_{at}", "call_id": f"call_{step}_{at}",
         "name": name, "arguments": json.dumps(arguments), "status": "completed"}
        for at, (name, arguments) in enumerate(calls)
    ]
    if said:
        content = [{"type": "output_text", "text": said, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{step}", "role": "assistant",
                      "status": "completed", "content": content})
    usage = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{step}", "object": "response", "created_at": 1, "model": model,
        "status": "completed", "output": items, "usage": usage, "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [],
    }


def _events(answer: Any) -> str:
    """A Chat answer as a stream."""
    choice = answer["choices"][0]
    delta = dict(choice["message"])
    for at, call in enumerate(delta.get("tool_calls", [])):
        call["index"] = at
    head = {"id": answer["id"], "object": "chat.completion.chunk", "created": 1,
            "model": answer["model"]}
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        head | {"choices": [], "usage": answer["usage"]},
    ]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _error(message: str, code: str) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None,
                      "code": code}}


if __name__ == "__main__":
    print(Provider().url, flush=True)
    sys.stdin.read()
