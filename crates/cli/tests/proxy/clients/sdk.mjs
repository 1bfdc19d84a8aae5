// The official Node SDKs, headless, through the proxy to the scripted upstream.
//
// usage: node sdk.mjs URL FLOW OUTPUT_BYTES FOLDER
// Runs tool calls with large outputs until the model is done, and prints its last words. The
// SDKs are those installed in FOLDER.

import { createRequire } from "node:module";

const [url, flow, size, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const HEADER = "x-test-call";

function output(number) {
  const lines = [];
  for (let at = 0; at < Number(size); ) {
    const n = lines.length;
    const head = `${String(number).padStart(2, "0")}:${String(n).padStart(6, "0")}`;
    const line = `${head} worker ${(n * 7919) % 97} took ${(n * 31) % 1009} ms`;
    lines.push(line);
    at += line.length + 1;
  }
  return lines.join("\n");
}

const schema = { type: "object", properties: { number: { type: "integer" } } };
const about = { name: "read_log", description: "Read a log." };

async function messages(stream) {
  const Anthropic = require("@anthropic-ai/sdk").default;
  const client = new Anthropic({ baseURL: url, apiKey: "test", maxRetries: 0 });
  const tools = [{ ...about, input_schema: schema }];
  const log = [{ role: "user", content: "read all logs" }];
  for (let call = 0; call < 100; call++) {
    const request = { model: "claude-sonnet-4-5", max_tokens: 1000, tools, messages: log };
    const options = { headers: { [HEADER]: String(call) } };
    const answer = stream
      ? await client.messages.stream(request, options).finalMessage()
      : await client.messages.create(request, options);
    log.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter((part) => part.type === "tool_use");
    if (calls.length === 0) return answer.content[0].text;
    const content = calls.map((part) => ({
      type: "tool_result",
      tool_use_id: part.id,
      content: output(part.input.number),
    }));
    log.push({ role: "user", content });
  }
}

function openai() {
  const OpenAI = require("openai").default;
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "test", maxRetries: 0 });
}

async function chat(stream) {
  const client = openai();
  const tools = [{ type: "function", function: { ...about, parameters: schema } }];
  const log = [{ role: "user", content: "read all logs" }];
  for (let call = 0; call < 100; call++) {
    const request = { model: "gpt-4o", tools, messages: log };
    const options = { headers: { [HEADER]: String(call) } };
    const answer = stream
      ? await client.chat.completions.stream(request, options).finalChatCompletion()
      : await client.chat.completions.create(request, options);
    const said = answer.choices[0].message;
    const calls = said.tool_calls ?? [];
    if (calls.length === 0) return said.content;
    const strip = ({ id, type, function: { name, arguments: args } }) => ({
      id,
      type,
      function: { name, arguments: args },
    });
    log.push({ role: "assistant", content: said.content, tool_calls: calls.map(strip) });
    for (const part of calls) {
      const { number } = JSON.parse(part.function.arguments);
      log.push({ role: "tool", tool_call_id: part.id, content: output(number) });
    }
  }
}

async function responses(stream) {
  const client = openai();
  const tools = [{ type: "function", ...about, strict: false, parameters: schema }];
  const log = [{ role: "user", content: "read all logs" }];
  for (let call = 0; call < 100; call++) {
    const request = { model: "gpt-4o", tools, input: log, store: false };
    const options = { headers: { [HEADER]: String(call) } };
    const answer = stream
      ? await client.responses.stream(request, options).finalResponse()
      : await client.responses.create(request, options);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return answer.output_text;
    // What the SDK adds for its user is not the provider's.
    log.push(...answer.output.map(({ parsed_arguments: _, ...item }) => item));
    for (const item of calls) {
      const { number } = JSON.parse(item.arguments);
      log.push({ type: "function_call_output", call_id: item.call_id, output: output(number) });
    }
  }
}

const [name, how] = flow.split("-");
console.log(await { messages, chat, responses }[name](how === "stream"));
