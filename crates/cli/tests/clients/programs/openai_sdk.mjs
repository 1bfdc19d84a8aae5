// The official OpenAI SDK for Node. MODE: chat-plain, chat-stream, responses-plain or
// responses-stream.

import { ABOUT, KEY, MODE, MOST_CALLS, SCHEMA, TASK, URL, bash, load } from "./shell_tool.mjs";

const { default: OpenAI } = await load("openai");
const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0 });
const [api, how] = MODE.split("-");
const log = [{ role: "user", content: TASK }];

async function chat() {
  const tools = [{ type: "function", function: { name: "bash", description: ABOUT, parameters: SCHEMA } }];
  const request = { model: "gpt-4o", tools, messages: log };
  const answer =
    how === "stream"
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
  const { content, tool_calls: calls = [] } = answer.choices[0].message;
  if (calls.length === 0) return content;
  const plain = ({ id, type, function: { name, arguments: text } }) => ({
    id,
    type,
    function: { name, arguments: text },
  });
  log.push({ role: "assistant", content, tool_calls: calls.map(plain) });
  for (const call of calls) {
    const { command } = JSON.parse(call.function.arguments);
    log.push({ role: "tool", tool_call_id: call.id, content: bash(command) });
  }
}

// With reasoning that the client keeps, encrypted.
async function responses() {
  const tools = [{ type: "function", name: "bash", description: ABOUT, parameters: SCHEMA, strict: true }];
  const request = {
    model: "gpt-6.1-sol",
    input: log,
    tools,
    store: false,
    reasoning: { effort: "medium" },
    include: ["reasoning.encrypted_content"],
  };
  const answer =
    how === "stream"
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
  const calls = answer.output.filter((item) => item.type === "function_call");
  if (calls.length === 0) return answer.output_text;
  log.push(...answer.output.map(({ parsed_arguments: _, ...item }) => item));
  for (const call of calls) {
    const { command } = JSON.parse(call.arguments);
    log.push({ type: "function_call_output", call_id: call.call_id, output: bash(command) });
  }
}

for (let call = 0; call < MOST_CALLS; call++) {
  const words = await { chat, responses }[api]();
  if (words !== undefined) {
    console.log(words);
    break;
  }
}
