// The page Savings: what was saved, net of what it cost.

import { calmly, get, listen } from "./data.js";
import { element, empty, replace, table, tile, tiles } from "./elements.js";
import { count, money, percent, sessionName, short } from "./figures.js";

export function savingsPage(place) {
  async function load() {
    try {
      draw(place, await get("savings"));
    } catch (error) {
      replace(place, empty("The savings cannot be loaded", error.message));
    }
  }
  load();
  return listen(calmly(load, 2000));
}

function draw(place, { total, compared, holdout, sessions }) {
  const priced = sessions.filter((session) => session.is_priced);
  replace(place,
    element("h1", {}, "Savings"),
    element("p", { class: "soft" }, "Since the proxy started. Money is at list prices and counts the " +
      "provider's cache for both sides; own calls and cache breaks are already taken off."),
    total.calls === 0 ? empty("No calls yet", "The savings appear after the first call.") : [
      figures(total, compared),
      against(compared, holdout),
      spread(priced),
      element("div", { class: "card flush" }, table(columns, sessions)),
    ]);
}

function figures(total, compared) {
  const tokens = total.tokens.without - total.tokens.with;
  return tiles(
    tile("Net money saved", money(total.saved), `${money(total.spent)} spent`, total.saved < 0 ? "bad" : "good"),
    tile("Calls saved from an overflow", count(total.tokens.over_window),
      "counted as one full, cached window each: a provider would have refused them"),
    tile("Tokens saved", short(tokens), percent(tokens, total.tokens.without), tokens < 0 ? "bad" : ""),
    tile("Cost of own calls", money(compared.own_calls), `${count(total.summaries)} summaries`),
    tile("Cost of our cache breaks", money(compared.own_breaks), "already in the net"),
    tile("Calls of unknown price", count(total.unpriced), "not in the money"));
}

function perCall(sums) {
  return sums.calls > 0 ? sums.spent / sums.calls : null;
}

function against(compared, holdout) {
  const [managed, held] = [compared.managed, compared.holdout];
  const text = held.calls === 0
    ? holdout > 0
      ? `${Math.round(100 * holdout)} % of the sessions are held out. None of them has made a call yet.`
      : "No session is held out. Set proxy.holdout = 0.1 to leave every tenth session alone, and compare."
    : `A managed call costs ${money(perCall(managed))} on average (${count(managed.calls)} calls), ` +
      `a held-out one ${money(perCall(held))} (${count(held.calls)} calls).`;
  const isLoss = held.calls > 0 && perCall(managed) > perCall(held);
  return element("div", { class: "card" }, element("h2", {}, "Against the holdout"),
    element("p", { class: isLoss ? "bad" : "" }, text));
}

/** A bar for each session, from the worst to the best. */
function spread(sessions) {
  if (sessions.length === 0) return null;
  const sorted = [...sessions].sort((a, b) => a.saved - b.saved);
  const middle = sorted[Math.floor(sorted.length / 2)].saved;
  const losses = sorted.filter((session) => session.saved < 0).length;
  const largest = Math.max(...sorted.map((session) => Math.abs(session.saved)), 1e-9);
  const bars = sorted.slice(-200).map((session) => {
    const bar = element("span", { class: session.saved < 0 ? "loss" : "", title: money(session.saved) });
    bar.style.height = `${Math.max(1.5, (100 * Math.abs(session.saved)) / largest)}%`;
    return bar;
  });
  const about = `Median ${money(middle)}; best ${money(sorted.at(-1).saved)}; worst ${money(sorted[0].saved)}; ` +
    `${count(losses)} of ${count(sorted.length)} sessions cost more than they saved.`;
  return element("div", { class: "card" }, element("h2", {}, "By session"),
    element("div", { class: "bars", role: "img", "aria-label": about }, bars), element("p", {}, about));
}

const columns = [
  { name: "Session", cell: (row) => element("a", { href: `#/session?id=${encodeURIComponent(row.id)}` }, sessionName(row.id)) },
  { name: "Client", cell: (row) => row.client || "unknown" },
  { name: "Model", cell: (row) => row.model },
  { name: "Calls", number: true, cell: (row) => count(row.calls) },
  { name: "Tokens without", number: true, cell: (row) => short(row.tokens_without) },
  { name: "Tokens with", number: true, cell: (row) => short(row.tokens_with) },
  { name: "Spent", number: true, cell: (row) => (row.is_priced ? money(row.spent) : "unknown") },
  { name: "Saved", number: true, cell: (row) =>
    element("span", { class: row.saved < 0 ? "bad" : "good" }, row.is_priced ? money(row.saved) : "unknown") },
];
