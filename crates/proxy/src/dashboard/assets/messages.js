// The messages of a session: a list that draws only what can be seen, a search, and one message
// with its original.

import { get, post } from "./data.js";
import { dialog, element, replace, tell } from "./elements.js";
import { bytes, count, short } from "./figures.js";

const ROW = 36;
const PAGE = 200;

const STATES = {
  whole: "whole", view: "shown in part", placeholder: "placeholder",
  hidden: "hidden", summary: "summary", repaired: "repaired",
};

export class MessageList {
  constructor(id, changed) {
    this.id = id;
    this.changed = changed;
    this.pages = new Map();
    this.rows = new Map();
    this.total = 0;
    this.found = null;
    this.inner = element("div", { class: "inner" });
    this.list = element("div", { class: "list", role: "list", "aria-label": "Messages", tabindex: 0,
      onscroll: () => this.draw() }, this.inner);
    this.status = element("span", { class: "soft", role: "status" });
    this.field = element("input", { type: "search", "aria-label": "Search all messages", placeholder: "Search all messages" });
    const form = element("form", { class: "row", role: "search", onsubmit: (event) => {
      event.preventDefault();
      this.search(this.field.value);
    } }, this.field, element("button", {}, "Search"), this.status);
    this.field.addEventListener("search", () => this.field.value === "" && this.search(""));
    this.own = element("div");
    this.card = element("section", { class: "card", "aria-label": "Messages" },
      element("div", { class: "row spread" }, element("h2", {}, "Messages"), form), this.list, this.own);
  }

  update(data) {
    this.total = data.messages;
    this.pages.clear();
    // What is shown stays until the new data is there.
    this.rows.forEach((known) => { known.isLoaded = false; });
    replace(this.own, ownTexts(data.own_texts));
    this.draw();
  }

  async search(text) {
    if (text.trim() === "") {
      this.found = null;
      this.status.textContent = "";
    } else {
      try {
        const { matches, most } = await get("search", { id: this.id, q: text });
        this.found = matches;
        const more = matches.length === most ? "the first " : "";
        this.status.textContent = `${more}${count(matches.length)} found`;
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
      const hadFocus = document.activeElement === known.line;
      known.line.replaceWith(line);
      if (hadFocus) line.focus();
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
    const line = element("button", { class: "message", role: "listitem", type: "button", "data-at": at,
      onclick: () => openMessage(this.id, at, this.changed) },
      element("span", { class: "soft" }, `${at + 1}`),
      ...(message ? cells(message, match) : [element("span", { class: "soft" }, "loading")]));
    line.style.top = `${row * ROW}px`;
    return line;
  }

  message(at) {
    const number = Math.floor(at / PAGE);
    const page = this.pages.get(number);
    if (page === undefined) this.ask(number);
    return page?.[at - number * PAGE];
  }

  async ask(number) {
    this.pages.set(number, null);
    try {
      const { messages } = await get("messages", { id: this.id, from: number * PAGE, count: PAGE });
      this.pages.set(number, messages);
      this.draw();
    } catch (error) {
      this.pages.delete(number);
      tell(error.message);
    }
  }
}

function cells(message, match) {
  const tokens = message.shown === message.tokens ? short(message.tokens) : `${short(message.tokens)} → ${short(message.shown)}`;
  return [
    element("span", {}, element("i", { class: `swatch ${message.region}` }), element("span", { class: "name" }, message.region)),
    element("span", { class: "who" },
      element("span", { class: `badge ${message.state}` }, message.pinned ? "pinned" : STATES[message.state])),
    element("span", { class: "text" }, message.tool && message.region === "output" ? `${message.tool}: ` : "",
      match ? match.text : message.text),
    element("span", { class: "number soft" }, tokens),
  ];
}

async function openMessage(id, at, changed) {
  let found;
  try {
    found = await get("message", { id, at });
  } catch (error) {
    return tell(error.message);
  }
  const { entry, detail } = found;
  const original = element("pre", { tabindex: 0, "aria-label": "Original" }, detail.original);
  const panes = [pane("As it came", `${count(entry.tokens)} tokens, ${bytes(detail.bytes)}`, original)];
  if (entry.state === "hidden") {
    panes.unshift(pane("What the model sees", "0 tokens", element("pre", {}, "Nothing: it is hidden. A summary or an excerpt stands for it.")));
  } else if (detail.shown !== null) {
    panes.unshift(pane("What the model sees", `${count(entry.shown)} tokens`, element("pre", { tabindex: 0 }, detail.shown)));
  }
  const isOff = entry.state === "hidden" && !entry.pinned;
  const pin = element("button", { type: "button", disabled: isOff, onclick: async () => {
    try {
      await post("pin", { id, message: at, pinned: !entry.pinned });
      tell(entry.pinned ? `Message ${at + 1} is no longer pinned.` : `Message ${at + 1} is pinned: plans leave it alone.`, true);
      box.close();
      changed();
    } catch (error) {
      tell(error.message);
    }
  } }, entry.pinned ? "Let go of it" : "Pin it");
  const box = dialog(`Message ${at + 1}: ${entry.role}`,
    element("p", {}, element("span", { class: `badge ${entry.state}` }, STATES[entry.state]), " ", whyText(entry, detail)),
    element("div", { class: "row" }, pin, moreButton(id, at, detail, original)),
    element("div", { class: "panes" }, panes));
}

function pane(title, about, text) {
  return element("div", {}, element("h2", {}, title, " ", element("span", { class: "soft" }, about)), text);
}

const WHY = {
  admission: "it was too long when it came in",
  outputs_over_budget: "old outputs were over their budget",
  triggered: "a trigger fired",
  fit: "the window would not have fit",
  overflow: "the provider said that the prompt was too long",
  by_hand: "somebody asked for it",
};

function whyText(entry, detail) {
  const last = detail.because.at(-1);
  const ref = detail.ref ? ` Ref ${detail.ref}.` : "";
  if (entry.state === "whole" || !last) return ref;
  const when = last.at > 0 && last.reason !== "admission" ? `, when there were ${count(last.at)} messages` : "";
  return `Changed because ${WHY[last.reason] ?? last.reason}${when}.${ref}`;
}

/** Asks for the rest of a text that is too long for one answer. */
function moreButton(id, at, detail, original) {
  let offset = detail.original.length;
  if (offset >= detail.characters) return null;
  const button = element("button", { type: "button", onclick: async () => {
    const { detail: more } = await get("message", { id, at, offset });
    original.append(more.original);
    offset += [...more.original].length;
    if (offset >= detail.characters || more.original === "") button.remove();
  } }, "Show more of the original");
  return button;
}

function ownTexts(texts) {
  if (!texts?.length) return null;
  const list = texts.map((own) => element("details", {},
    element("summary", {}, `${own.kind ?? "text"} before message ${own.before + 1}, ${count(own.tokens)} tokens`),
    element("pre", { tabindex: 0 }, own.text)));
  return element("div", {}, element("h2", {}, "Written by Trimtab"), list);
}
