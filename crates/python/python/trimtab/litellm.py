"""Trimtab for LiteLLM.

In the proxy, name the handler in its settings:

    litellm_settings:
      callbacks: trimtab.litellm.handler

In a program, hand the messages over before the call:

    from trimtab.litellm import completion

    response = completion(session, model="gpt-5", messages=messages, tools=tools)
"""

from __future__ import annotations

import os
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger

from ._hosts import Sessions, or_unchanged, record_usage, recovers
from .session import Session

_CALLS = ("completion", "acompletion")


class TrimtabHandler(CustomLogger):
    """Makes the messages of each call to the proxy fit.

    A conversation is known by the session that the client names (``litellm_session_id``, or
    ``session_id`` in its metadata). Others are known by their first user message.
    """

    def __init__(self, name: str = "litellm", **options: Any) -> None:
        super().__init__()
        self._sessions = Sessions(name, {"retrieval": False} | options)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        if call_type not in _CALLS or not data.get("messages"):
            return data
        session = self._sessions.get(_conversation(data))
        return data | _window(session, data)


def completion(session: Session, **request: Any) -> Any:
    """``litellm.completion`` with a window that fits, and again if it was refused for its size."""
    while True:
        try:
            return _recorded(session, litellm.completion(**(request | _window(session, request))))
        except Exception as error:
            if not recovers(session, error):
                raise


async def acompletion(session: Session, **request: Any) -> Any:
    """``litellm.acompletion``, likewise."""
    while True:
        try:
            sent = request | _window(session, request)
            return _recorded(session, await litellm.acompletion(**sent))
        except Exception as error:
            if not recovers(session, error):
                raise


def _recorded(session: Session, response: Any) -> Any:
    usage = getattr(response, "usage", None)
    if usage is not None:
        record_usage(session, usage.prompt_tokens, usage.completion_tokens)
    return response


def _window(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    came = {key: request[key] for key in ("messages", "tools") if request.get(key)}
    sent = or_unchanged(lambda: session.window(came), came)
    return {"messages": sent["messages"]}


def _conversation(data: dict[str, Any]) -> str:
    metadata = data.get("metadata") or {}
    named = data.get("litellm_session_id") or metadata.get("session_id")
    if named:
        return str(named)
    first = next((row for row in data["messages"] if row.get("role") == "user"), {})
    from hashlib import sha256

    return sha256(repr((data.get("model"), first.get("content"))).encode()).hexdigest()[:32]


def _options() -> dict[str, Any]:
    """The options of the handler that the proxy's settings name."""
    read = {"preset": "TRIMTAB_PRESET", "store": "TRIMTAB_STORE", "model": "TRIMTAB_MODEL"}
    options: dict[str, Any] = {key: os.environ[name] for key, name in read.items() if name in os.environ}
    if "TRIMTAB_WINDOW" in os.environ:
        options["window"] = int(os.environ["TRIMTAB_WINDOW"])
    return options


handler = TrimtabHandler(**_options())
