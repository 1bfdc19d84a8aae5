// Trimtab for the Vercel AI SDK, and for hosts that use its models.
//
//   import { wrapLanguageModel } from 'ai';
//   import { trimtabMiddleware } from 'trimtab/ai-sdk';
//
//   const context = trimtabMiddleware({ window: 128_000 });
//   const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: context.middleware });
//   await generateText({ model, tools: { ...tools, ...context.tools }, ... });

import { HostRows, callRow, orUnchanged, outputRow, recordUsage, recovers, rowText, textOf, withRecovery } from './hosts.js';
import { Session } from './index.js';

export function trimtabMiddleware(options = {}) {
  const { specificationVersion = 'v3', ...rest } = options;
  const session = new Session({ session: 'ai-sdk', ...rest });
  const fit = async (params) => ({
    ...params,
    prompt: await orUnchanged(() => fitted(session, params), params.prompt),
  });
  const middleware = {
    specificationVersion,
    wrapGenerate: ({ params, model }) =>
      withRecovery(session, async () => recorded(session, await model.doGenerate(await fit(params)))),
    wrapStream: ({ params, model }) =>
      withRecovery(session, async () => model.doStream(await fit(params))),
  };
  const prepareStep = async ({ messages, steps }) => {
    context.lastInput = messages;
    recorded(session, steps.at(-1) ?? {});
    return { messages: await orUnchanged(() => fitted(session, { prompt: messages }), messages) };
  };
  const recover = (error) => recovers(session, error);
  const context = { session, middleware, prepareStep, recover, lastInput: [], tools: retrievalTools(session) };
  return context;
}

/** The result, whose usage was recorded. Versions of the SDK differ in the form of a figure. */
function recorded(session, result) {
  const { inputTokens, outputTokens } = result.usage ?? {};
  recordUsage(session, inputTokens?.total ?? inputTokens, outputTokens?.total ?? outputTokens);
  return result;
}

/** The retrieval tools, as the AI SDK defines tools. */
export function retrievalTools(session) {
  const tools = session.tools.map(({ function: { name, description, parameters } }) => {
    const execute = (args) => session.retrieve(name, args).text;
    return [name, { description, inputSchema: jsonSchema(parameters), execute }];
  });
  return Object.fromEntries(tools);
}

/** A schema as the SDK's `jsonSchema` makes it, so that this module does not depend on the SDK. */
function jsonSchema(schema) {
  return {
    [Symbol.for('vercel.ai.schema')]: true,
    _type: undefined,
    jsonSchema: schema,
    validate: (value) => ({ success: true, value }),
  };
}

/** The prompt to send. */
export async function fitted(session, params) {
  const rows = new HostRows();
  for (const message of params.prompt) {
    if (message.role === 'assistant') {
      rows.add(assistantRow(message), { message });
    } else if (message.role === 'tool') {
      for (const part of message.content) rows.add(partRow(part), { message, part });
    } else {
      rows.add({ role: message.role, content: contentOf(message.content) }, { message });
    }
  }
  const tools = (params.tools ?? []).map(({ name, description, inputSchema }) => ({
    type: 'function',
    function: { name, description, parameters: inputSchema },
  }));
  const sent = [];
  let partsOf = null;
  for (const { row, place, isChanged } of rows.sent(await session.windowRows(rows.rows, tools))) {
    const { message, part } = place ?? {};
    if (!part) {
      sent.push(message ?? newMessage(row));
      partsOf = null;
      continue;
    }
    const output = { type: 'text', value: rowText(row) };
    const shown = isChanged && part.type === 'tool-result' ? { ...part, output } : part;
    if (message === partsOf) sent.at(-1).content.push(shown);
    else sent.push({ ...message, content: [shown] });
    partsOf = message;
  }
  return sent;
}

function newMessage(row) {
  const content = [{ type: 'text', text: rowText(row) }];
  return { role: row.role === 'assistant' ? 'assistant' : 'user', content };
}

function assistantRow({ content }) {
  if (typeof content === 'string') return callRow([], content);
  const calls = content.filter((part) => part.type === 'tool-call');
  const text = content.filter((part) => part.type === 'text').map((part) => part.text);
  const made = calls.map((call) => ({ id: call.toolCallId, name: call.toolName, args: call.input }));
  return callRow(made, text.join(''));
}

function partRow(part) {
  if (part.type !== 'tool-result') return { role: 'user', content: textOf(part) };
  const { type, value } = part.output;
  const texts = type === 'content' && value.every((item) => item.type === 'text');
  const content = texts ? value.map((item) => item.text).join('\n') : textOf(value);
  return outputRow(part.toolCallId, content);
}

function contentOf(content) {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : { type: part.type }));
}
