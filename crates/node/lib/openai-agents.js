// Trimtab for the OpenAI Agents SDK.
//
//   import { Agent, run } from '@openai/agents';
//   import { trimtab } from 'trimtab/openai-agents';
//
//   const context = trimtab({ window: 128_000 });
//   const agent = new Agent({ name, tools: [...tools, ...context.tools], model: context.model(model) });
//
// `context.model` wraps a model, and also recovers from overflows. Without it, pass
// `callModelInputFilter: context.inputFilter` to the run. After an overflow, such a run ends with an
// error; if `context.recover(error)` is true, run again with `context.lastInput`.

import { tool } from '@openai/agents';

import { HostRows, callRow, orUnchanged, outputRow, recordUsage, recovers, rowText, textOf, withRecovery } from './hosts.js';
import { Session } from './index.js';

/** One conversation. */
export function trimtab(options = {}) {
  const session = new Session({ session: 'openai-agents', ...options });
  const tools = session.tools.map(({ function: { name, description, parameters } }) =>
    tool({ name, description, parameters, strict: false, execute: (args) => session.retrieve(name, args).text }),
  );
  const inputFilter = async ({ modelData }) => {
    const { instructions, input } = modelData;
    context.lastInput = input;
    return { ...modelData, input: await items(session, instructions, input) };
  };
  const recover = (error) => recovers(session, error);
  const model = (inner) => new TrimtabModel(session, inner);
  const context = { session, tools, inputFilter, recover, lastInput: [], model };
  return context;
}

class TrimtabModel {
  #session;
  #inner;

  constructor(session, inner) {
    this.#session = session;
    this.#inner = inner;
  }

  async #fit(request) {
    const { systemInstructions, input, tools } = request;
    return { ...request, input: await items(this.#session, systemInstructions, input, tools) };
  }

  getResponse(request) {
    return withRecovery(this.#session, async () => {
      const answer = await this.#inner.getResponse(await this.#fit(request));
      recordUsage(this.#session, answer.usage?.inputTokens, answer.usage?.outputTokens);
      return answer;
    });
  }

  async *getStreamedResponse(request) {
    const begin = async () => {
      const events = this.#inner.getStreamedResponse(await this.#fit(request))[Symbol.asyncIterator]();
      return { events, first: await events.next() };
    };
    // A stream that has begun cannot be sent again.
    const { events, first } = await withRecovery(this.#session, begin);
    for (let next = first; !next.done; next = await events.next()) yield next.value;
  }
}

const items = (session, instructions, input, tools) =>
  typeof input === 'string' ? input : orUnchanged(() => fitted(session, instructions, input, tools), input);

/** The items to send. */
export async function fitted(session, instructions, input, tools) {
  const rows = new HostRows();
  if (instructions) rows.add({ role: 'system', content: instructions }, null);
  let answer = [];
  const endAnswer = () => {
    if (answer.length > 0) rows.add(answerRow(answer), answer);
    answer = [];
  };
  for (const item of input) {
    const isAnswer = item.type === 'function_call' || item.type === 'reasoning' || item.role === 'assistant';
    if (isAnswer) {
      answer.push(item);
      continue;
    }
    endAnswer();
    rows.add(itemRow(item), [item]);
  }
  endAnswer();
  return rows
    .sent(await session.windowRows(rows.rows, definitions(tools)))
    .filter(({ row, place }) => row.role !== 'system' || place)
    .flatMap(({ row, place, isChanged }) => itemsOf(row, place, isChanged));
}

/** The tools as Chat has them; undefined if they are not known. */
const definitions = (tools) =>
  tools
    ?.filter((one) => one.type === 'function')
    .map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }));

function answerRow(items) {
  const calls = items.filter((item) => item.type === 'function_call');
  const texts = items.filter((item) => item.role === 'assistant').map((item) => contentText(item.content));
  return callRow(calls.map((call) => ({ id: call.callId, name: call.name, args: call.arguments })), texts.join(''));
}

function itemRow(item) {
  if (item.type !== 'function_call_result') {
    const role = item.role === 'system' ? 'system' : 'user';
    return { role, content: item.role ? contentText(item.content) : textOf(item) };
  }
  const { output } = item;
  return outputRow(item.callId, typeof output === 'string' ? output : (output?.text ?? textOf(output)));
}

const contentText = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');

function itemsOf(row, place, isChanged) {
  if (!place) {
    if (row.role !== 'assistant') return [{ role: 'user', content: rowText(row) }];
    const content = [{ type: 'output_text', text: rowText(row) }];
    return [{ role: 'assistant', status: 'completed', content }];
  }
  const [item] = place;
  if (!isChanged || item.type !== 'function_call_result') return place;
  return [{ ...item, output: { type: 'text', text: rowText(row) } }];
}
