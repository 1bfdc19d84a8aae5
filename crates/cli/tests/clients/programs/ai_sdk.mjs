// The AI SDK. MODE: chat, compatible, responses or anthropic.

import { ABOUT, KEY, MODE, MOST_CALLS, TASK, URL, bash, load } from "./shell_tool.mjs";

const { stepCountIs, streamText, tool } = await load("ai");
const { z } = await load("zod");

async function model() {
  const options = { baseURL: `${URL}/v1`, apiKey: KEY };
  if (MODE === "anthropic") {
    const { createAnthropic } = await load("@ai-sdk/anthropic");
    return createAnthropic(options)("claude-opus-5-5");
  }
  if (MODE === "compatible") {
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    return createOpenAICompatible({ name: "local", ...options })("gpt-4o");
  }
  const { createOpenAI } = await load("@ai-sdk/openai");
  const openai = createOpenAI(options);
  return MODE === "responses" ? openai.responses("gpt-6.1-sol") : openai.chat("gpt-4o");
}

const shell = tool({
  description: ABOUT,
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => bash(command),
});
let problem;
const result = streamText({
  model: await model(),
  messages: [{ role: "user", content: TASK }],
  tools: { bash: shell },
  stopWhen: stepCountIs(MOST_CALLS),
  maxRetries: 0,
  providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
  onError: ({ error }) => {
    problem = error;
  },
});
console.log(await result.text);
if (problem) {
  console.error(problem);
  process.exit(1);
}
