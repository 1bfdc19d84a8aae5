// What a call of the film says in words: its size, its switch point, its cache break.

import { element } from "./elements.js";
import { clock, count, money, plural, short } from "./figures.js";

const WHO = {
  trimtab: "Trimtab changed what was sent before",
  client: "the client changed what it had sent before",
  provider: "the provider no longer had it, although nothing had changed",
  time: "the cache had gone cold: too much time passed since the call before",
};
export const REGIONS = {
  system: "instructions", user: "user", assistant: "assistant", output: "output", ours: "written by Trimtab",
};
export const STATES = {
  whole: "whole", view: "shown in part", placeholder: "placeholder",
  hidden: "hidden", summary: "summary", repaired: "repaired",
};

/** The cache breaks of a film: for each, its column, and what was kept. */
export function breaksOf(film, calls) {
  const columnOf = new Map(film.columns.map((column, number) => [column.messages, number]));
  return calls
    .filter((call) => call.cache_break && columnOf.has(call.messages))
    .map((call) => ({ column: columnOf.get(call.messages), ...call.cache_break }));
}

/**
 * The call of each column, and the columns in which the model read outputs back: those of answers
 * that no client saw, in front of the call that the client made.
 */
export function matchCalls(film, calls) {
  const byMessages = new Map(calls.map((call) => [call.messages, call]));
  const byColumn = film.columns.map((column) => byMessages.get(column.messages) ?? null);
  const readBack = new Set();
  let left = 0;
  for (let number = byColumn.length - 1; number >= 0; number -= 1) {
    if (byColumn[number]) {
      left = byColumn[number].retrievals;
    } else if (left > 0) {
      readBack.add(number);
      left -= 1;
    }
  }
  return { byColumn, readBack };
}

/** Names a column by the call that the client made, because the client counts no others. */
function callTitle(columns, readBack, number) {
  const hiddenBefore = [...readBack].filter((hidden) => hidden < number).length;
  const ofClient = `${count(number + 1 - hiddenBefore)} of ${count(columns - readBack.size)}`;
  return readBack.has(number) ? `Hidden call before call ${ofClient}` : `Call ${ofClient}`;
}

export function callText({ film, byColumn, readBack }, number) {
  const column = film.columns[number];
  if (!column) return [element("p", { class: "soft" }, "No call yet.")];
  const call = byColumn[number];
  const lines = [element("p", {}, element("strong", {}, callTitle(film.columns.length, readBack, number)),
    call ? `, ${clock(call.time_ms)}` : "", `: ${count(column.tokens)} tokens of messages were sent`,
    column.whole > column.tokens ? `, instead of ${count(column.whole)}.` : ".")];
  if (readBack.has(number)) {
    lines.push(element("p", { class: "soft" }, "The model read outputs back. The client does not see this call."));
  }
  if (call?.usage) lines.push(...usageLines(call));
  if (call?.cache_break) lines.push(breakLine(call.cache_break));
  const change = film.switches.find((entry) => entry.column === number);
  if (change) lines.push(...switchLines(change));
  if (call && call.status >= 400) lines.push(element("p", { class: "bad" }, `The answer had status ${call.status}.`));
  if (call?.reason) lines.push(element("p", { class: "warn" }, `Passed unchanged: ${call.reason}.`));
  return lines;
}

function usageLines({ usage, spent, saved, saved_unbounded: unbounded, plan_ms: plan }) {
  const lines = [element("p", { class: "soft" },
    `The provider counted ${count(usage.input + usage.cache_read + usage.cache_creation)} tokens ` +
    `(${short(usage.cache_read)} read from its cache, ${short(usage.cache_creation)} written to it, ` +
    `${short(usage.input)} not cached) and answered with ${count(usage.output)}. Planning took ${plan.toFixed(1)} ms.`)];
  if (spent === null) return lines;
  const without = unbounded === saved ? "without Trimtab." : "one full window. As it came, it would not have fit.";
  const difference = Math.abs(saved) < 0.00005 ? "as much as"
    : `${money(Math.abs(saved))} ${saved > 0 ? "less than" : "more than"}`;
  lines.push(element("p", { class: saved < 0 ? "warn" : "soft" }, `It cost ${money(spent)}, ${difference} ${without}`));
  return lines;
}

function breakLine({ by, byte, tokens, cost }) {
  const where = byte === null ? "" : ` The first change is near byte ${count(byte)} of the body.`;
  const price = cost === null ? "" : ` That cost ${money(cost)} more than reading them.`;
  return element("p", { class: "bad" },
    `Cache break: ${count(tokens)} tokens were paid again, because ${WHO[by]}.${where}${price}`);
}

function switchLines({ before, after, kept, rewritten, reasons, cost, saves }) {
  const why = reasons.length > 0 ? ` Reason: ${[...new Set(reasons)].join("; ")}.` : "";
  const lines = [element("p", {}, `Switch point: ${count(before)} to ${count(after)} tokens. ` +
    `${count(kept)} in front stay cached, ${count(rewritten)} behind them are written anew.${why}`)];
  if (cost !== null && saves > 0) {
    const calls = Math.max(1, Math.ceil(cost / saves));
    lines.push(element("p", { class: "soft" }, `It costs ${money(cost)} once and saves ${money(saves)} ` +
      `with every later call: it pays after ${plural(calls, "call")}.`));
  }
  return lines;
}

/** The largest messages of a call, as buttons that open them. */
export function largestMessages({ film }, number, open) {
  const column = film.columns[number];
  if (!column) return null;
  let sent = 0;
  const bands = film.scenes[column.scene].bands.filter(([, , , , tokens]) => (sent += tokens) <= column.tokens);
  const largest = bands.filter(([message, joined]) => message !== null && joined === 1)
    .sort((a, b) => b[4] - a[4]).slice(0, 4);
  if (largest.length === 0) return null;
  return element("p", { class: "row" }, element("span", { class: "soft" }, "Largest:"),
    largest.map(([message, , region, , tokens]) => element("button", { type: "button", class: "small",
      onclick: () => open(message) }, element("i", { class: `swatch ${region}` }),
    `message ${message + 1}, ${short(tokens)}`)));
}

/** What the band under the pointer is. */
export function bandText({ message, count: joined, region, state, tokens }) {
  if (region === "tools") return `tool definitions: ${count(tokens)} tokens`;
  const many = `${plural(joined, "message")} from ${message + 1} on, `;
  const name = message === null ? "" : joined > 1 ? many : `message ${message + 1}, `;
  const how = state === "whole" || region === "ours" ? "" : `, ${STATES[state]}`;
  return `${name}${REGIONS[region]}${how}: ${count(tokens)} tokens`;
}

export function legend(tools) {
  const entries = [["system", "instructions"], ["user", "user"], ["assistant", "assistant"], ["output", "outputs"],
    ["ours", "written by Trimtab"], ["cut", "cache break"], ["switch", "switch point"]];
  const list = entries.map(([kind, text]) => element("li", { class: kind }, element("i"), text));
  if (tools > 0) {
    list.splice(1, 0, element("li", { class: "tools" }, element("i"),
      `tool definitions, ${short(tools)} tokens in every call`));
  }
  list.push(element("li", {}, "paler: shown in part, or as a placeholder"));
  return element("ul", { class: "legend", "aria-label": "Legend" }, list);
}
