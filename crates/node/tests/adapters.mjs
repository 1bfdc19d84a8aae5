// Every adapter with its real framework, against the scripted provider.
//
// The sessions are those of the Python package: two dozen rounds of two parallel calls, outputs up
// to 5 MB, a window of 20,000 tokens, one line read back by its ref; without the adapter the same
// session must fail; told a window that is too large, the adapter must recover.
//
// node adapters.mjs PROVIDER.py [NAME...]

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const TASK = 'fetch all parts, then find the needle';
const NEEDLE = 'needle-4711';
const ROUNDS = 24;
const WINDOW = 20_000;
const options = (window) => ({ window, max_output: 500 });
const PART = {
  type: 'object',
  properties: { part: { type: 'integer' } },
  required: ['part'],
  additionalProperties: false,
};

function output(part) {
  const line = `part ${part}: all is well in this line of the log, nothing to see, go on`;
  const isLast = part === 2 * ROUNDS - 1;
  const count = isLast ? 71_000 : (part % 5) * 120 + 10;
  const lines = Array.from({ length: count }, (_, at) => `${at} ${line}`);
  if (isLast) lines[40_000] = `the line that is looked for: ${NEEDLE}`;
  return lines.join('\n');
}

/** Runs with what a filter saw last until no request is refused; filters cannot send another one themselves. */
async function runAgain(run, input, context) {
  for (;;) {
    try {
      return await run(input);
    } catch (error) {
      if (!context || !context.recover(error)) throw error;
      input = context.lastInput;
    }
  }
}

async function aiSdk(url, name, window, usesStep) {
  const { generateText, jsonSchema, stepCountIs, wrapLanguageModel } = await import('ai');
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const { trimtabMiddleware } = await import('trimtab/ai-sdk');
  let model = createOpenAICompatible({ name: 'test', baseURL: url, apiKey: 'none' })(name);
  let tools = { fetch: { description: 'Fetch a part.', inputSchema: jsonSchema(PART), execute: ({ part }) => output(part) } };
  let [context, prepareStep] = [];
  if (window) {
    context = trimtabMiddleware(options(window));
    if (usesStep) ({ prepareStep } = context);
    else model = wrapLanguageModel({ model, middleware: context.middleware });
    tools = { ...tools, ...context.tools };
  }
  const stopWhen = stepCountIs(100);
  const run = (messages) => generateText({ model, tools, messages, maxRetries: 0, stopWhen, prepareStep });
  const result = await runAgain(run, [{ role: 'user', content: TASK }], usesStep && context);
  return result.text;
}

async function langchain(url, name, window) {
  const { createAgent, tool } = await import('langchain');
  const { ChatOpenAI } = await import('@langchain/openai');
  const { trimtabMiddleware } = await import('trimtab/langchain');
  const fetch = tool(({ part }) => output(part), { name: 'fetch', description: 'Fetch a part.', schema: PART });
  const model = new ChatOpenAI({ model: name, apiKey: 'none', maxRetries: 0, configuration: { baseURL: url } });
  const middleware = window ? [trimtabMiddleware(options(window))] : [];
  const agent = createAgent({ model, tools: [fetch], middleware });
  const messages = [{ role: 'user', content: TASK }];
  const state = await agent.invoke({ messages }, { recursionLimit: 300 });
  return state.messages.at(-1).text;
}

async function mastra(url, name, window) {
  const { Mastra } = await import('@mastra/core');
  const { Agent } = await import('@mastra/core/agent');
  const { createTool } = await import('@mastra/core/tools');
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const { trimtabProcessor } = await import('trimtab/mastra');
  const model = createOpenAICompatible({ name: 'test', baseURL: url, apiKey: 'none' })(name);
  const fetch = createTool({ id: 'fetch', description: 'Fetch a part.', inputSchema: PART, execute: async ({ part }) => output(part) });
  const context = window ? trimtabProcessor(options(window)) : { tools: {} };
  const processors = window ? [context.processor] : [];
  const agent = new Agent({
    id: 'fetcher', name: 'fetcher', instructions: 'be brief', model,
    tools: { fetch, ...context.tools }, inputProcessors: processors, errorProcessors: processors,
  });
  new Mastra({ agents: { agent }, logger: false });
  const result = await agent.generate(TASK, { maxSteps: 100, modelSettings: { maxRetries: 0 } });
  return result.text;
}

async function agentsRun(url, name, window, usesFilter) {
  const { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } = await import('@openai/agents');
  const { OpenAI } = await import('openai');
  const { trimtab } = await import('trimtab/openai-agents');
  setTracingDisabled(true);
  const fetch = tool({ name: 'fetch', description: 'Fetch a part.', parameters: PART, strict: false, execute: ({ part }) => output(part) });
  const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  let model = new OpenAIChatCompletionsModel(client, name);
  let tools = [fetch];
  const config = {};
  let context;
  if (window) {
    context = trimtab(options(window));
    tools = [...tools, ...context.tools];
    if (usesFilter) config.callModelInputFilter = context.inputFilter;
    else model = context.model(model);
  }
  const agent = new Agent({ name: 'fetcher', instructions: 'be brief', tools, model });
  const run = (input) => new Runner(config).run(agent, input, { maxTurns: 100 });
  const result = await runAgain(run, TASK, usesFilter && context);
  return result.finalOutput;
}

const ADAPTERS = {
  'ai-sdk': { package: 'ai', run: (...args) => aiSdk(...args, false) },
  'ai-sdk-step': { package: 'ai', run: (...args) => aiSdk(...args, true) },
  langchain: { package: 'langchain', run: langchain },
  mastra: { package: '@mastra/core', run: mastra },
  'openai-agents': { package: '@openai/agents', run: (...args) => agentsRun(...args, false) },
  'openai-agents-filter': { package: '@openai/agents', run: (...args) => agentsRun(...args, true) },
};

async function check(url, name, { run }) {
  const overflows = async (model) => (await (await fetch(`${url}/figures/${model}`)).json()).overflows;
  const plain = await run(url, `${name}-plain`, null).catch(() => 'failed');
  assert(!plain.includes(NEEDLE), 'the session ends well without the adapter');
  assert((await overflows(`${name}-plain`)) > 0, 'it failed for another reason');
  const fitting = await run(url, `${name}-fits`, WINDOW);
  assert(fitting.includes(NEEDLE), fitting);
  assert.equal(await overflows(`${name}-fits`), 0, 'the provider refused a window');
  const recovered = await run(url, `${name}-recovers`, 2 * WINDOW);
  assert(recovered.includes(NEEDLE), recovered);
  assert((await overflows(`${name}-recovers`)) > 0, 'there was nothing to recover from');
}

const isInstalled = (name) => import(name).then(() => true, (error) => error.code !== 'ERR_MODULE_NOT_FOUND');

const [script, ...names] = process.argv.slice(2);
const provider = spawn('python3', [script], { stdio: ['pipe', 'pipe', 'inherit'] });
const [url] = await new Promise((resolve) => createInterface(provider.stdout).once('line', (line) => resolve([line])));
process.on('warning', (warning) => {
  if (warning.message.startsWith('trimtab: ')) process.exitCode = 1;
});
for (const [name, adapter] of Object.entries(ADAPTERS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  if (!(await isInstalled(adapter.package))) {
    console.log(`${name}: SKIPPED, ${adapter.package} is not installed`);
    continue;
  }
  try {
    await check(url, name, adapter);
    console.log(`${name}: ok`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`${name}: FAILED: ${String(error.stack).slice(0, 2000)}`);
  }
}
provider.stdin.end();
