"""The official Anthropic SDK for Python.

MODE: plain or stream; before it thinking- for an older model that thinks, newest- for one that always thinks, or
between- for one that thinks between calls.
"""

import anthropic
from shell_tool import ABOUT, KEY, MODE, MOST_CALLS, SCHEMA, TASK, URL, bash

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)
MODEL, OPTIONS = {
    "thinking": ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    "newest": ("claude-opus-5-5", {"thinking": {"type": "adaptive"}}),
    "between": ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
}.get(MODE.split("-")[0], ("claude-sonnet-4-5", {}))
log = [{"role": "user", "content": TASK}]
for _ in range(MOST_CALLS):
    request = dict(model=MODEL, max_tokens=4000, messages=log, **OPTIONS,
                   tools=[{"name": "bash", "description": ABOUT, "input_schema": SCHEMA}])
    if MODE.endswith("stream"):
        with client.messages.stream(**request) as events:
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**request)
    log.append({"role": "assistant", "content": answer.content})
    calls = [part for part in answer.content if part.type == "tool_use"]
    if not calls:
        print("".join(part.text for part in answer.content if part.type == "text"))
        break
    log.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": part.id, "content": bash(part.input["command"])}
        for part in calls]})
