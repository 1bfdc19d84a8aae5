import type { Session, SessionOptions } from './index.js';

export interface TrimtabContext {
  session: Session;
  /** The retrieval tools, for `tools`. */
  tools: any[];
  /** For `callModelInputFilter`. */
  inputFilter: (data: any) => Promise<any>;
  /** True if the provider refused a request for its size, and the next window will be smaller. */
  recover: (error: unknown) => boolean;
  /** The items of the last request of `inputFilter`, to run again with after `recover`. */
  lastInput: any[];
  /** A model that is called with a window that fits. */
  model: (inner: any) => any;
}

export function trimtab(options?: SessionOptions): TrimtabContext;
export function fitted(session: Session, instructions: string | undefined, input: any[], tools?: any[]): Promise<any[]>;
