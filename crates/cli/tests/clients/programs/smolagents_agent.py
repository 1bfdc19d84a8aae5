"""An agent of smolagents, whose observations are user messages. MODE: code or calls."""

from shell_tool import KEY, MODE, MOST_CALLS, TASK, URL, bash
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool

model = OpenAIServerModel(model_id="gpt-4o", api_base=URL + "/v1", api_key=KEY)
kind = CodeAgent if MODE == "code" else ToolCallingAgent
agent = kind(tools=[tool(bash)], model=model, max_steps=MOST_CALLS, verbosity_level=0)
print(agent.run(TASK))
