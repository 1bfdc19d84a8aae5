// The page Store: how much there is, and what takes most of it.

import { get, serverNow } from "./data.js";
import { element, empty, problem, replace, table, tile, tiles } from "./elements.js";
import { ago, bytes, count, plural, sessionName } from "./figures.js";

export function storePage(place) {
  async function load() {
    try {
      draw(place, await get("store"));
    } catch (error) {
      problem(place, "The store cannot be read", error);
    }
  }
  load();
  const timer = setInterval(load, 20_000);
  return () => clearInterval(timer);
}

function draw(place, store) {
  replace(place,
    element("h1", {}, "Store"),
    store.problem ? element("p", { class: "card bad" }, store.problem) : null,
    tiles(
      tile("Size", bytes(store.bytes), store.max_bytes ? `at most ${bytes(store.max_bytes)}` : "without a limit"),
      tile("Outputs", count(store.outputs), `in ${plural(store.sessions, "session")}`),
      tile("Kept for", store.max_age_seconds ? age(store.max_age_seconds) : "ever", "after the last use of a session; then it is removed"),
      tile("Failures", count(store.errors), "since the start", store.errors > 0 ? "bad" : "")),
    element("h2", {}, "Largest outputs"),
    store.largest_outputs.length === 0
      ? empty("The store is empty", "Outputs appear here when a tool gives one.")
      : element("div", { class: "card flush" }, table(outputs, store.largest_outputs)),
    store.largest_sessions.length > 0 ? element("h2", {}, "Largest sessions") : null,
    store.largest_sessions.length > 0
      ? element("div", { class: "card flush" }, table(sessions, store.largest_sessions)) : null);
}

function age(seconds) {
  return seconds < 2 * 86_400 ? plural(Math.round(seconds / 3600), "hour") : plural(Math.round(seconds / 86_400), "day");
}

const sessionLink = (id) => element("a", {
  href: `#/session?id=${encodeURIComponent(id)}`, title: id }, sessionName(id));

const outputs = [
  { name: "Tool", cell: (row) => row.tool || "archived messages" },
  { name: "Size", number: true, cell: (row) => bytes(row.bytes) },
  { name: "On disk", number: true, cell: (row) => bytes(row.stored) },
  { name: "Lines", number: true, cell: (row) => count(row.lines) },
  { name: "When", cell: (row) => ago(row.created_ms, serverNow()) },
  { name: "Ref", cell: (row) => element("code", {}, row.ref) },
  { name: "Session", cell: (row) => sessionLink(row.session) },
];

const sessions = [
  { name: "Session", cell: (row) => sessionLink(row.id) },
  { name: "Outputs", number: true, cell: (row) => count(row.outputs) },
  { name: "Size", number: true, cell: (row) => bytes(row.bytes) },
  { name: "Last used", cell: (row) => ago(row.last_ms, serverNow()) },
];
