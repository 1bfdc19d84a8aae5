// Trimtab as a plugin of opencode: outputs are short in its own history.
//
// In opencode.json:  { "plugin": ["trimtab/opencode"] }

import { homedir } from 'node:os';
import { join } from 'node:path';

import { Session } from './index.js';

const OWN_COMMAND = 'trimtab output ';

/** The window of the models that opencode talks to, where TRIMTAB_WINDOW does not say another. */
const WINDOW = 200_000;

/** The folder that `trimtab output read` looks into. */
function storeFolder() {
  const { TRIMTAB_STORE, XDG_DATA_HOME } = process.env;
  return TRIMTAB_STORE || join(XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'trimtab');
}

export const TrimtabPlugin = async () => {
  const sessions = new Map();
  const sessionOf = (id) => {
    if (!sessions.has(id)) {
      const window = Number(process.env.TRIMTAB_WINDOW) || WINDOW;
      const options = { session: `opencode/${id}`, store: storeFolder(), window, retrieval: false };
      sessions.set(id, new Session(options));
    }
    return sessions.get(id);
  };
  return {
    'tool.execute.after': async ({ tool, sessionID, callID, args }, output) => {
      if (typeof output.output !== 'string' || args?.command?.includes(OWN_COMMAND)) return;
      try {
        const shown = sessionOf(sessionID).showOutput(tool, callID, output.output);
        if (!shown.shortened) return;
        const read = (line) =>
          `trimtab output read --session 'opencode/${sessionID}' ${shown.ref} --offset ${line} --limit 200`;
        const call = new RegExp(`tool_output_cache\\(\\{"ref_id":"${shown.ref}"(?:,"offset":(\\d+))?[^)]*\\}\\)`, 'g');
        output.output = shown.text.replace(call, (_, line) => read(line ?? 0));
      } catch (error) {
        process.emitWarning(`trimtab: the output stays as it came: ${error.message}`);
      }
    },
  };
};

export default TrimtabPlugin;
