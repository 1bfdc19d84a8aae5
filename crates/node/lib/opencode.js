// Trimtab as a plugin of opencode: what is sent to the model fits; opencode's own history stays.
//
// In opencode.json:  { "plugin": ["file:///path/to/node_modules/trimtab/lib/opencode.js"] }

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

import { HostRows, callRow, orUnchanged, outputRow, recordUsage, recovers, rowText } from './hosts.js';
import { Session, TrimtabError } from './index.js';

/** The window of a model, in tokens, if opencode does not know it. */
const WINDOW = 200_000;
/** How many lines the command reads that a view names. */
const LINES = 200;

/** The folder that `trimtab output read` looks into. */
function storeFolder() {
  const { TRIMTAB_STORE, XDG_DATA_HOME } = process.env;
  return TRIMTAB_STORE || join(XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'trimtab');
}

/** The windows that providers named when they refused a request, by model. */
function learnedWindows() {
  try {
    return JSON.parse(readFileSync(learnedFile(), 'utf8')) ?? {};
  } catch {
    return {};
  }
}

function learnedFile() {
  const state = process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state');
  return join(state, 'trimtab', 'opencode-windows.json');
}

/** Keeps a window for later processes: each `opencode run` is one. */
function keepWindow(model, window) {
  try {
    mkdirSync(dirname(learnedFile()), { recursive: true });
    writeFileSync(learnedFile(), JSON.stringify({ ...learnedWindows(), [model]: window }));
  } catch {
    // Without the file, the next process learns it again.
  }
}

export const TrimtabPlugin = async ({ client } = {}) => {
  const sessions = new Map();
  const windows = new Map();
  const models = new Map();
  const sessionOf = (id) => {
    const window = windows.get(id) ?? WINDOW;
    if (sessions.get(id)?.window !== window) {
      const session = new Session({ session: `opencode/${id}`, store: storeFolder(), window });
      sessions.set(id, { window, session });
    }
    return sessions.get(id).session;
  };
  return {
    'chat.params': async ({ sessionID, model }) => {
      const window = smallest(model?.limit?.context, learnedWindows()[models.get(sessionID)]);
      if (window) windows.set(sessionID, window);
    },
    event: async ({ event }) => {
      const { sessionID, error } = event.properties ?? {};
      if (event.type !== 'session.error' || error?.name !== 'ContextOverflowError' || !sessionID) return;
      // opencode ends the turn with the error; the window of the next one is smaller.
      const session = sessionOf(sessionID);
      recovers(session, { statusCode: 400, ...error.data });
      const window = windowOf(session);
      // Only a limit that the error named is below the window that we knew.
      if (!(window < sessions.get(sessionID).window)) return;
      windows.set(sessionID, window);
      sessions.set(sessionID, { window, session });
      if (models.has(sessionID)) keepWindow(models.get(sessionID), window);
    },
    'experimental.chat.messages.transform': async (_, output) => {
      const { messages } = output;
      const id = messages.at(-1)?.info.sessionID;
      if (!id) return;
      // `chat.params` comes after this hook, so that it is too late for the first call of a process.
      const model = modelOf(messages);
      models.set(id, model && `${model.providerID}/${model.modelID}`);
      if (!windows.has(id)) {
        const window = smallest(await knownWindow(client, model), learnedWindows()[models.get(id)]);
        if (window) windows.set(id, window);
      }
      const sent = await orUnchanged(() => fitted(sessionOf(id), id, messages), messages);
      // opencode goes on with the same list.
      messages.splice(0, messages.length, ...sent);
    },
  };
};

export default TrimtabPlugin;

/** The window that a session keeps to. */
function windowOf(session) {
  try {
    return session.usage().window;
  } catch (own) {
    if (own instanceof TrimtabError) return undefined;
    throw own;
  }
}

/** The smallest of the known windows; none if none is known. */
function smallest(...windows) {
  const known = windows.filter((window) => window > 0);
  return known.length > 0 ? Math.min(...known) : undefined;
}

/** The model that answers. */
function modelOf(messages) {
  return messages.findLast(({ info }) => info.role === 'user')?.info.model;
}

/** The window of a model, as far as opencode knows it. */
async function knownWindow(client, model) {
  try {
    const { data } = await client.config.providers();
    const provider = data.providers.find(({ id }) => id === model.providerID);
    return provider.models[model.modelID].limit.context;
  } catch {
    return undefined;
  }
}

/** The messages to send. */
async function fitted(session, id, messages) {
  recordLast(session, messages);
  const rows = rowsOf(messages);
  const sent = [];
  for (const { row, place, isChanged } of rows.sent(await session.windowRows(rows.rows))) {
    const text = withReadCommand(rowText(row), id);
    if (!place) sent.push(newMessage(messages, `trimtab_${sent.length}`, text));
    else if (!place.part) sent.push(place.message);
    else if (isChanged) sent[sent.length - 1] = withOutput(sent.at(-1), place.part, text);
  }
  return sent;
}

/** Tells what the last answer cost, so that instructions and tools are counted, which we do not see. */
function recordLast(session, messages) {
  const answers = messages.filter(({ info }) => info.role === 'assistant' && info.tokens?.input > 0);
  const { tokens } = answers.at(-1)?.info ?? {};
  if (!tokens) return;
  recordUsage(session, tokens.input + (tokens.cache?.read ?? 0) + (tokens.cache?.write ?? 0), tokens.output);
}

function rowsOf(messages) {
  const rows = new HostRows();
  for (const message of messages) {
    const texts = message.parts.filter((part) => part.type === 'text' && !part.ignored);
    const text = texts.map((part) => part.text).join('\n');
    if (message.info.role === 'user') {
      rows.add({ role: 'user', content: text }, { message });
      continue;
    }
    const calls = message.parts.filter((part) => part.type === 'tool');
    rows.add(callRow(calls.map(({ callID, tool, state }) => ({ id: callID, name: tool, args: state.input })), text), { message });
    for (const part of calls) {
      rows.add(outputRow(part.callID, part.state.output ?? part.state.error ?? ''), { message, part });
    }
  }
  return rows;
}

/** A message with another output of one of its tools. */
function withOutput(message, part, output) {
  const parts = message.parts.map((one) => (one === part ? { ...one, state: { ...one.state, output } } : one));
  return { ...message, parts };
}

function newMessage(messages, id, text) {
  const { info } = messages.find((message) => message.info.role === 'user') ?? messages[0];
  const part = { type: 'text', text, synthetic: true, id: `prt_${id}`, sessionID: info.sessionID, messageID: id };
  return { info: { ...info, role: 'user', id }, parts: [part] };
}

/** The agent has a shell, and no retrieval tools of ours. */
function withReadCommand(text, id) {
  const call = /tool_output_cache\(\{"ref_id":"([a-z2-7]{16})"(?:,"offset":(\d+))?[^)]*\}\)/g;
  return text.replace(
    call,
    (_, ref, line) => `trimtab output read --session 'opencode/${id}' ${ref} --offset ${line ?? 0} --limit ${LINES}`,
  );
}
