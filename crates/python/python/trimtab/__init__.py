"""The context engine between an agent and its model.

Before each call to a model, hand your request to ``Session.window`` and send what it returns::

    import trimtab

    session = trimtab.Session("chat-1", window=128_000)
    request = {"model": "gpt-5", "messages": messages, "tools": tools}
    response = client.chat.completions.create(**session.window(request))

Large tool outputs are stored whole and shown short, old rounds are compacted before the window
overflows, and the model can read everything back with the two tools of ``Session.tools``.
The modules ``trimtab.langchain``, ``trimtab.openai_agents``, ``trimtab.pydantic_ai``,
``trimtab.google_adk``, ``trimtab.strands`` and ``trimtab.litellm`` connect it to frameworks.
"""

from ._native import StoreError, TooLargeError, TrimtabError
from .session import RetrievalAnswer, Session, ShownOutput, WindowRows

__all__ = [
    "RetrievalAnswer",
    "Session",
    "ShownOutput",
    "StoreError",
    "TooLargeError",
    "TrimtabError",
    "WindowRows",
]
