"""An agent of the OpenHands SDK. MODE: chat or anthropic, which thinks."""

import os

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr
from shell_tool import KEY, MODE, TASK, URL

if MODE == "anthropic":
    llm = LLM(model="anthropic/claude-sonnet-4-5", base_url=URL, api_key=SecretStr(KEY), num_retries=0,
              extended_thinking_budget=2000, usage_id="agent")
else:
    llm = LLM(model="openai/gpt-4o", base_url=URL + "/v1", api_key=SecretStr(KEY), num_retries=0, usage_id="agent")
agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)])
conversation = Conversation(agent=agent, workspace=os.getcwd())
conversation.send_message(TASK)
conversation.run()
print(get_agent_final_response(conversation.state.events))
conversation.close()
