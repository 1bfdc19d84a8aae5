// The messages of a session: a list that draws only what can be seen, and a search.

import { get } from "./data.js";
import { element, replace, tell } from "./elements.js";
import { REGIONS, STATES } from "./film-text.js";
import { count, plural, short } from "./figures.js";
import { marked, openMessage } from "./message.js";

const ROW = 36;
const PAGE = 200;

export class MessageList {
  constructor(id) {
    this.id = id;
    this.pages = new Map();
    this.rows = new Map();
    this.total = 0;
    this.decisions = null;
    this.found = null;
    this.wanted = "";
    this.inner = element("div", { class: "inner" });
    this.list = element("div", { class: "list", role: "list", tabindex: 0,
      "aria-label": "Messages. Up and down choose one, Enter opens it.",
      onscroll: () => this.draw(), onkeydown: (event) => this.key(event) }, this.inner);
    this.status = element("span", { class: "soft", role: "status" });
    const hint = "Search all messages";
    this.field = element("input", { type: "search", "aria-label": hint, placeholder: hint });
    const form = element("form", { class: "row", role: "search", onsubmit: (event) => {
      event.preventDefault();
      this.search(this.field.value);
    } }, this.field, element("button", {}, "Search"), this.status);
    this.field.addEventListener("search", () => this.field.value === "" && this.search(""));
    this.own = element("div", { class: "own" });
    this.card = element("section", { class: "card", "aria-label": "Messages" },
      element("div", { class: "row spread" }, element("h2", {}, "Messages"), form), listHead(), this.list, this.own);
  }

  update(data) {
    // Without a new decision, only what stood at the end can be shown differently.
    const { decisions } = data;
    const from = decisions === this.decisions ? Math.max(0, this.total - 1) : 0;
    if (decisions !== this.decisions || data.messages !== this.total) this.forget(from);
    this.decisions = decisions;
    this.total = data.messages;
    replace(this.own, ownTexts(data.own_texts));
    this.draw();
  }

  /** Asks for the messages from number `from` on again. What is shown stays until they are there. */
  forget(from) {
    const page = Math.floor(from / PAGE);
    for (const number of this.pages.keys()) if (number >= page) this.pages.delete(number);
    this.rows.forEach((known, row) => {
      const at = this.found ? this.found[row]?.at : row;
      if (at >= page * PAGE) known.isLoaded = false;
    });
  }

  open(at) {
    return openMessage(this.id, at, this.wanted);
  }

  async search(text) {
    this.wanted = text.trim();
    if (this.wanted === "") {
      this.found = null;
      this.status.textContent = "";
    } else {
      try {
        const { matches, most } = await get("search", { id: this.id, q: text });
        this.found = matches;
        this.status.textContent = matches.length === most
          ? `the first ${count(most)} messages found` : `${plural(matches.length, "message")} found`;
      } catch (error) {
        tell(error.message);
      }
    }
    this.rows.clear();
    replace(this.inner);
    this.list.scrollTop = 0;
    this.draw();
  }

  get length() {
    return this.found ? this.found.length : this.total;
  }

