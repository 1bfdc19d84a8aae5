// The page Doctor: what `trimtab doctor` says, and the state of the proxy.

import { get } from "./data.js";
import { element, empty, pairs, problem, replace, table } from "./elements.js";
import { bytes, count } from "./figures.js";

export function doctorPage(place) {
  let isGone = false;
  async function load() {
    try {
      const found = await get("doctor");
      if (!isGone) draw(place, found, load);
    } catch (error) {
      if (!isGone) problem(place, "The checks cannot be run", error);
    }
  }
  load();
  return () => {
    isGone = true;
  };
}

function draw(place, { checks, store, report }, reload) {
  const again = element("button", { type: "button", onclick: async () => {
    again.disabled = true;
    again.textContent = "Checking";
    await reload();
    again.disabled = false;
    again.textContent = "Check again";
  } }, "Check again");
  replace(place,
    element("div", { class: "row spread actions" }, element("h1", {}, "Doctor"), checks ? again : null),
    store ? element("p", { class: "card bad" }, store) : null,
    checks
      ? element("div", { class: "card flush" }, table(columns, checks.checks))
      : empty("Nothing to check", "This proxy was started without settings. " +
        "With trimtab serve, this page shows what trimtab doctor says about them."),
    element("h2", {}, "This proxy"),
    element("div", { class: "card flush" }, pairs(state(report))));
}

const columns = [
  { name: "State", cell: (row) => element("span", { class: `badge ${row.state}` }, row.state) },
  { name: "Check", cell: (row) => row.name },
  { name: "Finding", cell: (row) => [element("div", {}, row.message),
    row.hint ? element("div", { class: "soft" }, `hint: ${row.hint}`) : null] },
];

function state(report) {
  return [
    ["Requests under way, with those of this page", count(report.open)],
    ["Open connections", count(report.connections)],
    ["Sessions in memory", count(report.sessions)],
    ["Memory budget in use", bytes(report.memory_bytes)],
    ["Requests that passed because something of ours failed", count(report.failed_open)],
    ["Of those, because the memory budget was used up", count(report.over_memory)],
    ["Prompts that a provider cut without saying so", count(report.silent_overflows)],
    ["Lines that the audit log lost", count(report.audit_lost)],
  ];
}
