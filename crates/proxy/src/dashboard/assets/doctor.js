// The page Doctor: what `trimtab doctor` says, and the state of the proxy.

import { get } from "./data.js";
import { element, empty, replace, table } from "./elements.js";
import { count } from "./figures.js";

export function doctorPage(place) {
  let isGone = false;
  async function load() {
    try {
      const found = await get("doctor");
      if (!isGone) draw(place, found, load);
    } catch (error) {
      if (!isGone) replace(place, empty("The checks cannot be run", error.message));
    }
  }
  load();
  return () => {
    isGone = true;
  };
}

function draw(place, { checks, store, report }, reload) {
  const again = element("button", { type: "button", onclick: () => {
    again.disabled = true;
    again.textContent = "Checking";
    reload();
  } }, "Check again");
  replace(place,
    element("div", { class: "row spread actions" }, element("h1", {}, "Doctor"), again),
    store ? element("p", { class: "card bad" }, store) : null,
    checks
      ? element("div", { class: "card flush" }, table(columns, checks.checks))
      : empty("No checks here", "Run `trimtab doctor` on the machine of the proxy."),
    element("h2", {}, "This proxy"),
    element("div", { class: "card flush" }, table(figures, Object.entries(state(report)))));
}

const columns = [
  { name: "State", cell: (row) => element("span", { class: `badge ${row.state}` }, row.state) },
  { name: "Check", cell: (row) => row.name },
  { name: "Finding", cell: (row) => [element("div", {}, row.message),
    row.hint ? element("div", { class: "soft" }, `hint: ${row.hint}`) : null] },
];

const figures = [
  { name: "Figure", cell: ([name]) => name },
  { name: "Value", number: true, cell: ([, value]) => count(value) },
];

function state(report) {
  return {
    "Requests under way": report.open,
    "Open connections": report.connections,
    "Sessions in memory": report.sessions,
    "Bytes of the memory budget in use": report.memory_bytes,
    "Requests that passed after a failure of ours": report.failed_open,
    "Requests that passed for want of memory": report.over_memory,
    "Prompts that a provider cut silently": report.silent_overflows,
    "Lines of the audit log lost": report.audit_lost,
  };
}
