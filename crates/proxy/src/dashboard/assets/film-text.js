// What a call of the film says in words: its size, its switch point, its cache break.

import { element } from "./elements.js";
import { clock, count, money, short } from "./figures.js";

const WHO = {
  trimtab: "Trimtab changed what was sent before",
  client: "the client changed what it had sent before",
  provider: "the provider no longer had it, although nothing had changed",
  time: "the cache had gone cold: too much time passed since the call before",
};

/** The cache breaks of a film: for each, its column, and what was kept. */
export function breaksOf(film, calls) {
  const columnOf = new Map(film.columns.map((column, number) => [column.messages, number]));
  return calls
    .filter((call) => call.cache_break && columnOf.has(call.messages))
    .map((call) => ({ column: columnOf.get(call.messages), ...call.cache_break }));
}

export function callText(data, number) {
  const { film, calls } = data;
  const column = film.columns[number];
  if (!column) return [element("p", { class: "soft" }, "No call yet.")];
  const call = calls.findLast?.((entry) => entry.messages === column.messages);
  const lines = [element("p", {}, element("strong", {}, `Call ${number + 1}: `),
    `${count(column.tokens)} tokens of messages sent, ${count(column.whole)} as they came`,
    call ? `, ${clock(call.time_ms)}` : "")];
  if (call?.usage) lines.push(usageLine(call));
  if (call?.cache_break) lines.push(breakLine(call.cache_break));
  const change = film.switches.find((entry) => entry.column === number);
  if (change) lines.push(...switchLines(change));
  if (call && call.status >= 400) lines.push(element("p", { class: "bad" }, `Status ${call.status}.`));
  if (call?.reason) lines.push(element("p", { class: "warn" }, `Passed unchanged: ${call.reason}.`));
  return lines;
}

function usageLine({ usage, spent, saved, plan_ms: plan }) {
  const cost = spent === null ? "" : `; cost ${money(spent)}`;
  const gain = saved === null || saved === 0 ? "" : saved > 0 ? `, saved ${money(saved)}` : `, cost ${money(-saved)} more`;
  return element("p", { class: "soft" },
    `The provider counted ${count(usage.input + usage.cache_read + usage.cache_creation)} tokens: ` +
    `${short(usage.cache_read)} from its cache, ${short(usage.cache_creation)} written to it, ` +
    `${short(usage.input)} plain; answer ${short(usage.output)}${cost}${gain}. Planned in ${plan.toFixed(1)} ms.`);
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
      `with every later call: it pays after ${count(calls)} ${calls === 1 ? "call" : "calls"}.`));
  }
  return lines;
}

export function legend(tools) {
  const entries = [["system", "instructions"], ["user", "user"], ["assistant", "assistant"], ["output", "outputs"],
    ["ours", "written by Trimtab"], ["cut", "cache break"], ["switch", "switch point"]];
  const list = entries.map(([kind, text]) => element("li", { class: kind }, element("i"), text));
  const all = (tools ?? []).reduce((sum, [, tokens]) => sum + tokens, 0);
  if (all > 0) {
    const servers = tools.map(([server, tokens]) => `${server} ${short(tokens)}`).join(", ");
    list.push(element("li", { class: "tools" }, element("i"),
      `tool definitions, with every call: ${short(all)} (${servers})`));
  }
  list.push(element("li", {}, "paler: shown in part, or as a placeholder; dotted: without Trimtab"));
  return element("ul", { class: "legend", "aria-label": "Legend" }, list);
}
