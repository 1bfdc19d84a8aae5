import type { Session, SessionOptions } from './index.js';

export interface TrimtabContext {
  session: Session;
  /** The retrieval tools, for `tools`. */
  tools: any[];
  /** For `callModelInputFilter`. */
  inputFilter: (data: any) => Promise<any>;
  /** A model that is called with a window that fits. */
  model: (inner: any) => any;
}

export function trimtab(options?: SessionOptions): TrimtabContext;
export function fitted(session: Session, instructions: string | undefined, input: any[], tools?: any[]): Promise<any[]>;
