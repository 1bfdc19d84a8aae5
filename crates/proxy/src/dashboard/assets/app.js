// Shows the page that the address names.

import { element, replace } from "./elements.js";
import { doctorPage } from "./doctor.js";
import { savingsPage } from "./savings.js";
import { sessionPage } from "./session.js";
import { sessionsPage } from "./sessions.js";
import { storePage } from "./store.js";

const pages = {
  sessions: ["Sessions", sessionsPage],
  session: ["Session", sessionPage],
  savings: ["Savings", savingsPage],
  store: ["Store", storePage],
  doctor: ["Doctor", doctorPage],
};

const main = document.getElementById("main");
let leave = null;

function show() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  const known = pages[name] ? name : "sessions";
  const [title, page] = pages[known];
  leave?.();
  document.title = `${title} · Trimtab`;
  for (const link of document.querySelectorAll(".bar nav a")) {
    const isHere = link.hash === `#/${known}` || (known === "session" && link.hash === "#/sessions");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  // Each page has a place of its own, so that what comes too late is drawn where nobody sees it.
  const place = element("div", {}, element("p", { class: "soft", role: "status" }, "Loading"));
  replace(main, place);
  leave = page(place, new URLSearchParams(query ?? ""));
}

addEventListener("hashchange", () => {
  show();
  main.focus();
});
show();
