import type { Session, SessionOptions } from './index.js';

/** A middleware for `createAgent`. */
export function trimtabMiddleware(options?: SessionOptions): any;
export function fitted(session: Session, request: any): Promise<any[]>;