  /**
   * Draws the rows that can be seen, and asks for pages that are missing. Rows that are there stay
   * the same elements, so that neither a click nor the focus is lost.
   */
  draw() {
    this.inner.style.height = `${this.length * ROW}px`;
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - 4);
    const last = Math.min(this.length, first + Math.ceil(this.list.clientHeight / ROW) + 8);
    for (const [row, { line }] of this.rows) {
      if (row >= first && row < last) continue;
      line.remove();
      this.rows.delete(row);
    }
    for (let row = first; row < last; row += 1) this.place(row);
  }

  place(row) {
    const at = this.found ? this.found[row].at : row;
    const isLoaded = Boolean(this.message(at));
    const known = this.rows.get(row);
    if (known && (known.isLoaded || !isLoaded)) return;
    const line = this.row(row);
    if (known) {
      const hadFocus = known.line.contains(document.activeElement);
      known.line.replaceWith(line);
      if (hadFocus) line.firstChild.focus();
    } else {
      const behind = [...this.rows.keys()].filter((other) => other > row).sort((a, b) => a - b)[0];
      this.inner.insertBefore(line, this.rows.get(behind)?.line ?? null);
    }
    this.rows.set(row, { line, isLoaded });
  }

  row(row) {
    const match = this.found?.[row];
    const at = match ? match.at : row;
    const message = this.message(at);
    const button = element("button", { class: "message", type: "button", tabindex: -1, "data-at": at, "data-row": row,
      onclick: () => this.open(at) },
    element("span", { class: "soft" }, `${at + 1}`),
    ...(message ? this.cells(message, match) : [element("span", { class: "soft" }, "loading")]));
    const place = { role: "listitem", "aria-setsize": this.length, "aria-posinset": row + 1 };
    const item = element("div", { class: "item", ...place }, button);
    item.style.top = `${row * ROW}px`;
    return item;
  }

  cells(message, match) {
    const all = short(message.tokens);
    const tokens = message.shown === message.tokens ? all : `${all} → ${short(message.shown)}`;
    return [
      element("span", {}, element("i", { class: `swatch ${message.region}` }),
        element("span", { class: "name" }, REGIONS[message.region])),
      element("span", { class: "who" },
        element("span", { class: `badge ${message.state}` }, STATES[message.state])),
      element("span", { class: "text" }, message.tool && message.region === "output" ? `${message.tool}: ` : "",
        match ? marked(match.text, this.wanted) : message.text),
      element("span", { class: "number soft" }, tokens),
    ];
  }

  /** Moves through the rows, also those that are not drawn yet. */
  key(event) {
    const here = document.activeElement?.dataset.row;
    const now = here === undefined ? Math.ceil(this.list.scrollTop / ROW) - 1 : Number(here);
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1);
    const last = this.length - 1;
    const rows = { ArrowUp: now - 1, ArrowDown: now + 1, PageUp: now - page, PageDown: now + page, Home: 0, End: last };
    if (!(event.key in rows) || last < 0) return;
    event.preventDefault();
    const row = Math.max(0, Math.min(last, rows[event.key]));
    const [top, bottom] = [row * ROW, (row + 1) * ROW - this.list.clientHeight];
    this.list.scrollTop = Math.max(bottom, Math.min(top, this.list.scrollTop));
    this.draw();
    this.rows.get(row)?.line.firstChild.focus();
  }

  message(at) {
    const number = Math.floor(at / PAGE);
    const page = this.pages.get(number);
    if (page === undefined) this.ask(number);
    return page?.[at - number * PAGE];
  }

  async ask(number) {
    const waiting = [];
    this.pages.set(number, waiting);
    // It may be asked for again meanwhile.
    const isCurrent = () => this.pages.get(number) === waiting;
    try {
      const { messages } = await get("messages", { id: this.id, from: number * PAGE, count: PAGE });
      if (!isCurrent()) return;
      this.pages.set(number, messages);
      this.draw();
    } catch (error) {
      if (isCurrent()) this.pages.delete(number);
      tell(error.message);
    }
  }
}

/** The names of the columns; screen readers read whole rows, and need none. */
function listHead() {
  const names = ["No.", "From", "State", "Text", "Tokens"];
  return element("div", { class: "list-head", "aria-hidden": "true" }, names.map((name) => element("span", {}, name)));
}

function ownTexts(texts) {
  if (!texts?.length) return null;
  const list = texts.map((own) => element("details", {},
    element("summary", {}, `${own.kind ?? "text"} before message ${own.before + 1}, ${plural(own.tokens, "token")}`),
    element("pre", { tabindex: 0 }, own.text)));
  return element("div", {}, element("h2", {}, "Written by Trimtab"), list);
}
