// Requests as JSON, encoded as far as they are new.

/** The requests of a conversation, which grows at its end: only new rows are encoded. */
export class EncodedRequests {
  #field;
  // The rows of the last request. They are copies where a program may change its own.
  #rows = [];
  // Its JSON, and where in that its rows begin, each with the comma or bracket before it.
  #json = Buffer.alloc(0);
  #starts = [0];

  constructor(field) {
    this.#field = field;
  }

  /** The request as JSON. `areKept` promises that nobody changes its rows afterwards. */
  encode(request, areKept = false) {
    const rows = isPlain(request) ? request[this.#field] : null;
    if (!Array.isArray(rows) || rows.length === 0) return asJson(request);
    const written = (name) => {
      const text = name === this.#field ? '' : JSON.stringify(request[name]);
      return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
    };
    const names = Object.keys(request);
    const behind = names.indexOf(this.#field) + 1;
    const head = `{${names.slice(0, behind).flatMap(written).join(',')}`;
    const tail = `${[']', ...names.slice(behind).flatMap(written)].join(',')}}`;
    return this.#encode(Buffer.from(head), rows, Buffer.from(tail), areKept);
  }

  #encode(head, rows, tail, areKept) {
    const known = this.#countKnown(rows);
    const added = rows.slice(known);
    const texts = added.map((row, at) => Buffer.from((known + at ? ',' : '[') + (JSON.stringify(row) ?? 'null')));
    const [first] = this.#starts;
    const start = this.#json.subarray(first, this.#starts[known]);
    const encoded = Buffer.concat([head, start, ...texts, tail]);
    this.#starts.length = known + 1;
    for (const text of texts) this.#starts.push(this.#starts.at(-1) + text.length);
    const moved = head.length - first;
    if (moved !== 0) this.#starts = this.#starts.map((place) => place + moved);
    this.#rows.length = known;
    for (const row of added) this.#rows.push(areKept ? row : copied(row));
    this.#json = encoded;
    return encoded;
  }

  /** How many rows at the beginning are those of the last request. */
  #countKnown(rows) {
    const known = this.#rows;
    const count = Math.min(rows.length, known.length);
    for (let at = 0; at < count; at += 1) {
      if (rows[at] !== known[at] && !isSame(rows[at], known[at])) return at;
    }
    return count;
  }
}

/** A value as JSON. */
export function asJson(value) {
  return Buffer.from(JSON.stringify(value));
}

// What may have a JSON of its own: it is the same as nothing, and encoded each time.
const FOREIGN = Symbol('foreign');

/** A copy that shares texts, so that comparing them takes no time. JSON has no undefined fields. */
function copied(value) {
  if (Array.isArray(value)) return value.map(copied);
  if (!isPlain(value)) return typeof value === 'object' && value !== null ? FOREIGN : value;
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(fields.map(([key, inner]) => [key, copied(inner)]));
}

function isSame(value, copy) {
  if (typeof copy !== 'object' || copy === null) return value === copy;
  if (Array.isArray(copy)) {
    return Array.isArray(value) && value.length === copy.length && copy.every((inner, at) => isSame(value[at], inner));
  }
  if (!isPlain(value)) return false;
  // Loops without lists of keys, because there are thousands of rows.
  let more = 0;
  for (const key in value) if (value[key] !== undefined) more += 1;
  for (const key in copy) {
    if (!isSame(value[key], copy[key])) return false;
    more -= 1;
  }
  return more === 0;
}

function isPlain(value) {
  if (typeof value !== 'object' || value === null || typeof value.toJSON === 'function') return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
