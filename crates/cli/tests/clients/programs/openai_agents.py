"""An agent of openai-agents. MODE: direct, or programs for a model that calls tools from programs."""

import asyncio

from agents import Agent, ModelSettings, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from agents import ProgrammaticToolCallingTool
from openai import AsyncOpenAI
from shell_tool import KEY, MODE, MOST_CALLS, TASK, URL, bash

set_tracing_disabled(True)
set_default_openai_client(AsyncOpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0))
programs = MODE == "programs"
tools = [function_tool(bash, allowed_callers=["direct", "programmatic"] if programs else None)]
if programs:
    tools.append(ProgrammaticToolCallingTool())
agent = Agent(name="audit", instructions="You work in a shell.", model="gpt-6.1-sol", tools=tools,
              model_settings=ModelSettings(store=False, response_include=["reasoning.encrypted_content"]))
print(asyncio.run(Runner.run(agent, TASK, max_turns=MOST_CALLS)).final_output)
