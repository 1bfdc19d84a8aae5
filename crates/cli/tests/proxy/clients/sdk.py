"""The official Python SDKs, headless, through the proxy to the scripted upstream.

usage: sdk.py URL FLOW OUTPUT_BYTES
Runs tool calls with large outputs until the model is done, and prints its last words.
"""

import sys

HEADER = "x-test-call"


def output(number, size):
    lines, at = [], 0
    while at < size:
        line = f"{number:02d}:{len(lines):06d} worker {len(lines) * 7919 % 97} took {len(lines) * 31 % 1009} ms"
        lines.append(line)
        at += len(line) + 1
    return "\n".join(lines)


def messages(url, size, stream):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=0)
    tools = [{"name": "read_log", "description": "Read a log.",
              "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}]
    log = [{"role": "user", "content": "read all logs"}]
    for call in range(100):
        request = dict(model="claude-sonnet-4-5", max_tokens=1000, tools=tools, messages=log,
                       extra_headers={HEADER: str(call)})
        if stream:
            with client.messages.stream(**request) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**request)
        log.append({"role": "assistant", "content": answer.content})
        calls = [part for part in answer.content if part.type == "tool_use"]
        if not calls:
            return answer.content[0].text
        log.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": part.id, "content": output(part.input["number"], size)}
            for part in calls]})


def chat(url, size, stream):
    import json
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="test", max_retries=0)
    tools = [{"type": "function", "function": {"name": "read_log", "description": "Read a log.",
              "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}}}}]
    log = [{"role": "user", "content": "read all logs"}]
    for call in range(100):
        request = dict(model="gpt-4o", tools=tools, messages=log, extra_headers={HEADER: str(call)})
        if stream:
            text, parts = "", {}
            for event in client.chat.completions.create(stream=True, **request):
                for choice in event.choices:
                    text += choice.delta.content or ""
                    for piece in choice.delta.tool_calls or []:
                        part = parts.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                        part["id"] += piece.id or ""
                        part["name"] += piece.function.name or ""
                        part["arguments"] += piece.function.arguments or ""
            calls = list(parts.values())
        else:
            said = client.chat.completions.create(**request).choices[0].message
            text = said.content
            calls = [{"id": part.id, "name": part.function.name, "arguments": part.function.arguments}
                     for part in said.tool_calls or []]
        if not calls:
            return text
        log.append({"role": "assistant", "content": text, "tool_calls": [
            {"id": part["id"], "type": "function",
             "function": {"name": part["name"], "arguments": part["arguments"]}} for part in calls]})
        for part in calls:
            number = json.loads(part["arguments"])["number"]
            log.append({"role": "tool", "tool_call_id": part["id"], "content": output(number, size)})


def responses(url, size, stream):
    import json
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="test", max_retries=0)
    tools = [{"type": "function", "name": "read_log", "description": "Read a log.", "strict": False,
              "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}}}]
    log = [{"role": "user", "content": "read all logs"}]
    for call in range(100):
        request = dict(model="gpt-4o", tools=tools, input=log, store=False,
                       extra_headers={HEADER: str(call)})
        if stream:
            with client.responses.stream(**request) as events:
                for _ in events:
                    pass
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**request)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        log += [item.model_dump(exclude_none=True, exclude={"parsed_arguments", "parsed"}) for item in answer.output]
        for item in calls:
            number = json.loads(item.arguments)["number"]
            log.append({"type": "function_call_output", "call_id": item.call_id, "output": output(number, size)})


if __name__ == "__main__":
    url, flow, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    name, _, how = flow.partition("-")
    print({"messages": messages, "chat": chat, "responses": responses}[name](url, size, how == "stream"))
