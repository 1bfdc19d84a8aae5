"""A model for the Google ADK that speaks Chat Completions, without further packages."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, AsyncGenerator

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class ProviderError(Exception):
    """An error answer of the provider."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body)
        self.status_code, self.body = status, body


class ChatModel(BaseLlm):
    url: str

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        rows = [row for content in llm_request.contents for row in rows_of(content)]
        body = json.dumps({"model": self.model, "messages": rows}).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        try:
            answer = json.loads(urllib.request.urlopen(request).read())
        except urllib.error.HTTPError as error:
            raise ProviderError(error.code, error.read().decode()) from None
        message = answer["choices"][0]["message"]
        parts = [types.Part(text=message["content"])] if message["content"] else []
        for call in message.get("tool_calls", []):
            made = types.FunctionCall(id=call["id"], name=call["function"]["name"],
                                      args=json.loads(call["function"]["arguments"]))
            parts.append(types.Part(function_call=made))
        counted = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=answer["usage"]["prompt_tokens"],
            candidates_token_count=answer["usage"]["completion_tokens"])
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, usage_metadata=counted)


def rows_of(content: types.Content) -> list[dict[str, Any]]:
    parts = content.parts or []
    answers = [part.function_response for part in parts if part.function_response]
    if answers:
        return [{"role": "tool", "tool_call_id": answer.id,
                 "content": (answer.response or {}).get("result", "")} for answer in answers]
    calls = [{"id": part.function_call.id, "type": "function",
              "function": {"name": part.function_call.name,
                           "arguments": json.dumps(part.function_call.args)}}
             for part in parts if part.function_call]
    text = "".join(part.text or "" for part in parts)
    role = "assistant" if content.role == "model" else "user"
    return [{"role": role, "content": text, **({"tool_calls": calls} if calls else {})}]
