// What the adapters share: rows of a host's messages, and the way back.

import { TrimtabError } from './index.js';

/** The messages of a host as Chat rows, and the place that each one comes from. */
export class HostRows {
  rows = [];
  #places = [];

  add(row, place) {
    this.rows.push(row);
    this.#places.push(place);
  }

  /** The rows of a window: each with its place, null for a row of ours. */
  sent(window) {
    let behind = -1;
    return window.rows.map((row, at) => {
      let source = window.sources[at];
      const isChanged = source === null;
      if (isChanged) source = this.#find(row, behind + 1);
      if (source === null) return { row, place: null, isChanged: true };
      behind = source;
      return { row, place: this.#places[source], isChanged };
    });
  }

  /** The first row from `start` on that makes or answers one of the calls of `row`. */
  #find(row, start) {
    const wanted = new Set(keys(row));
    if (wanted.size === 0) return null;
    for (let at = start; at < this.rows.length; at += 1) {
      if (keys(this.rows[at]).some((key) => wanted.has(key))) return at;
    }
    return null;
  }
}

function keys(row) {
  if (row.role === 'tool') return [`output ${row.tool_call_id}`];
  return (row.tool_calls ?? []).map((call) => `call ${call.id}`);
}

/** An assistant row. Each call has an id, a name and arguments. */
export function callRow(calls, content) {
  const row = { role: 'assistant', content: content || null };
  if (calls.length > 0) {
    row.tool_calls = calls.map(({ id, name, args }) => ({
      id,
      type: 'function',
      function: { name, arguments: textOf(args) },
    }));
  }
  return row;
}

export const outputRow = (id, content) => ({ role: 'tool', tool_call_id: id, content });

/** A value as text: JSON unless it is a text already. */
export const textOf = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/** The text of a row of ours. */
export function rowText(row) {
  if (typeof row.content === 'string') return row.content;
  return (row.content ?? []).map((part) => part.text ?? '').join('\n');
}

/** The result of `work`; if Trimtab itself fails, what there was, with a warning. */
export async function orUnchanged(work, unchanged) {
  try {
    return await work();
  } catch (error) {
    process.emitWarning(`trimtab: the request is sent unchanged: ${error.message}`);
    return unchanged;
  }
}

/**
 * Tells the session what the provider counted, so that it learns what it cannot see: the
 * instructions and tools of some hosts, and how the provider counts.
 */
export function recordUsage(session, prompt, answer) {
  if (!(prompt > 0)) return;
  try {
    session.record({ prompt_tokens: prompt, completion_tokens: answer ?? 0 });
  } catch (error) {
    process.emitWarning(`trimtab: the usage is not recorded: ${error.message}`);
  }
}

/** Calls until the provider accepts the window, or the error is not about its size. */
export async function withRecovery(session, call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!recovers(session, error)) throw error;
    }
  }
}

/** True if the request was refused for its size, and a smaller window was made. */
export function recovers(session, error) {
  try {
    return session.recover(error);
  } catch (own) {
    if (own instanceof TrimtabError) return false;
    throw own;
  }
}
