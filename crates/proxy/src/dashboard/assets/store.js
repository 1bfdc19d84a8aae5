// The page Store: how much there is, and what takes most of it.

import { get, post, serverNow } from "./data.js";
import { dialog, element, empty, problem, replace, table, tell, tile, tiles } from "./elements.js";
import { ago, bytes, count, plural, sessionName } from "./figures.js";

export function storePage(place) {
  async function load() {
    try {
      draw(place, await get("store"), load);
    } catch (error) {
      problem(place, "The store cannot be read", error);
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
      tile("Size", bytes(store.bytes), store.max_bytes ? `at most ${bytes(store.max_bytes)}` : "without a limit"),
      tile("Outputs", count(store.outputs), `in ${plural(store.sessions, "session")}`),
      tile("Kept for", store.max_age_seconds ? age(store.max_age_seconds) : "ever", "after the last use of a session"),
      tile("Failures", count(store.errors), "since the start", store.errors > 0 ? "bad" : "")),
    collection(reload),
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

/** Removing cannot be undone, so it is shown before it is done. */
function collection(reload) {
  const ask = async () => {
    try {
      const found = await post("collect", { dry_run: true });
      if (found.sessions === 0) tell("There is nothing to remove now.", true);
      else approve(found, reload);
    } catch (error) {
      tell(error.message);
    }
  };
  return element("div", { class: "card row spread" },
    element("p", { class: "soft" }, "Sessions that are too old, or too many for the size, are removed now and then."),
    element("button", { type: "button", onclick: ask }, "Remove them now…"));
}

function removedText({ sessions, outputs, bytes_freed: freed, bytes_kept: kept }) {
  return `${plural(sessions, "session")} with ${plural(outputs, "output")}: ${bytes(freed)} freed, ${bytes(kept)} kept.`;
}

function approve(found, reload) {
  const remove = element("button", { class: "main", type: "button", onclick: async () => {
    try {
      tell(`Removed: ${removedText(await post("collect", { dry_run: false }))}`, true);
    } catch (error) {
      tell(error.message);
    }
    box.close();
    reload();
  } }, "Remove");
  const box = dialog("Remove old sessions?",
    element("p", {}, removedText(found)),
    element("p", { class: "soft" }, "This cannot be undone."),
    element("div", { class: "row" }, remove));
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
