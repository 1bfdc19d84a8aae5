// The page of one session: its film, what can be done to it, and its messages.

import { actionRow } from "./actions.js";
import { calmly, get, listen, serverNow } from "./data.js";
import { element, empty, replace, tell, tile, tiles } from "./elements.js";
import { filmSummary } from "./film-marks.js";
import { bandText, breaksOf, callText, largestMessages, legend, matchCalls } from "./film-text.js";
import { FilmView } from "./film.js";
import { cents, count, countdown, money, percent, plural, sessionName, short } from "./figures.js";
import { MessageList } from "./messages.js";
import { LiveSession } from "./news.js";
import { meter, spentText } from "./sessions.js";

export function sessionPage(place, query) {
  const id = query.get("id") ?? "";
  const page = new SessionView(place, id);
  page.load();
  const refresh = calmly(() => page.load());
  const stop = listen((event) => {
    if (event.session === id || event.type === "missed" || event.type === "hello") refresh();
  });
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
    this.live = new LiveSession(id);
    this.data = null;
    this.replays = new Map();
  }

  end() {
    this.isGone = true;
    this.film?.end();
  }

  async load() {
    try {
      this.data = await this.live.load();
    } catch (error) {
      if (!this.data) replace(this.place, empty("The session cannot be shown", error.message));
      else tell(error.message);
      return;
    }
    if (this.isGone) return;
    if (!this.film) this.build();
    this.update();
  }

  build() {
    this.head = element("div");
    this.summary = element("div");
    this.actions = element("div", { class: "row actions" });
    this.call = element("div", { class: "call", "aria-live": "polite" });
    this.canvas = element("canvas", { class: "film", tabindex: 0, role: "application",
      "aria-roledescription": "film strip" });
    this.tip = element("p", { class: "tip", hidden: true });
    this.legend = element("div");
    this.film = new FilmView(this.canvas, (column) => this.select(column), (band, place) => this.point(band, place));
    this.messages = new MessageList(this.id, () => this.load());
    replace(this.place, this.head, this.summary, this.actions,
      element("section", { class: "card", "aria-label": "Film strip" },
        element("div", { class: "strip" }, this.canvas, this.tip), this.legend, this.replayRow(), this.call),
      this.messages.card);
  }

  replayRow() {
    this.slider = element("input", { type: "range", min: 0, max: this.data.presets.length, value: 0, step: 1,
      id: "replay", oninput: () => this.chooseReplay() });
    this.replayText = element("span", { class: "soft", role: "status" });
    return element("div", { class: "replay" },
      element("label", { for: "replay" }, "Replay under another preset"), this.slider, this.replayText);
  }

  update() {
    const { entry, preset } = this.data;
    replace(this.head, element("h1", {}, `Session ${sessionName(this.id)}`),
      element("p", { class: "soft" },
        `${entry?.client || "unknown client"}, ${entry?.model || "model unknown"}, preset ${preset}, `,
        element("code", {}, this.id)));
    replace(this.actions, ...actionRow(this.data, () => this.load()));
    replace(this.legend, legend(this.data.tools));
    this.messages.update(this.data);
    replace(this.summary, this.figures());
    this.showChosen();
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

  /** Replays the session under the preset that the slider names; a replay of fewer calls is old. */
  async chooseReplay() {
    const preset = this.preset();
    const calls = this.data.film.columns.length;
    this.slider.setAttribute("aria-valuetext", preset ?? "as it was");
    if (preset && this.replays.get(preset)?.of !== calls) {
      this.replays.delete(preset);
      this.showChosen();
      try {
        this.replays.set(preset, { ...await get("replay", { id: this.id, preset }), of: calls });
      } catch (error) {
        this.replays.set(preset, { problem: error.message });
      }
    }
    if (!this.isGone) this.showChosen();
  }

  preset() {
    return this.data.presets[Number(this.slider.value) - 1];
  }

  /** Shows the session as it was, or as it was replayed. A replay stays as it is while calls come. */
  showChosen() {
    const preset = this.preset();
    const played = this.replays.get(preset);
    if (!preset) {
      this.replayText.textContent = `as it was, under ${this.data.preset}`;
      this.showFilm(this.data.film, this.data.calls, null);
    } else if (!played) {
      this.replayText.textContent = `replaying under ${preset}`;
    } else if (played.problem) {
      this.replayText.textContent = `${preset}: ${played.problem}`;
    } else {
      this.replayText.textContent = `${preset}: ${short(played.tokens)} tokens sent, for ${money(played.billed)} of input; ` +
        `largest window ${short(played.largest)}, ${plural(played.breaks, "cache break")}` +
        `${played.over > 0 ? `, ${plural(played.over, "call")} that would not fit` : ""}. The line is what was sent.`;
      this.showFilm(played.film, [], this.data.film);
    }
  }

  showFilm(film, calls, other) {
    const breaks = breaksOf(film, calls);
    this.shown = { film, breaks, ...matchCalls(film, calls) };
    this.canvas.setAttribute("aria-label", filmSummary(this.shown));
    this.film.show({ film, other, breaks, tools: this.data.tools, window: this.data.window,
      // Another preset has other conditions.
      thresholds: other ? [] : this.data.thresholds });
  }
}
