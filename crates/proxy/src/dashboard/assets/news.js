// Keeps what a page shows, and asks only for what is new.

import { get } from "./data.js";

/** Replaces everything in a list from number `from` on. */
function changeEnd(list, from, added) {
  list.length = Math.min(list.length, from);
  for (const entry of added) list.push(entry);
}

/** Runs one `work` after the other; each begins after it was asked for. */
function inTurn(work) {
  let last = Promise.resolve();
  return () => {
    last = last.catch(() => {}).then(work);
    return last;
  };
}

let list = null;

/** The list of sessions, for all pages that show it: `{ sessions, older, overview }`. */
export const sessionList = inTurn(async () => {
  const news = await get("sessions", list ? { since: list.version } : {});
  const known = new Map(news.is_whole ? [] : list.sessions.map((entry) => [entry.id, entry]));
  for (const entry of news.sessions) known.set(entry.id, entry);
  const sessions = [...known.values()].sort((a, b) => b.last_ms - a.last_ms);
  list = { ...news, sessions, older: news.is_whole ? news.older : list.older };
  return list;
});

/** A session, as a page shows it. */
export class LiveSession {
  constructor(id) {
    this.data = null;
    this.load = inTurn(async () => {
      const news = await get("session", { id, ...(this.data ? { since: this.data.version } : {}) });
      this.data = merged(this.data, news);
      return this.data;
    });
  }
}

function merged(old, news) {
  const film = old?.film ?? { columns: [], switches: [], scenes: [] };
  const calls = old?.calls ?? [];
  const part = news.film;
  changeEnd(film.columns, part.columns_from, part.columns);
  changeEnd(film.switches, part.switches_from, part.switches);
  // The first scene of a part continues one that is known, except for the bands that stay.
  const [first, ...others] = part.scenes;
  const continued = film.scenes[part.scenes_from] ?? { bands: [] };
  if (first) changeEnd(continued.bands, part.bands_from, first.bands);
  changeEnd(film.scenes, part.scenes_from, first ? [continued, ...others] : []);
  changeEnd(calls, calls.length, news.calls);
  return { ...news, film, calls, own_texts: news.own_texts ?? old?.own_texts ?? [] };
}
