// The package itself: windows, errors, threads and memory.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { Session, TrimtabError } from 'trimtab';

const PRESETS = ['steady', 'refs', 'checkpoint', 'turns', 'archive', 'retention', 'none'];
const LINE = 'all is well in this line\n';
const LOG = LINE.repeat(20_000);

function request(rounds, output = LOG) {
  const messages = [];
  for (let at = 0; at < rounds; at += 1) {
    const call = { id: `c${at}`, type: 'function', function: { name: 'read', arguments: '{}' } };
    messages.push(
      { role: 'user', content: `step ${at}`, x_row: at },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: `c${at}`, content: output },
    );
  }
  return { model: 'm', messages, x_host: [1, { a: null }] };
}

test('a window fits and unknown fields survive', async () => {
  const session = new Session({ window: 20_000 });
  const sent = await session.windowAsync(request(6));
  assert(JSON.stringify(sent).length < 80_000);
  assert.deepEqual(sent.x_host, [1, { a: null }]);
  assert.equal(sent.messages[0].x_row, 0);
  assert.deepEqual(session.window(request(6)), sent);
  const { tokens_before, tokens_after } = session.usage();
  assert(tokens_before > 10 * tokens_after);
});

test('the package contains its types and licences', () => {
  const lib = dirname(fileURLToPath(import.meta.resolve('trimtab')));
  for (const name of ['index.d.ts', '../LICENSE-MIT', '../LICENSE-APACHE', '../README.md']) {
    assert(existsSync(join(lib, name)), name);
  }
});

test('errors have a code and a hint', async () => {
  const wrong = { code: 'bad-input', message: /hint: / };
  assert.throws(() => new Session({ preset: 'stead' }), wrong);
  assert.throws(() => new Session({}).window({ input: [] }), TrimtabError);
  await assert.rejects(new Session({}).windowAsync({}), wrong);
  assert.throws(() => new Session({ store: '/proc/nowhere/store' }), { code: 'store' });
});

test('a summary of the host replaces old rounds', async () => {
  const session = new Session({ preset: 'refs', window: 200_000 });
  session.window(request(12));
  const text = '<retain></retain><summary>Twelve logs were read.</summary>';
  assert(await session.compactWith(async () => text));
  assert(JSON.stringify(session.window(request(12))).includes('Twelve logs were read.'));
  assert(session.undo());
});

const IS_LONG = Boolean(process.env.TRIMTAB_LONG);
// The first session of these files is compared in every run, all sessions of all files in the long form.
const RECORDED = ['anthropic_native.jsonl', 'coding_moatless_swebench.jsonl', 'ops_sregym.jsonl'];
// A view names the file of an output that was too long for a window; its name is random.
const FILE = /\/(ours|them)\/spills\/[0-9a-f]{32}/g;

/** The requests of recorded sessions, with their dialects. */
function* recorded(context) {
  const folder = process.env.TRIMTAB_RECORDINGS;
  if (!folder) {
    context.diagnostic('SKIPPED: TRIMTAB_RECORDINGS does not name the folder of recorded sessions');
    return;
  }
  for (const name of IS_LONG ? readdirSync(folder).filter((one) => one.endsWith('.jsonl')) : RECORDED) {
    const lines = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
    for (const line of IS_LONG ? lines : lines.slice(0, 1)) {
      const { format, system, messages } = JSON.parse(line);
      const calls = messages.flatMap(({ role }, at) => (at && role === 'assistant' ? [at] : []));
      const step = Math.max(1, Math.floor(calls.length / (IS_LONG ? 60 : 6)));
      const chosen = calls.filter((_, at) => at % step === 0);
      const requests = chosen.map((count) => ({ system: system ?? undefined, messages: messages.slice(0, count) }));
      yield [format === 'anthropic' ? 'messages' : 'chat', requests];
    }
  }
}

