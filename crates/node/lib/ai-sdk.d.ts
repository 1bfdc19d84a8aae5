import type { Session, SessionOptions } from './index.js';

export interface TrimtabMiddleware {
  session: Session;
  /** For `wrapLanguageModel`. */
  middleware: any;
  /** For `generateText` and `streamText`, where the model cannot be wrapped. It cannot retry. */
  prepareStep: (step: { messages: any[]; steps: any[] }) => Promise<{ messages: any[] }>;
  /** The retrieval tools, for `tools`. */
  tools: Record<string, any>;
}

export function trimtabMiddleware(
  options?: SessionOptions & { specificationVersion?: string },
): TrimtabMiddleware;
export function retrievalTools(session: Session): Record<string, any>;
export function fitted(session: Session, params: any): Promise<any[]>;
