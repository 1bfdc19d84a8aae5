// The official Anthropic SDK for Node. MODE: plain or stream; before it thinking- for an older model
// that thinks, or newest- for one that always thinks.

import { ABOUT, KEY, MODE, MOST_CALLS, SCHEMA, TASK, URL, bash, load } from "./shell_tool.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0 });
const models = {
  thinking: { model: "claude-sonnet-4-5", thinking: { type: "enabled", budget_tokens: 2000 } },
  newest: { model: "claude-opus-5-5" },
};
const model = models[MODE.split("-")[0]] ?? { model: "claude-sonnet-4-5" };
const tools = [{ name: "bash", description: ABOUT, input_schema: SCHEMA }];
const messages = [{ role: "user", content: TASK }];
for (let call = 0; call < MOST_CALLS; call++) {
  const request = { max_tokens: 4000, tools, messages, ...model };
  const answer = MODE.endsWith("stream")
    ? await client.messages.stream(request).finalMessage()
    : await client.messages.create(request);
  messages.push({ role: "assistant", content: answer.content });
  const calls = answer.content.filter((part) => part.type === "tool_use");
  if (calls.length === 0) {
    console.log(answer.content.map((part) => part.text ?? "").join(""));
    break;
  }
  const content = calls.map((part) => ({
    type: "tool_result",
    tool_use_id: part.id,
    content: bash(part.input.command),
  }));
  messages.push({ role: "user", content });
}
