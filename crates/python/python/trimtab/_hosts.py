"""What the adapters share: rows of a host's messages, and the way back."""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict
from threading import Lock
from typing import Any, Callable, Iterable, Iterator, NamedTuple, TypeVar

from ._native import TrimtabError
from .session import GREP_TOOL, READ_TOOL, Session, WindowRows

Result = TypeVar("Result")

MOST_SESSIONS = 1024
"""An adapter keeps this many conversations open, the least recently used goes first."""


class Sessions:
    """One session for each conversation of a host."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._lock = Lock()

    def get(self, conversation: str | None = None) -> Session:
        """The session of a conversation, opened on first use."""
        name = f"{self._name}/{conversation}" if conversation else self._name
        with self._lock:
            session = self._open.pop(name, None) or Session(name, **self._options)
            self._open[name] = session
            if len(self._open) > MOST_SESSIONS:
                self._open.popitem(last=False)
            return session


class SentRow(NamedTuple):
    """A row of a window."""

    row: dict[str, Any]
    place: Any
    """Where the host keeps what it is made of; None for a row of ours."""
    is_changed: bool


class HostRows:
    """The messages of a host as Chat rows, and the place that each one comes from."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._places: list[Any] = []

    def add(self, row: dict[str, Any], place: Any) -> None:
        """Adds a row. ``place`` is whatever finds the original again."""
        self.rows.append(row)
        self._places.append(place)

    def extend(self, rows: Iterable[dict[str, Any]], places: Iterable[Any]) -> None:
        """Adds many rows."""
        self.rows.extend(rows)
        self._places.extend(places)

    def sent(self, window: WindowRows) -> Iterator[SentRow]:
        """The rows of a window with the places that they come from."""
        behind = -1
        for row, source in zip(window.rows, window.sources):
            is_changed = source is None
            if source is None:
                source = self._find(row, behind + 1)
            if source is None:
                yield SentRow(row, None, True)
            else:
                behind = source
                yield SentRow(row, self._places[source], is_changed)

    def _find(self, row: dict[str, Any], start: int) -> int | None:
        """The first row from ``start`` on that makes or answers one of the calls of ``row``."""
        wanted = _keys(row)
        if not wanted:
            return None
        places = range(start, len(self.rows))
        return next((at for at in places if not wanted.isdisjoint(_keys(self.rows[at]))), None)


def _keys(row: dict[str, Any]) -> set[tuple[str, str]]:
    """The calls that a row makes or answers."""
    if row["role"] == "tool":
        return {("output", row.get("tool_call_id", ""))}
    return {("call", call["id"]) for call in row.get("tool_calls") or ()}


def call_row(calls: list[tuple[str, str, Any]], content: Any) -> dict[str, Any]:
    """An assistant row. Each call is its id, its tool and its arguments."""
    row: dict[str, Any] = {"role": "assistant", "content": content or None}
    if calls:
        row["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text_of(arguments)}}
            for id, name, arguments in calls
        ]
    return row


def output_row(call_id: str, content: Any) -> dict[str, Any]:
    """A tool row."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# Made once: ``json.dumps`` with arguments makes one for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def text_of(value: Any) -> str:
    """A value as text: JSON unless it is a text already."""
    return value if isinstance(value, str) else _ENCODER.encode(value)


def row_text(row: dict[str, Any]) -> str:
    """The text of a row of ours."""
    content = row.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))


def or_unchanged(work: Callable[[], Result], unchanged: Result) -> Result:
    """The result of ``work``; if Trimtab itself fails, what there was, with a warning."""
    try:
        return work()
    except (TrimtabError, ValueError, TypeError, KeyError) as error:
        warnings.warn(f"trimtab: the request is sent unchanged: {error}", stacklevel=3)
        return unchanged


def recovers(session: Session, error: Exception) -> bool:
    """True if the request was refused for its size, and a smaller window was made."""
    try:
        return session.recover(error)
    except TrimtabError:
        return False


def record_usage(session: Session, prompt: Any, answer: Any) -> None:
    """Tells the session what the provider counted, so that it learns what it cannot see: the
    instructions and tools of some hosts, and how the provider counts."""
    if not isinstance(prompt, int) or prompt <= 0:
        return
    answered = answer if isinstance(answer, int) else 0
    # Chat Completions and Responses name the same figures differently.
    usage = {"prompt_tokens": prompt, "completion_tokens": answered,
             "input_tokens": prompt, "output_tokens": answered}
    try:
        session.record(usage)
    except (TrimtabError, ValueError) as error:
        warnings.warn(f"trimtab: the usage is not recorded: {error}", stacklevel=2)


def tool_functions(find: Callable[[], Session]) -> list[Callable[..., str]]:
    """The retrieval tools as functions, for hosts that make tools of functions."""

    def tool_output_cache(ref_id: str, offset: int = 0, limit: int | None = None) -> str:
        given = {"ref_id": ref_id, "offset": offset, "limit": limit}
        return find().retrieve(READ_TOOL, given).text

    def tool_output_cache_grep(
        pattern: str, ref_id: str | None = None, regex: bool = False, before: int = 0, after: int = 0
    ) -> str:
        given = {"pattern": pattern, "ref_id": ref_id, "regex": regex, "before": before, "after": after}
        return find().retrieve(GREP_TOOL, given).text

    tool_output_cache.__doc__ = (
        "Read lines of a stored tool output.\n\n"
        "Args:\n"
        "    ref_id: The ref that the shortened output names.\n"
        "    offset: The first line, counted from 0.\n"
        "    limit: The number of lines."
    )
    tool_output_cache_grep.__doc__ = (
        "Search stored tool outputs.\n\n"
        "Args:\n"
        "    pattern: What to look for.\n"
        "    ref_id: The ref of one output; all outputs are searched without it.\n"
        "    regex: True if the pattern is a regular expression.\n"
        "    before: Lines to show before each match.\n"
        "    after: Lines to show after each match."
    )
    return [tool_output_cache, tool_output_cache_grep]
