"""An agent of LangChain. MODE: chat, responses or anthropic."""

from langchain.agents import create_agent
from shell_tool import KEY, MODE, MOST_CALLS, TASK, URL, bash


def model():
    if MODE == "anthropic":
        from langchain_anthropic import ChatAnthropic
        return ChatAnthropic(model="claude-sonnet-5-5", base_url=URL, api_key=KEY, max_retries=0, max_tokens=4000)
    from langchain_openai import ChatOpenAI
    if MODE == "responses":
        return ChatOpenAI(model="gpt-6.1-sol", base_url=URL + "/v1", api_key=KEY, max_retries=0, store=False,
                          use_responses_api=True, include=["reasoning.encrypted_content"])
    return ChatOpenAI(model="gpt-4o", base_url=URL + "/v1", api_key=KEY, max_retries=0)


agent = create_agent(model(), tools=[bash], system_prompt="You work in a shell.")
answer = agent.invoke({"messages": [{"role": "user", "content": TASK}]}, {"recursion_limit": 2 * MOST_CALLS})
print(answer["messages"][-1].text)
