// A conversation, and the window of it that is sent to the model.

import { createRequire } from 'node:module';

import { EncodedRequests, asJson } from './encoded.js';

const { NativeSession } = createRequire(import.meta.url)('../trimtab.node');

export const READ_TOOL = 'tool_output_cache';
export const GREP_TOOL = 'tool_output_cache_grep';

/** Trimtab could not do it. `code` is 'bad-input', 'too-large', 'store' or 'internal'. */
export class TrimtabError extends Error {
  constructor(message, code) {
    super(message);
    this.name = 'TrimtabError';
    this.code = code;
  }
}

const value = (text) => (text == null ? null : JSON.parse(text));

function typed(error) {
  const found = /^(bad-input|too-large|store|internal): ([^]*)$/.exec(error?.message ?? '');
  return found ? new TrimtabError(found[2], found[1]) : error;
}

function checked(work) {
  try {
    return work();
  } catch (error) {
    throw typed(error);
  }
}

export class Session {
  #native;
  #list;
  #requests;

  constructor(options = {}) {
    this.#list = options.dialect === 'responses' ? 'input' : 'messages';
    this.#requests = new EncodedRequests(this.#list);
    this.#native = checked(() => new NativeSession(asJson(options)));
  }

  window(request) {
    return checked(() => value(this.#native.window(this.#requests.encode(request))));
  }

  windowBytes(request) {
    const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
    return checked(() => Buffer.from(this.#native.window(bytes)));
  }

  async windowAsync(request) {
    try {
      return value(await this.#native.windowAsync(this.#requests.encode(request)));
    } catch (error) {
      throw typed(error);
    }
  }

  /** `areKept` promises that nobody changes the rows afterwards. */
  async windowRows(rows, tools, areKept = false) {
    const request = tools ? { [this.#list]: rows, tools } : { [this.#list]: rows };
    try {
      const encoded = this.#requests.encode(request, areKept);
      const { changed, sources, ...figures } = await this.#native.rowsAsync(encoded);
      const own = sources.map((at) => (at < 0 ? null : at));
      const others = value(changed).values();
      return { rows: own.map((at) => (at === null ? others.next().value : rows[at])), sources: own, ...figures };
    } catch (error) {
      throw typed(error);
    }
  }

  check(request) {
    return checked(() => value(this.#native.check(this.#requests.encode(request))));
  }

  compact(instructions = '') {
    return checked(() => value(this.#native.compact(instructions)));
  }

  answer(text) {
    return checked(() => value(this.#native.answer(text ?? undefined)));
  }

  async compactWith(summarise, instructions = '') {
    let request = this.compact(instructions);
    const found = request !== null;
    while (request !== null) request = this.answer(await summarise(request));
    return found;
  }

  admit(rows) {
    return checked(() => this.#native.admit(asJson(rows)));
  }

  showOutput(tool, callId, text) {
    const { id, ...shown } = checked(() => this.#native.showOutput(tool, callId, text));
    return { ...shown, ref: id };
  }

  recover(error, status) {
    const found = errorOf(error);
    return checked(() => this.#native.recover(status ?? found.status, Buffer.from(found.body)));
  }

  undo() {
    return checked(() => this.#native.undo());
  }

  get tools() {
    return value(this.#native.retrievalTools());
  }

  retrieve(tool, args) {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    return checked(() => this.#native.retrieve(tool, text));
  }

  record(usage) {
    checked(() => this.#native.record(asJson(usage)));
  }

  usage() {
    return checked(() => value(this.#native.usage()));
  }
}

/** The status and the body of an error, as far as an exception of an SDK tells. */
export function errorOf(error) {
  if (typeof error === 'string') return { status: 400, body: error };
  const status = error?.statusCode ?? error?.status;
  const known = Number.isInteger(status) && status >= 100 && status <= 999 ? status : undefined;
  if (known === undefined && error?.cause) return errorOf(error.cause);
  const inner = error?.responseBody ?? (error?.error && JSON.stringify({ error: error.error }));
  return { status: known ?? 400, body: inner ?? String(error?.message ?? error) };
}
