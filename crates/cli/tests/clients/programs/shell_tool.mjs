// What the programs for Node share: their arguments, and a tool that runs commands.
//
// All are started as `node PROGRAM URL TASK MODE FOLDER` in the folder that the task is about;
// FOLDER is where their libraries are installed.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const [URL, TASK, MODE, FOLDER] = process.argv.slice(2);
export const KEY = "sk-test";
export const ABOUT = "Run a shell command and return all that it prints.";
export const SCHEMA = {
  type: "object",
  properties: { command: { type: "string" } },
  required: ["command"],
  additionalProperties: false,
};
// More calls than any session has.
export const MOST_CALLS = 80;

const require = createRequire(`${FOLDER}/`);

/** Loads a library from FOLDER. */
export async function load(name) {
  return import(pathToFileURL(require.resolve(name)));
}

export function bash(command) {
  const done = spawnSync("bash", ["-c", command], { encoding: "utf8", maxBuffer: 64 << 20 });
  return done.stdout + done.stderr + (done.status ? `\n[exit code ${done.status}]` : "");
}
