export type Dialect = 'chat' | 'responses' | 'messages';

export interface SessionOptions {
  /** The name of the session in the store. */
  session?: string;
  /** The shape of the requests; 'chat' without it. */
  dialect?: Dialect;
  preset?: string;
  /** The folder of the store; everything stays in memory without it. */
  store?: string;
  /** The model, whose window is looked up. */
  model?: string;
  /** The window of the model in tokens. */
  window?: number;
  /** The longest answer in tokens. */
  max_output?: number;
  /** False if the model does not have the retrieval tools. */
  retrieval?: boolean;
  /** Other settings, as `trimtab config show` lists them. */
  settings?: Record<string, unknown>;
}

export interface WindowRows<Row = any> {
  rows: Row[];
  /** For each row, the row of the request that it is; null if it was changed or added. */
  sources: (number | null)[];
  tokens: number;
  maxOutput?: number;
  /** Why the window does not fit, if it does not. */
  misfit?: string;
}

export interface SessionFigures {
  session: string;
  messages: number;
  window_messages: number;
  tokens_before: number;
  tokens_after: number;
  window: number | null;
  compactions: number;
  reported: number | null;
}

export const READ_TOOL: 'tool_output_cache';
export const GREP_TOOL: 'tool_output_cache_grep';

export class TrimtabError extends Error {
  code: 'bad-input' | 'too-large' | 'store' | 'internal';
}

/** A conversation of an agent. */
export class Session {
  constructor(options?: SessionOptions);
  /** The request to send instead of `request`, which has the whole conversation. */
  window<Request extends object>(request: Request): Request;
  /** The same for requests as JSON bytes. */
  windowBytes(request: Uint8Array): Buffer;
  /** Like `window`, on another thread. */
  windowAsync<Request extends object>(request: Request): Promise<Request>;
  /** The rows to send instead of `rows`, and which of them are unchanged. */
  windowRows<Row>(rows: Row[], tools?: unknown[]): Promise<WindowRows<Row>>;
  /** The request for a summary, if it is time for one; `answer` takes the summary. */
  check(request: object): any | null;
  /** Compacts now: the request for the summary, or null if there is nothing to replace. */
  compact(instructions?: string): any | null;
  /** Takes a summary; null makes one from excerpts. Gives the next request, if there is one. */
  answer(text: string | null): any | null;
  compactWith(summarise: (request: any) => Promise<string>, instructions?: string): Promise<boolean>;
  /** Appends rows that came since the last request; gives the number of messages. */
  admit(rows: unknown[]): number;
  /** Stores one output and gives what the model should see of it. */
  showOutput(tool: string, callId: string, text: string): { text: string; ref: string; shortened: boolean };
  /** Makes the window smaller after the provider refused it; true if it should be sent again. */
  recover(error: unknown, status?: number): boolean;
  /** Takes the newest plan back; false if there is none. */
  undo(): boolean;
  /** The definitions of the two retrieval tools, in the session's dialect. */
  readonly tools: any[];
  /** Answers a call of one of the retrieval tools. */
  retrieve(tool: string, args: string | object): { text: string; isError: boolean };
  /** Takes the usage that the provider reported for the last window. */
  record(usage: object): void;
  usage(): SessionFigures;
}

export function errorOf(error: unknown): { status: number; body: string };
