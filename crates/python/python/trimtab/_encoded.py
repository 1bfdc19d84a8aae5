"""Requests as JSON, encoded as far as they are new."""

from __future__ import annotations

import json
from threading import Lock
from typing import Any, Mapping


class EncodedRequests:
    """The requests of a conversation, which grows at its end: only new rows are encoded."""

    def __init__(self, list_field: str) -> None:
        self._field = list_field
        self._lock = Lock()
        # The rows of the last request. They are copies where a program may change its own.
        self._rows: list[Any] = []
        # Its JSON, and where in that its rows begin, each with the comma or bracket before it.
        self._json = b""
        self._starts: list[int] = [0]

    def encode(self, request: Mapping[str, Any], *, are_kept: bool = False) -> bytes:
        """The request as JSON. ``are_kept`` promises that nobody changes its rows afterwards."""
        rows = request.get(self._field)
        if not isinstance(rows, list) or not rows:
            return as_json(request)
        names = list(request)
        at = names.index(self._field)
        before = as_json({name: request[name] for name in names[:at]})
        after = as_json({name: request[name] for name in names[at + 1 :]})
        head = before[:-1] + (b"," if at else b"") + as_json(self._field) + b":"
        tail = b"]" + (b"," if names[at + 1 :] else b"") + after[1:]
        with self._lock:
            return self._encode(head, rows, tail, are_kept)

    def _encode(self, head: bytes, rows: list[Any], tail: bytes, are_kept: bool) -> bytes:
        known = self._count_known(rows)
        new = [(b"," if at else b"[") + as_json(row) for at, row in enumerate(rows[known:], known)]
        first, end = self._starts[0], self._starts[known]
        # One copy of the known rows, because they are large.
        encoded = b"".join([head, memoryview(self._json)[first:end], *new, tail])
        starts = self._starts[: known + 1]
        for row in new:
            starts.append(starts[-1] + len(row))
        moved = len(head) - first
        self._starts = [start + moved for start in starts] if moved else starts
        self._rows[known:] = rows[known:] if are_kept else map(_copy, rows[known:])
        self._json = encoded
        return encoded

    def _count_known(self, rows: list[Any]) -> int:
        """How many rows at the beginning equal those of the last request."""
        count = min(len(rows), len(self._rows))
        # One comparison is much faster than one for each row, and takes no time for kept rows.
        if rows[:count] == self._rows[:count]:
            return count
        pairs = zip(rows, self._rows)
        return next(at for at, (row, known) in enumerate(pairs) if row != known)


class _Number:
    """Equals only what has the same JSON: 1, 1.0 and True are equal otherwise."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self._value) and repr(other) == repr(self._value)


def _copy(value: Any) -> Any:
    """A copy that shares texts, so that comparing them takes no time."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    if isinstance(value, (int, float)):
        return _Number(value)
    # It may change later: it equals nothing, and is encoded each time.
    return object()


def as_json(value: Any) -> bytes:
    """A value as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return dump(mode="json", exclude_none=True)
