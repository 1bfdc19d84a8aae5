import type { Session, SessionOptions } from './index.js';

export interface TrimtabProcessor {
  session: Session;
  /** For `inputProcessors` and `errorProcessors`. */
  processor: any;
  /** The retrieval tools, for `tools`. */
  tools: Record<string, any>;
}

export function trimtabProcessor(options?: SessionOptions): TrimtabProcessor;
