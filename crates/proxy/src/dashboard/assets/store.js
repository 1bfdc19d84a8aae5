// The page Store: how much there is, and what takes most of it.

import { get, post, serverNow } from "./data.js";
import { element, empty, replace, table, tell, tile, tiles } from "./elements.js";
import { ago, bytes, count, sessionName } from "./figures.js";

export function storePage(place) {
  async function load() {
    try {
      draw(place, await get("store"), load);
    } catch (error) {
      replace(place, empty("The store cannot be read", error.message));
    }
  }
  load();
  const timer = setInterval(load, 20_000);
  return () => clearInterval(timer);
}

function draw(place, store, reload) {
  replace(place,
    element("h1", {}, "Store"),
    store.problem ? element("p", { class: "card bad" }, store.problem) : null,
    tiles(
      tile("Outputs", count(store.outputs), bytes(store.bytes)),
      tile("Sessions", count(store.sessions)),
      tile("Kept for", store.max_age_seconds ? `${Math.round(store.max_age_seconds / 86_400)} days` : "ever",
        store.max_bytes ? `at most ${bytes(store.max_bytes)}` : "no limit on its size"),
      tile("Failures", count(store.errors), "since the start", store.errors > 0 ? "bad" : "")),
    collection(reload),
    element("h2", {}, "Largest outputs"),
    store.largest_outputs.length === 0
      ? empty("The store is empty", "Outputs appear here when a tool gives one.")
      : element("div", { class: "card flush" }, table(outputs, store.largest_outputs)),
    element("h2", {}, "Largest sessions"),
    element("div", { class: "card flush" }, table(sessions, store.largest_sessions)));
}

function collection(reload) {
  const result = element("p", { class: "soft", role: "status" },
    "Removes the sessions that the settings of retention do not want kept.");
  const collect = async (isDry) => {
    try {
      const done = await post("collect", { dry_run: isDry });
      const verb = isDry ? "would be removed" : "were removed";
      result.textContent = `${count(done.sessions)} sessions with ${count(done.outputs)} outputs ${verb}: ` +
        `${bytes(done.bytes_freed)} freed, ${bytes(done.bytes_kept)} kept.`;
      if (!isDry) reload();
    } catch (error) {
      tell(error.message);
    }
  };
  return element("div", { class: "card" }, element("h2", {}, "Collection"), result,
    element("div", { class: "row" },
      element("button", { type: "button", onclick: () => collect(true) }, "Show what would go"),
      element("button", { type: "button", onclick: () => collect(false) }, "Collect now")));
}

const sessionLink = (id) => element("a", {
  href: `#/session?id=${encodeURIComponent(id)}`, title: id }, sessionName(id));

const outputs = [
  { name: "Tool", cell: (row) => row.tool || "archived messages" },
  { name: "Size", number: true, cell: (row) => bytes(row.bytes) },
  { name: "Stored", number: true, cell: (row) => bytes(row.stored) },
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
