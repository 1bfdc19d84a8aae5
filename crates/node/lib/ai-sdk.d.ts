import type { Session, SessionOptions } from './index.js';

export interface TrimtabMiddleware {
  session: Session;
  /** For `wrapLanguageModel`. */
  middleware: any;
  /** For `generateText` and `streamText`, where the model cannot be wrapped. */
  prepareStep: (step: { messages: any[]; steps: any[] }) => Promise<{ messages: any[] }>;
  /** True if the provider refused a step for its size, and the next window will be smaller. */
  recover: (error: unknown) => boolean;
  /** The messages of the last step of `prepareStep`, to generate again with after `recover`. */
  lastInput: any[];
  /** The retrieval tools, for `tools`. */
  tools: Record<string, any>;
}

export function trimtabMiddleware(
  options?: SessionOptions & { specificationVersion?: string },
): TrimtabMiddleware;
export function retrievalTools(session: Session): Record<string, any>;
export function fitted(session: Session, params: any): Promise<any[]>;
