// Trimtab for Mastra agents.
//
//   import { Agent } from '@mastra/core/agent';
//   import { trimtabProcessor } from 'trimtab/mastra';
//
//   const context = trimtabProcessor({ window: 128_000 });
//   const agent = new Agent({
//     ..., tools: { ...tools, ...context.tools },
//     inputProcessors: [context.processor], errorProcessors: [context.processor],
//   });

import { createTool } from '@mastra/core/tools';

import { fitted } from './ai-sdk.js';
import { orUnchanged, recovers } from './hosts.js';
import { Session } from './index.js';

/** One conversation. */
export function trimtabProcessor(options = {}) {
  const session = new Session({ session: 'mastra', ...options });
  const processor = {
    id: 'trimtab',
    processInputStep: ({ tools, state }) => {
      state.tools = Object.entries(tools ?? {}).map(definition);
    },
    // The memory of the agent keeps its messages: only what is sent changes.
    processLLMRequest: async ({ prompt, state }) => ({
      prompt: await orUnchanged(() => fitted(session, { prompt, tools: state.tools }), prompt),
    }),
    processAPIError: ({ error }) => ({ retry: recovers(session, error) }),
  };
  return { session, processor, tools: retrievalTools(session) };
}

const definition = ([name, { description, parameters }]) => ({ name, description, inputSchema: parameters?.jsonSchema });

function retrievalTools(session) {
  const tools = session.tools.map(({ function: { name, description, parameters } }) => {
    const execute = async (args) => session.retrieve(name, args).text;
    return [name, createTool({ id: name, description, inputSchema: parameters, execute })];
  });
  return Object.fromEntries(tools);
}
