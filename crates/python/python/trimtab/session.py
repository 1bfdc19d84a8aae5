"""A conversation, and the window of it that is sent to the model."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Literal, Mapping, NamedTuple, Sequence, TypeVar

from ._encoded import EncodedRequests, as_json
from ._native import NativeSession

Dialect = Literal["chat", "responses", "messages"]
Row = TypeVar("Row")

READ_TOOL = "tool_output_cache"
GREP_TOOL = "tool_output_cache_grep"


class RetrievalAnswer(NamedTuple):
    """The answer to a call of a retrieval tool."""

    text: str
    is_error: bool


class ShownOutput(NamedTuple):
    """What a model sees of one output."""

    text: str
    ref: str
    shortened: bool


@dataclass(frozen=True)
class WindowRows:
    """The rows to send."""

    rows: list[Any]
    """The rows: those of the request where they are unchanged, others as JSON values."""
    sources: list[int | None]
    """For each row, the row of the request that it is; None if it was changed or added."""
    tokens: int
    max_output: int | None
    misfit: str | None
    """Why the window does not fit, if it does not."""


class Session:
    """A conversation of an agent. It may be used from several threads.

    ``store`` is the folder of the store; without it, everything stays in memory.
    ``settings`` are settings by name, as ``trimtab config show`` lists them.
    """

    def __init__(
        self,
        name: str = "default",
        *,
        dialect: Dialect = "chat",
        preset: str | None = None,
        store: str | os.PathLike[str] | None = None,
        model: str | None = None,
        window: int | None = None,
        max_output: int | None = None,
        retrieval: bool = True,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        options: dict[str, Any] = {"session": name, "dialect": dialect, "retrieval": retrieval}
        given = {"preset": preset, "model": model, "window": window, "max_output": max_output}
        options |= {key: value for key, value in given.items() if value is not None}
        if store is not None:
            options["store"] = os.fspath(store)
        if settings:
            options["settings"] = dict(settings)
        self.dialect = dialect
        self._list = "input" if dialect == "responses" else "messages"
        self._native = NativeSession(as_json(options))
        self._requests = EncodedRequests(self._list)
        self._host_memory: Any = None
        """What an adapter remembers between two calls."""

    def window(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request to send instead of ``request``, which has the whole conversation."""
        return json.loads(self._native.window(self._requests.encode(request)).body)

    async def awindow(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Like ``window``, in a thread of its own."""
        return await asyncio.to_thread(self.window, request)

    def window_bytes(self, request: bytes) -> bytes:
        """Like ``window``, for requests as JSON bytes."""
        return self._native.window(request).body

    def window_rows(
        self, rows: Sequence[Any], tools: Sequence[Any] | None = None
    ) -> WindowRows:
        """The rows to send instead of ``rows``, and which of them are unchanged."""
        return self._window_rows(list(rows), tools, are_kept=False)

    def _window_rows(
        self, rows: list[Any], tools: Sequence[Any] | None, *, are_kept: bool
    ) -> WindowRows:
        """``are_kept`` promises that nobody changes the rows afterwards."""
        request: dict[str, Any] = {self._list: rows}
        if tools is not None:
            request["tools"] = tools
        made = self._native.window(self._requests.encode(request, are_kept=are_kept))
        changed, sources = iter(json.loads(made.changed)), made.sources
        sent = [next(changed) if at is None else rows[at] for at in sources]
        return WindowRows(sent, sources, made.tokens, made.max_output, made.misfit)

    def check(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The request for a summary, if it is time for one; ``answer`` takes the summary.

        Without this, ``window`` makes summaries from excerpts.
        """
        return _value(self._native.check(self._requests.encode(request)))

    def compact(self, instructions: str = "") -> dict[str, Any] | None:
        """Compacts now: the request for the summary, or None if there is nothing to replace."""
        return _value(self._native.compact(instructions))

    def answer(self, text: str | None) -> dict[str, Any] | None:
        """Takes a summary, and returns the next request if one summary takes several.

        None makes a summary from excerpts.
        """
        return _value(self._native.answer(text))

    def compact_with(self, summarise: Callable[[dict[str, Any]], str], instructions: str = "") -> bool:
        """Compacts now with a function that asks a model; False if there is nothing to replace."""
        request = self.compact(instructions)
        found = request is not None
        while request is not None:
            request = self.answer(summarise(request))
        return found

    def admit(self, rows: Sequence[Any]) -> int:
        """Appends rows that came since the last request; returns the number of messages."""
        return self._native.admit(as_json(rows))

    def show_output(self, tool: str, call_id: str, text: str) -> ShownOutput:
        """Stores one output and returns what the model should see of it."""
        return ShownOutput(*self._native.show_output(tool, call_id, text))

    def recover(self, error: Any, status: int | None = None) -> bool:
        """Makes the window smaller after the provider refused it.

        ``error`` is the exception of an SDK, or the body of the answer.
        True if the window should be asked for again and sent.
        """
        found, body = error_of(error)
        return self._native.recover(found if status is None else status, body)

    def undo(self) -> bool:
        """Takes the newest plan back; False if there is none."""
        return self._native.undo()

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The definitions of the two retrieval tools, in the session's dialect."""
        return json.loads(self._native.retrieval_tools())

    def retrieve(self, tool: str, arguments: str | Mapping[str, Any]) -> RetrievalAnswer:
        """Answers a call of one of the retrieval tools."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return RetrievalAnswer(*self._native.retrieve(tool, text))

    def record(self, usage: Any) -> None:
        """Takes the usage that the provider reported for the last window."""
        if hasattr(usage, "model_dump"):
            usage = usage.model_dump()
        self._native.record(as_json(usage))

    def usage(self) -> dict[str, Any]:
        """What was done so far: messages and tokens before and after."""
        return json.loads(self._native.usage())


def error_of(error: Any) -> tuple[int, bytes]:
    """The status and the body of an error, as far as an exception tells."""
    if isinstance(error, (bytes, str)):
        return 400, error.encode() if isinstance(error, str) else error
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    status = status if isinstance(status, int) and 100 <= status <= 999 else 400
    body = getattr(error, "body", None)
    if body is not None and not isinstance(body, (str, bytes)):
        # SDKs take the error out of its envelope.
        body = json.dumps(body if "error" in body else {"error": body}, default=str)
    text = body or str(error)
    return status, text.encode() if isinstance(text, str) else text


def merged(window: WindowRows, own: Sequence[Row], make: Callable[[Any], Row]) -> list[Row]:
    """The rows of a window as objects of a host: its own where they are unchanged."""
    pairs = zip(window.rows, window.sources)
    return [make(row) if at is None else own[at] for row, at in pairs]


def _value(request: bytes | None) -> dict[str, Any] | None:
    return None if request is None else json.loads(request)
