// Trimtab for LangChain.js and LangGraph.js agents.
//
//   import { createAgent } from 'langchain';
//   import { trimtabMiddleware } from 'trimtab/langchain';
//
//   const agent = createAgent({ model, tools, middleware: [trimtabMiddleware({ window: 128_000 })] });

import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { convertToOpenAITool } from '@langchain/core/utils/function_calling';
import { createMiddleware } from 'langchain';

import { HostRows, callRow, orUnchanged, outputRow, recordUsage, rowText, withRecovery } from './hosts.js';
import { Session } from './index.js';

const CALL_BLOCKS = new Set(['tool_use', 'tool_call', 'function_call']);

/** One conversation. */
export function trimtabMiddleware(options = {}) {
  const session = new Session({ session: 'langchain', ...options });
  const tools = session.tools.map(({ function: { name, description, parameters } }) =>
    tool((args) => session.retrieve(name, args).text, { name, description, schema: parameters }),
  );
  const wrapModelCall = (request, handler) =>
    withRecovery(session, async () => {
      const messages = await orUnchanged(() => fitted(session, request), request.messages);
      const answer = await handler({ ...request, messages });
      recordUsage(session, answer.usage_metadata?.input_tokens, answer.usage_metadata?.output_tokens);
      return answer;
    });
  return createMiddleware({ name: 'trimtab', tools, wrapModelCall });
}

// What was converted for the last call of a session: an agent calls with the same objects, and
// some more.
const KEPT = new WeakMap();

/** The messages to send. */
export async function fitted(session, request) {
  const rows = new HostRows();
  const system = request.systemMessage?.content ?? request.systemPrompt;
  if (system?.length > 0) rows.add({ role: 'system', content: system }, null);
  const last = KEPT.get(session) ?? [];
  const kept = request.messages.map((message, at) => (isKept(message, last[at]) ? last[at] : converted(message)));
  KEPT.set(session, kept);
  for (const { row, message } of kept) rows.add(row, message);
  const tools = (request.tools ?? []).map((one) => convertToOpenAITool(one));
  const sent = rows.sent(await session.windowRows(rows.rows, tools, true));
  return sent
    .filter(({ row, place }) => row.role !== 'system' || place)
    .map(({ row, place, isChanged }) => messageOf(row, place, isChanged));
}

/** A message with its row. What it holds may be changed in place, if it is not a text. */
function converted(message) {
  const { content, tool_calls: calls } = message;
  const row = rowOf(message);
  if (typeof content === 'string') return { message, content, calls, row };
  return { message, content: null, calls, row: structuredClone(row) };
}

function isKept(message, kept) {
  return message === kept?.message && message.content === kept.content && message.tool_calls === kept.calls;
}

function rowOf(message) {
  const kind = message.getType();
  if (kind === 'tool') return outputRow(message.tool_call_id, message.content);
  if (kind === 'ai') {
    const calls = (message.tool_calls ?? []).map(({ id, name, args }) => ({ id: id ?? '', name, args }));
    // Some providers repeat the calls among the parts.
    const content = Array.isArray(message.content)
      ? message.content.filter((part) => !CALL_BLOCKS.has(part.type))
      : message.content;
    return callRow(calls, content);
  }
  return { role: kind === 'system' ? 'system' : 'user', content: message.content };
}

function messageOf(row, message, isChanged) {
  if (!message) {
    return row.role === 'assistant' ? new AIMessage(rowText(row)) : new HumanMessage(rowText(row));
  }
  if (!isChanged || message.getType() !== 'tool') return message;
  const { tool_call_id, name, status, artifact, id } = message;
  return new ToolMessage({ content: row.content, tool_call_id, name, status, artifact, id });
}
