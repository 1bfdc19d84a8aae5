// The page of one session: its film and its messages.

import { get, serverNow, watch } from "./data.js";
import { element, empty, replace, tile, tiles } from "./elements.js";
import { filmSummary } from "./film-marks.js";
import { bandText, breaksOf, callText, largestMessages, legend, matchCalls } from "./film-text.js";
import { FilmView } from "./film.js";
import { cents, count, countdown, money, percent, plural, sessionName, short } from "./figures.js";
import { MessageList } from "./messages.js";
import { meter, spentText } from "./sessions.js";

export function sessionPage(place, query) {
  const id = query.get("id") ?? "";
  const page = new SessionView(place, id);
  const stop = watch(() => page.load(), (error) => page.failed(error));
  const timer = setInterval(() => page.tick(), 1000);
  return () => {
    stop();
    clearInterval(timer);
    page.end();
  };
}

class SessionView {
  constructor(place, id) {
    this.place = place;
    this.id = id;
    this.data = null;
  }

  end() {
    this.isGone = true;
    this.film?.end();
  }

  failed(error) {
    if (!this.data) replace(this.place, empty("The session cannot be shown", error.message));
  }

  async load() {
    const data = await get("session", { id: this.id });
    if (this.isGone || data === this.data) return;
    this.data = data;
    if (!this.film) this.build();
    this.update();
  }

  build() {
    this.head = element("div");
    this.summary = element("div");
    this.call = element("div", { class: "call", "aria-live": "polite" });
    this.canvas = element("canvas", { class: "film", tabindex: 0, role: "application",
      "aria-roledescription": "film strip" });
    this.tip = element("p", { class: "tip", hidden: true });
    this.legend = element("div");
    this.film = new FilmView(this.canvas, (column) => this.select(column), (band, place) => this.point(band, place));
    this.messages = new MessageList(this.id);
    replace(this.place, this.head, this.summary,
      element("section", { class: "card", "aria-label": "Film strip" },
        element("div", { class: "strip" }, this.canvas, this.tip), this.legend, this.call),
      this.messages.card);
  }

  update() {
    const { entry, preset } = this.data;
    replace(this.head, element("h1", {}, `Session ${sessionName(this.id)}`),
      element("p", { class: "soft" },
        `${entry?.client || "unknown client"}, ${entry?.model || "model unknown"}, preset ${preset}, `,
        element("code", {}, this.id)));
    replace(this.legend, legend(this.data.tools));
    this.messages.update(this.data);
    replace(this.summary, this.figures());
    this.showFilm();
    this.tick();
  }

  figures() {
    const { entry, messages } = this.data;
    if (!entry) {
      return tiles(tile("Messages", count(messages), "from the store; no call since the proxy started"));
    }
    const saved = entry.tokens_without - entry.tokens_with;
    const { film, calls } = this.data;
    const hidden = matchCalls(film, calls).readBack.size;
    const earlier = film.columns.length - hidden - entry.calls;
    this.cache = element("dd", {});
    return tiles(
      tile("Window", short(entry.tokens_now),
        [entry.window > 0 ? `of ${short(entry.window)} tokens` : "tokens", meter(entry)]),
      tile("Calls", count(entry.calls), `${plural(messages, "message")}` +
        (hidden > 0 ? `; ${plural(hidden, "hidden call")} to read outputs back` : "") +
        (earlier > 0 ? `; ${plural(earlier, "earlier call")} not managed here` : "")),
      tile("Tokens saved", short(saved), `${percent(saved, entry.tokens_without)} of what came`, saved < 0 ? "bad" : ""),
      tile("Money saved", entry.is_priced ? cents(entry.saved) : "unknown", spentText(entry, entry.over_window),
        entry.saved < 0 ? "bad" : ""),
      entry.over_window > 0
        ? tile("Calls that would not have fit", count(entry.over_window), "each counts as one full window") : null,
      element("div", { class: "tile" }, element("dt", {}, "Provider's cache"), this.cache));
  }

  /** Counts down to the moment when the cache goes cold. */
  tick() {
    const entry = this.data?.entry;
    if (!entry || !this.cache) return;
    const left = entry.last_ms + entry.cache_ms - serverNow();
    const cost = `the next call costs ${entry.cold_cost === null ? "" : `${money(entry.cold_cost)} `}more`;
    const [text, about] = entry.cache_ms === 0 ? ["not seen", "the provider reported no cache"]
      : left > 0 ? [`${countdown(left)} left`, `then ${cost}`] : ["cold", cost];
    replace(this.cache, text, element("small", {}, about));
  }

  select(column) {
    if (!this.shown) return;
    replace(this.call, callText(this.shown, column),
      largestMessages(this.shown, column, (message) => this.messages.open(message)));
  }

  point(band, place) {
    this.tip.hidden = !band;
    if (!band) return;
    this.tip.textContent = bandText(band);
    const room = this.canvas.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, place.x + 12))}px`;
    this.tip.style.top = `${Math.max(0, place.y - 34)}px`;
  }

  showFilm() {
    const { film, calls, tools, window, thresholds } = this.data;
    const breaks = breaksOf(film, calls);
    this.shown = { film, breaks, ...matchCalls(film, calls) };
    this.canvas.setAttribute("aria-label", filmSummary(this.shown));
    this.film.show({ film, breaks, tools, window, thresholds });
  }
}
