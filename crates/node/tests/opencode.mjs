// The plugin in the real opencode: rounds of two parallel calls with outputs up to 5 MB, a provider with
// a window of 20,000 tokens, and one line read back with the command that a view names. Without the
// plugin the same session must fail. In a third run, opencode is told a window that is too large, so
// that the provider refuses a request, and the session goes on with a smaller one. In another run, a
// session that is already too long gets the plugin.
//
// node opencode.mjs OPENCODE TRIMTAB

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// 48 KB, which opencode itself shows whole, and 5 MB, of which it gives us a part.
const PRINT = (round) => `for i in $(seq 0 1899); do echo "round ${round}, line $i of a long log"; done`;
const PRINT_LONG = 'seq 1 740000';
const ROUNDS = 8;
const NEEDLE = 'round 0, line 911 of a long log';
const WINDOW = 20_000;
const LIMIT = 180_000;
/** How often a session is continued after an error. */
const MOST_RUNS = 3;

/** What the model calls or says, given the text of the request. */
function play(step, text) {
  if (step < ROUNDS) return { commands: [PRINT(step), step === ROUNDS - 1 ? PRINT_LONG : PRINT(ROUNDS + step)] };
  if (step === ROUNDS) {
    const named = /trimtab output read (--session 'opencode\/[^']+') [a-z2-7]{16}/.exec(text);
    const command = `trimtab output grep ${named?.[1]} --all '${NEEDLE}'`;
    return named ? { commands: [command] } : { said: 'failed: no view names the command' };
  }
  return { said: text.split(NEEDLE).length > 2 ? 'found the line' : 'failed: not found' };
}

function chunks(id, { commands, said }, tokens) {
  const calls = commands?.map((command, index) => {
    const args = JSON.stringify({ command, description: 'prints' });
    return { index, id: `${id}_${index}`, type: 'function', function: { name: 'bash', arguments: args } };
  });
  const delta = { role: 'assistant', ...(calls ? { tool_calls: calls } : { content: said }) };
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
  const usage = { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 };
  return [
    { ...head, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: calls ? 'tool_calls' : 'stop' }], usage },
  ];
}

/** A model on loopback, with what it saw. */
function provider() {
  const seen = { requests: [], refused: 0 };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    // Requests without tools, for a title, are not part of the conversation.
    const isPart = Boolean(JSON.parse(text).tools);
    const tokens = Math.round(text.length / 4);
    if (tokens > WINDOW) {
      seen.refused += 1;
      const message = `This model's maximum context length is ${WINDOW} tokens. However, your messages resulted in ${tokens} tokens.`;
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message, code: 'context_length_exceeded' } }));
      return;
    }
    const answer = isPart ? play(seen.requests.length, text) : { said: 'a title' };
    if (isPart) seen.requests.push(text);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const all = chunks(`call_${seen.requests.length}`, answer, tokens);
    response.end(`${all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve({ server, seen })));
}

function settings(url, plugin, window) {
  const model = { name: 'm', tool_call: true, limit: { context: window, output: 1_000 } };
  const options = { baseURL: url, apiKey: 'k' };
  const mine = { npm: '@ai-sdk/openai-compatible', name: 'mine', options, models: { m: model } };
  // Its own compaction would hide what the plugin does.
  return { plugin, provider: { mine }, permission: 'allow', compaction: { auto: false, prune: false } };
}

function environment(folder, trimtab) {
  const place = (name) => join(folder, name);
  return {
    PATH: `${dirname(trimtab)}${delimiter}${process.env.PATH}`,
    HOME: folder,
    XDG_CONFIG_HOME: place('config'),
    XDG_DATA_HOME: place('data'),
    XDG_CACHE_HOME: place('cache'),
    XDG_STATE_HOME: place('state'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    CI: '1',
  };
}

function finished(program, args, options) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT);
  return new Promise((resolve) => child.on('close', (code) => (clearTimeout(timer), resolve({ code, said }))));
}

/** Runs the session in a fresh folder, and continues it after an error if that is wanted. */
async function run(opencode, trimtab, plugin, { window = WINDOW, runs = 1, beginsPlain = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'opencode-'));
  const { server, seen } = await provider();
  try {
    const file = join(folder, 'config', 'opencode', 'opencode.json');
    mkdirSync(dirname(file), { recursive: true });
    const url = `http://127.0.0.1:${server.address().port}/v1`;
    const configure = (plugins) => writeFileSync(file, JSON.stringify(settings(url, plugins, window)));
    configure(beginsPlain ? [] : plugin);
    const work = join(folder, 'work');
    mkdirSync(work);
    const options = { cwd: work, env: environment(folder, trimtab) };
    let { code, said } = await finished(opencode, ['run', '-m', 'mine/m', 'print it'], options);
    if (beginsPlain) {
      configure(plugin);
      seen.refused = 0;
      ({ code, said } = await finished(opencode, ['run', '-c', '-m', 'mine/m', 'go on'], options));
    }
    for (let at = 1; at < runs && code !== 0; at += 1) {
      ({ code, said } = await finished(opencode, ['run', '-c', '-m', 'mine/m', 'go on'], options));
    }
    return { said, ...seen };
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const [opencode, trimtab] = process.argv.slice(2).map((path) => realpathSync(path));
const plain = await run(opencode, trimtab, []);
assert(!plain.said.includes('found the line'), 'the session ends well without the plugin');
assert(plain.refused > 0, `it failed for another reason: ${plain.said.slice(-2_000)}`);
const plugin = fileURLToPath(import.meta.resolve('trimtab/opencode'));
const plugins = [`file://${plugin}`];
const { said, refused, requests } = await run(opencode, trimtab, plugins);
assert(said.includes('found the line'), `${said.slice(-2_000)}\n${requests.at(-1)?.slice(0, 3_000)}`);
assert(!requests.at(-2).includes(NEEDLE), 'the line was never out of the window');
assert.equal(refused, 0);
const largest = Math.max(...requests.map((text) => Math.round(text.length / 4)));
const joined = await run(opencode, trimtab, plugins, { beginsPlain: true });
assert.equal(joined.refused, 0, 'the first request of a process did not fit');
const recovered = await run(opencode, trimtab, plugins, { window: 2 * WINDOW, runs: MOST_RUNS });
assert(recovered.said.includes('found the line'), recovered.said.slice(-2_000));
assert(recovered.refused > 0, 'there was nothing to recover from');
console.log(`opencode: ok, largest request ${largest} of ${WINDOW} tokens`);
