"""The official OpenAI SDK for Python. MODE: chat-plain, chat-stream, responses-plain or responses-stream."""

import json

import openai
from shell_tool import ABOUT, KEY, MODE, MOST_CALLS, SCHEMA, TASK, URL, bash

client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)
API, HOW = MODE.split("-")


def chat(log):
    tools = [{"type": "function", "function": {"name": "bash", "description": ABOUT, "parameters": SCHEMA}}]
    request = dict(model="gpt-4o", messages=log, tools=tools)
    if HOW == "stream":
        with client.chat.completions.stream(**request) as events:
            events.until_done()
            said = events.get_final_completion().choices[0].message
    else:
        said = client.chat.completions.create(**request).choices[0].message
    calls = said.tool_calls or []
    message = {"role": "assistant", "content": said.content}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function",
             "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in calls]
    log.append(message)
    for call in calls:
        output = bash(json.loads(call.function.arguments)["command"])
        log.append({"role": "tool", "tool_call_id": call.id, "content": output})
    return None if calls else said.content


def responses(log):
    """With reasoning that the client keeps, encrypted."""
    tools = [{"type": "function", "name": "bash", "description": ABOUT, "parameters": SCHEMA, "strict": True}]
    request = dict(model="gpt-6.1-sol", input=log, tools=tools, store=False, reasoning={"effort": "medium"},
                   include=["reasoning.encrypted_content"])
    if HOW == "stream":
        with client.responses.stream(**request) as events:
            answer = events.until_done().get_final_response()
    else:
        answer = client.responses.create(**request)
    calls = [item for item in answer.output if item.type == "function_call"]
    for item in answer.output:
        log.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
    for call in calls:
        output = bash(json.loads(call.arguments)["command"])
        log.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    return None if calls else answer.output_text


conversation = [{"role": "user", "content": TASK}]
for _ in range(MOST_CALLS):
    words = {"chat": chat, "responses": responses}[API](conversation)
    if words is not None:
        print(words)
        break
