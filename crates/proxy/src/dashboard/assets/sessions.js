// The page Sessions: a list that follows the calls.

import { get, serverNow, watch } from "./data.js";
import { element, empty, problem, replace, table, tile, tiles } from "./elements.js";
import { ago, bytes, cents, count, percent, plural, sessionName, short, unbounded } from "./figures.js";

export function sessionsPage(place) {
  let older = [];
  const earlier = get("older").then((found) => { older = found.sessions; }, () => {});
  return watch(async () => {
    const [list] = await Promise.all([get("sessions"), earlier]);
    const known = new Set(list.sessions.map((entry) => entry.id));
    draw(place, { ...list, older: older.filter((entry) => !known.has(entry.id)) });
  }, (error) => problem(place, "The list cannot be loaded", error));
}

function draw(place, { sessions, older, overview }) {
  const held = document.activeElement?.getAttribute?.("href");
  const wasOpen = place.querySelector("details")?.open ?? sessions.length === 0;
  replace(place,
    element("h1", {}, "Sessions"),
    element("p", { class: "soft" }, `${modeText(overview)} Version ${overview.version}.`),
    totals(overview),
    overview.report.store ? element("p", { class: "card bad" }, overview.report.store) : null,
    sessions.length === 0
      ? empty("No calls yet", "Point a client at this proxy, and its sessions appear here. For example: " +
        `ANTHROPIC_BASE_URL=${location.origin}, or OPENAI_BASE_URL=${location.origin}/v1.`)
      : element("div", { class: "card flush" }, table(columns, sessions)),
    older.length > 0 ? olderSessions(older, wasOpen) : null);
  if (held) place.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
}

function modeText({ mode, preset }) {
  if (mode === "observe") return `Observing: requests pass unchanged, and the preset ${preset} says what it would do.`;
  if (mode === "bypass") return "Switched off: requests pass unchanged.";
  return `Requests are managed by the preset ${preset}.`;
}

/** What was spent, and what calls that would not have fit do to the figures. */
export function spentText(figures, over) {
  const more = unbounded(figures, over);
  return `${cents(figures.spent)} spent${more ? `; ${more}` : ""}`;
}

function totals({ savings, report }) {
  const tokens = report.tokens_saved;
  return tiles(
    tile("Calls of models", count(savings.calls), `${count(savings.edited)} with a shorter window`),
    tile("Tokens saved", short(tokens), `${percent(tokens, report.tokens_before)} of what came`,
      tokens < 0 ? "bad" : ""),
    tile("Money saved", cents(savings.saved), savings.unpriced > 0
      ? `the price of ${plural(savings.unpriced, "call")} is unknown` : spentText(savings, report.over_window),
    savings.saved < 0 ? "bad" : ""),
    tile("Calls that would not have fit", count(report.over_window), `${plural(report.recovered, "overflow")} recovered`),
    tile("Passed after a failure", count(report.failed_open), "sent unchanged",
      report.failed_open > 0 ? "bad" : ""));
}

function link(id, text) {
  return element("a", { href: `#/session?id=${encodeURIComponent(id)}` }, text);
}

const columns = [
  { name: "Session", cell: (row) => [link(row.id, sessionName(row.id)),
    element("div", { class: "soft" }, row.client || "unknown client")] },
  { name: "Model", cell: (row) => row.model || "unknown" },
  { name: "Calls", number: true, cell: (row) => count(row.calls) },
  { name: "Window", cell: windowMeter },
  { name: "Saved", number: true, cell: (row) => [
    element("div", {}, `${short(row.tokens_without - row.tokens_with)} tokens`),
    element("div", { class: row.saved < 0 ? "bad" : "soft" }, row.is_priced ? cents(row.saved) : "price unknown")] },
  { name: "Last event", cell: (row) => [element("div", {}, row.last_event),
    element("div", { class: "soft" }, ago(row.last_ms, serverNow()))] },
  { name: "Health", cell: (row) => [element("span", { class: `badge ${row.health}` }, row.health),
    row.health_reason ? element("div", { class: "soft" }, row.health_reason) : null] },
];

function windowMeter(row) {
  const text = row.window > 0
    ? `${short(row.tokens_now)} of ${short(row.window)} tokens` : `${short(row.tokens_now)} tokens, window unknown`;
  return element("div", {}, meter(row), element("div", { class: "soft" }, text));
}

export function meter({ tokens_now: tokens, window }) {
  const share = window > 0 ? Math.min(1, tokens / window) : 0;
  const fill = element("span");
  fill.style.width = `${100 * share}%`;
  return element("div", { class: share > 0.95 ? "meter full" : "meter", role: "meter", "aria-label": "window in use",
    "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * share) }, fill);
}

function olderSessions(older, isOpen) {
  const list = table([
    { name: "Session", cell: (row) => link(row.id, row.id) },
    { name: "Outputs", number: true, cell: (row) => count(row.outputs) },
    { name: "Size", number: true, cell: (row) => bytes(row.bytes) },
    { name: "Last used", cell: (row) => ago(row.last_ms, serverNow()) },
  ], older);
  return element("details", { class: "card", open: isOpen },
    element("summary", {}, `${plural(older.length, "session")} from before this start`), list);
}
