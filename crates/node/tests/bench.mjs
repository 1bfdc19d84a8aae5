// One call at 5,000 messages: the package against the Rust library, and against the trimming of
// LangChain.js, in one run.
//
//   node bench.mjs WINDOWS
//
// WINDOWS is the example `windows` of trimtab-binding; build it and the package with optimisation:
//
//   cargo build --release -p trimtab-binding --example windows
//   ./package node
//
// Prints figures; nothing depends on them.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { AIMessage, HumanMessage, ToolMessage, trimMessages } from '@langchain/core/messages';
import { Session } from 'trimtab';
import { fitted } from 'trimtab/langchain';

const MESSAGES = 5_000;
const WINDOW = 100_000;
const CALLS = 20;
const TEXT = 'all is well in this line of the log, nothing to see, go on. '.repeat(6);

function rows(count) {
  const made = [];
  while (made.length < count) {
    const at = made.length;
    const call = { id: `c${at}`, type: 'function', function: { name: 'read', arguments: '{}' } };
    made.push(
      { role: 'user', content: `${at} ${TEXT}` },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: `c${at}`, content: `${at} ${TEXT}` },
      { role: 'assistant', content: `${at} done` },
    );
  }
  return made.slice(0, count);
}

/** The rows of a conversation that grows to these, and then by one row at each call. */
function* grown(made) {
  for (let count = 500; count <= made.length; count += 500) yield made.slice(0, count);
  const more = Array.from({ length: CALLS }, (_, at) => ({ role: 'user', content: `more ${at}` }));
  for (let count = 1; count <= CALLS; count += 1) yield [...made, ...more.slice(0, count)];
}

function message({ role, content, tool_call_id, tool_calls }) {
  if (role === 'user') return new HumanMessage(content);
  if (role === 'tool') return new ToolMessage({ content, tool_call_id });
  const calls = (tool_calls ?? []).map(({ id }) => ({ id, name: 'read', args: {}, type: 'tool_call' }));
  return new AIMessage({ content: content ?? '', tool_calls: calls });
}

/** Gives what the calls take in Rust. */
function library(program) {
  const run = spawn(program, [JSON.stringify({ window: WINDOW })], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: run.stdout })[Symbol.asyncIterator]();
  const call = async (request) => {
    run.stdin.write(`${request}\n`);
    return parseInt((await lines.next()).value) / 1000;
  };
  return { call, end: () => run.stdin.end() };
}

async function milliseconds(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const tokens = (messages) => messages.reduce((sum, { content }) => sum + content.length / 4 + 3, 0);
const rust = library(process.argv[2]);
const [session, ofBytes, adapted] = Array.from({ length: 3 }, () => new Session({ window: WINDOW }));
const taken = { Rust: [], 'trimtab, bytes': [], 'trimtab, objects': [], 'trimtab/langchain': [], trimMessages: [] };
let size;
const steps = [...grown(rows(MESSAGES))];
// An agent keeps its messages, and adds to them.
const hosted = steps.at(-1).map(message);
// All in turn at each step, so that other work on the machine slows all of them.
for (const step of steps) {
  const request = { messages: step };
  const encoded = JSON.stringify(request);
  const messages = hosted.slice(0, step.length);
  const trim = () => trimMessages(messages, { maxTokens: WINDOW, strategy: 'last', tokenCounter: tokens });
  taken.Rust.push(await rust.call(encoded));
  const bytes = Buffer.from(encoded);
  taken['trimtab, bytes'].push(await milliseconds(() => ofBytes.windowBytes(bytes)));
  taken['trimtab, objects'].push(await milliseconds(() => session.window(request)));
  taken['trimtab/langchain'].push(await milliseconds(() => fitted(adapted, { messages })));
  taken.trimMessages.push(await milliseconds(trim));
  size = encoded.length;
}
rust.end();
const best = Object.fromEntries(Object.entries(taken).map(([name, times]) => [name, Math.min(...times.slice(-CALLS))]));
console.log(`one call at ${MESSAGES} messages, ${(size / 1e6).toFixed(1)} MB, the fastest of ${CALLS}`);
for (const [name, time] of Object.entries(best)) {
  const [ours, theirs] = [time / best.Rust, best.trimMessages / time].map((ratio) => ratio.toFixed(2));
  console.log(`${name.padEnd(18)} ${time.toFixed(2)} ms, ${ours} times Rust; trimMessages takes ${theirs} times as long`);
}