function compare(program, options, requests) {
  const folder = mkdtempSync(join(tmpdir(), 'trimtab-'));
  // Their names are as long as each other, because the views may contain them.
  const [ours, theirs] = ['ours', 'them'].map((name) => join(folder, name));
  // Refs are derived from a secret that the first output of a session creates.
  new Session({ session: 's', store: ours }).showOutput('read', 'c', 'first');
  cpSync(ours, theirs, { recursive: true });
  const input = requests.map((one) => JSON.stringify(one)).join('\n');
  const output = execFileSync(program, [JSON.stringify({ ...options, store: theirs })], { input, maxBuffer: 1 << 30 });
  const lines = output.toString().trimEnd().split('\n');
  const session = new Session({ ...options, store: ours });
  for (const [at, line] of lines.entries()) {
    const expected = JSON.parse(line.slice(line.indexOf(' ')));
    const [made, wanted] = [session.window(requests[at]), expected].map((one) => JSON.stringify(one).replaceAll(FILE, ''));
    assert(made === wanted, `${JSON.stringify(options)}, request ${at}`);
  }
  assert.equal(lines.length, requests.length);
  rmSync(folder, { recursive: true });
}

test('windows have the bytes of the library', (context) => {
  const program = process.env.TRIMTAB_WINDOWS;
  if (!program) return context.skip('TRIMTAB_WINDOWS does not name the example `windows` of trimtab-binding');
  // Other outputs would be another history, with refs of its own.
  const whole = request(12, LINE.repeat(600));
  const counts = Array.from({ length: 12 }, (_, at) => 3 * at + 3);
  const own = counts.map((count) => ({ ...whole, messages: whole.messages.slice(0, count) }));
  let compared = 0;
  const all = function* () {
    yield ['chat', own];
    yield* recorded(context);
  };
  for (const [dialect, requests] of all()) {
    for (const preset of PRESETS) {
      compare(program, { session: 's', preset, dialect, window: 20_000, max_output: 1_000 }, requests);
      compared += requests.length;
    }
  }
  context.diagnostic(`${compared} windows have the bytes of the library`);
});

test('a request as bytes has the same window', () => {
  const body = request(12, LINE.repeat(600));
  const options = { session: 's', window: 20_000, max_output: 1_000 };
  const bytes = new Session(options).windowBytes(new TextEncoder().encode(JSON.stringify(body)));
  const refs = (value) => JSON.stringify(value).replace(/[a-z2-7]{16}/g, 'REF');
  assert.equal(refs(JSON.parse(bytes)), refs(new Session(options).window(body)));
  assert.throws(() => new Session(options).windowBytes(new TextEncoder().encode('{')), { code: 'bad-input' });
});

test('a row that is changed in place is sent as it is now', () => {
  const session = new Session({ window: 20_000 });
  const body = request(3, 'short');
  assert.deepEqual(session.window(body), body);
  const [, { tool_calls }] = body.messages;
  tool_calls[0].function.arguments = '{"now": 1}';
  assert.deepEqual(session.window(body).messages, body.messages);
  body.messages[3].x_row = { toJSON: () => 'text' };
  assert.equal(session.window(body).messages[3].x_row, 'text');
  delete body.messages[0].x_row;
  body.messages[0].x_other = 0;
  body.messages.length = 3;
  body.tools = undefined;
  assert.deepEqual(session.window(body), { model: 'm', messages: body.messages, x_host: [1, { a: null }] });
});

test('documented code imports what there is', async (context) => {
  const pages = process.env.TRIMTAB_DOCS;
  if (!pages) return context.skip('TRIMTAB_DOCS does not name the pages');
  const texts = pages.split(delimiter).map((page) => readFileSync(page, 'utf8'));
  const blocks = texts.flatMap((text) => [...text.matchAll(/```js\n([^]*?)```/g)].map(([, block]) => block));
  const lines = blocks.flatMap((block) => [...block.matchAll(/^import \{ (.+) \} from '(trimtab.*)';$/gm)]);
  assert(lines.length > 2, `${lines.length} imports`);
  for (const [line, names, module] of lines) {
    const file = fileURLToPath(import.meta.resolve(module));
    const exported = readFileSync(file, 'utf8');
    for (const name of names.split(', ')) {
      assert.match(exported, new RegExp(`export (async )?(class|function|const) ${name}\\b`), line);
    }
  }
});

// The long form is a hundred thousand calls.
const CALLS = IS_LONG ? 100_000 : 5_000;

test('memory stays after many calls', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const used = () => {
    collect();
    return process.memoryUsage().rss;
  };
  const session = new Session({ window: 20_000 });
  const body = request(2, LINE.repeat(1_000));
  const call = (times) => {
    for (let at = 0; at < times; at += 1) {
      session.window(body);
      session.usage();
    }
  };
  call(2_000);
  const before = used();
  call(CALLS);
  const grown = used() - before;
  assert(grown < 32 << 20, `${CALLS} calls: ${grown} bytes more`);
});
