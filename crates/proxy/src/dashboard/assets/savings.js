// The page Savings: what was saved, net of what it cost.

import { get, watch } from "./data.js";
import { element, empty, problem, replace, table, tile, tiles } from "./elements.js";
import { cents, count, money, percent, plural, sessionName, short } from "./figures.js";

/** The chart shows so many sessions at most: the worst, the best, and some between. */
const MOST_BARS = 120;

export function savingsPage(place) {
  let shown = null;
  return watch(async () => {
    const list = await get("sessions");
    if (list !== shown) draw(place, list);
    shown = list;
  }, (error) => problem(place, "The savings cannot be loaded", error));
}

function draw(place, { sessions, overview: { savings: total, compared, holdout } }) {
  const priced = sessions.filter((session) => session.is_priced);
  replace(place,
    element("h1", {}, "Savings"),
    element("p", { class: "soft" }, "Since the proxy started, at list prices. Both sides count the " +
      "provider's cache. The cost of our own calls and cache breaks is taken off."),
    total.calls === 0 ? empty("No calls yet", "The savings appear after the first call.") : [
      figures(total, compared),
      against(compared, holdout),
      spread(priced),
      element("div", { class: "card flush" }, table(columns, sessions)),
    ]);
}

function figures(total, compared) {
  const tokens = total.tokens.without - total.tokens.with;
  const over = total.tokens.over_window;
  const all = tokens + total.beyond_window;
  return tiles(
    tile("Net money saved", cents(total.saved), `${money(total.spent)} spent on ${plural(total.calls, "call")}`,
      tone(total.saved)),
    tile("Tokens saved", short(tokens), `${percent(tokens, total.tokens.without)} of what came`, tokens < 0 ? "bad" : ""),
    over > 0 ? tile("Calls that would not have fit", count(over), "each counts as one full window") : null,
    over > 0 ? tile("If the window held everything", cents(total.saved_unbounded),
      `and ${short(all)} tokens (${percent(all, total.tokens.without + total.beyond_window)}) would have been saved`) : null,
    tile("Cost of our own calls", cents(compared.own_calls), plural(total.summaries, "summary request")),
    tile("Cost of our cache breaks", cents(compared.own_breaks), "taken off already"),
    total.unpriced > 0 ? tile("Calls of unknown price", count(total.unpriced), "not part of the money") : null);
}

/** Losses are red, gains are green, and nothing is neither. */
function tone(saved) {
  return saved < 0 ? "bad" : saved > 0 ? "good" : "";
}

function perCall(sums) {
  return sums.calls > 0 ? sums.spent / sums.calls : null;
}

function against(compared, holdout) {
  const [managed, held] = [compared.managed, compared.holdout];
  const text = held.calls === 0
    ? holdout > 0
      ? `${Math.round(100 * holdout)} % of the sessions are held out. None of them has made a call yet.`
      : "No session is held out. Set proxy.holdout = 0.1 to leave every tenth session alone and compare."
    : `A managed call costs ${money(perCall(managed))} on average (${plural(managed.calls, "call")}), ` +
      `a held-out one ${money(perCall(held))} (${plural(held.calls, "call")}).`;
  const isLoss = held.calls > 0 && perCall(managed) > perCall(held);
  return element("div", { class: "card" }, element("h2", {}, "Against the holdout"),
    element("p", { class: isLoss ? "bad" : "" }, text));
}

/** A bar for each session, from the worst to the best, above or below zero. */
function spread(sessions) {
  if (sessions.length < 2) return null;
  const sorted = [...sessions].sort((a, b) => a.saved - b.saved);
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))].saved;
  const losses = sorted.filter((session) => session.saved < 0).length;
  const about = `Median ${cents(at(0.5))}. The middle half saved ${cents(at(0.25))} to ${cents(at(0.75))}; ` +
    `worst ${cents(at(0))}, best ${cents(at(1))}. ` +
    `${count(losses)} of ${plural(sorted.length, "session")} cost more than they saved.`;
  const [low, high] = [Math.min(0, at(0)), Math.max(0, at(1))];
  const room = Math.max(high - low, 1e-9);
  const step = Math.max(1, (sorted.length - 1) / (MOST_BARS - 1));
  const shown = Array.from({ length: Math.min(sorted.length, MOST_BARS) }, (_, bar) => sorted[Math.round(bar * step)]);
  const bars = shown.map(({ saved }) => {
    const bar = element("span", { class: saved < 0 ? "loss" : "", title: cents(saved) });
    bar.style.height = `${Math.max(1, (100 * Math.abs(saved)) / room)}%`;
    bar.style.bottom = `${(100 * (Math.min(saved, 0) - low)) / room}%`;
    return element("i", {}, bar);
  });
  return element("div", { class: "card" }, element("h2", {}, "Sessions from the worst to the best"),
    element("div", { class: "bars", role: "img", "aria-label": about }, bars), element("p", {}, about));
}

const columns = [
  { name: "Session", cell: (row) => element("a", { href: `#/session?id=${encodeURIComponent(row.id)}` }, sessionName(row.id)) },
  { name: "Client", cell: (row) => row.client || "unknown" },
  { name: "Model", cell: (row) => row.model },
  { name: "Calls", number: true, cell: (row) => count(row.calls) },
  { name: "Tokens without Trimtab", number: true, cell: (row) => short(row.tokens_without) },
  { name: "Tokens with it", number: true, cell: (row) => short(row.tokens_with) },
  { name: "Spent", number: true, cell: (row) => (row.is_priced ? cents(row.spent) : "unknown") },
  { name: "Saved", number: true, cell: (row) =>
    row.is_priced ? element("span", { class: tone(row.saved) }, cents(row.saved)) : "unknown" },
];
