// The page Sessions: a live list.

import { calmly, get, listen, serverNow } from "./data.js";
import { element, empty, replace, table, tile, tiles } from "./elements.js";
import { ago, bytes, count, money, percent, sessionName, short } from "./figures.js";

export function sessionsPage(place) {
  const refresh = calmly(load);
  async function load() {
    try {
      const [list, overview] = await Promise.all([get("sessions"), get("overview")]);
      draw(place, list, overview);
    } catch (error) {
      replace(place, empty("The list cannot be loaded", error.message));
    }
  }
  load();
  const stop = listen(refresh);
  const timer = setInterval(refresh, 15_000);
  return () => {
    stop();
    clearInterval(timer);
  };
}

function draw(place, { sessions, older }, overview) {
  const held = document.activeElement?.getAttribute?.("href");
  const wasOpen = place.querySelector("details")?.open ?? sessions.length === 0;
  replace(place,
    element("h1", {}, "Sessions"),
    element("p", { class: "soft" },
      `Preset ${overview.preset}, mode ${overview.mode}. Version ${overview.version}.`),
    totals(sessions, overview.report),
    overview.report.store ? element("p", { class: "card bad" }, overview.report.store) : null,
    sessions.length === 0
      ? empty("No calls yet", "Point a client at this proxy, and its sessions appear here.")
      : element("div", { class: "card flush" }, table(columns, sessions)),
    older.length > 0 ? olderSessions(older, wasOpen) : null);
  if (held) place.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
}

function moneyText(spent, over) {
  return `${money(spent)} spent${over > 0 ? `; ${count(over)} calls would not have fit without Trimtab` : ""}`;
}

function totals(sessions, report) {
  const sum = (field) => sessions.reduce((all, session) => all + session[field], 0);
  const saved = sum("saved");
  const unpriced = sessions.some((session) => !session.is_priced);
  const tokens = report.tokens_saved;
  return tiles(
    tile("Requests", count(report.requests), `${count(report.edited)} with a shorter window`),
    tile("Tokens saved", short(tokens), `${percent(tokens, report.tokens_before)} of what came`,
      tokens < 0 ? "bad" : ""),
    tile("Money saved", money(saved), unpriced ? "some prices are unknown" : moneyText(sum("spent"), report.over_window),
      saved < 0 ? "bad" : ""),
    tile("Overflows recovered", count(report.recovered), `${count(report.retrievals)} outputs read back`),
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
    element("div", { class: row.saved < 0 ? "bad" : "soft" }, row.is_priced ? money(row.saved) : "price unknown")] },
  { name: "Last event", cell: (row) => [element("div", {}, row.last_event),
    element("div", { class: "soft" }, ago(row.last_ms, serverNow()))] },
  { name: "Health", cell: (row) => element("span", { class: `badge ${row.health}` }, row.health) },
];

export function windowMeter(row) {
  const share = row.window > 0 ? Math.min(1, row.tokens_now / row.window) : 0;
  const fill = element("span");
  fill.style.width = `${100 * share}%`;
  const text = row.window > 0
    ? `${short(row.tokens_now)} of ${short(row.window)}` : `${short(row.tokens_now)}, window unknown`;
  return element("div", {},
    element("div", { class: share > 0.95 ? "meter full" : "meter", role: "meter", "aria-label": "window in use",
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * share) }, fill),
    element("div", { class: "soft" }, text));
}

function olderSessions(older, isOpen) {
  const list = table([
    { name: "Session", cell: (row) => link(row.id, row.id) },
    { name: "Outputs", number: true, cell: (row) => count(row.outputs) },
    { name: "Size", number: true, cell: (row) => bytes(row.bytes) },
    { name: "Last used", cell: (row) => ago(row.last_ms, serverNow()) },
  ], older);
  return element("details", { class: "card", open: isOpen },
    element("summary", {}, `${count(older.length)} ${older.length === 1 ? "session" : "sessions"} from before`), list);
}
