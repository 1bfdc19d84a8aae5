// One message: its state, why it has it, what the model sees, and its original from the store.

import { get } from "./data.js";
import { dialog, element, replace, tell } from "./elements.js";
import { STATES } from "./film-text.js";
import { bytes, count, plural } from "./figures.js";

const WHY = {
  admission: "it was too long when it came in",
  outputs_over_budget: "old outputs were over their budget",
  triggered: "a condition of the preset was met",
  fit: "the window would not have fit",
  overflow: "the provider said that the prompt was too long",
  by_hand: "somebody asked for it",
};

/** A text in which the wanted words are marked, whatever their case. */
export function marked(text, wanted) {
  if (!wanted) return [text];
  // Other letters may change their length in lower case; then nothing is marked.
  const lower = text.toLowerCase();
  const needle = wanted.toLowerCase();
  if (lower.length !== text.length) return [text];
  const pieces = [];
  let from = 0;
  for (let at = lower.indexOf(needle); at >= 0; at = lower.indexOf(needle, from)) {
    pieces.push(text.slice(from, at), element("mark", {}, text.slice(at, at + needle.length)));
    from = at + needle.length;
  }
  return [...pieces, text.slice(from)];
}

/** Opens a message; `wanted` is marked in its original. */
export async function openMessage(id, at, wanted) {
  let found;
  try {
    found = await get("message", { id, at });
  } catch (error) {
    return tell(error.message);
  }
  const { entry, detail } = found;
  const original = element("pre", { tabindex: 0, "aria-label": "Original" }, marked(detail.original, wanted));
  const panes = [pane("As it came", `${plural(entry.tokens, "token")}, ${bytes(detail.bytes)}`, original)];
  if (entry.state === "hidden") {
    panes.unshift(pane("What the model sees", "0 tokens",
      element("pre", {}, "Nothing: it is hidden. A summary or an excerpt stands for it.")));
  } else if (detail.shown !== null) {
    panes.unshift(pane("What the model sees", plural(entry.shown, "token"),
      element("pre", { tabindex: 0, "aria-label": "What the model sees" }, detail.shown)));
  }
  const badge = element("span", { class: `badge ${entry.state}` }, STATES[entry.state]);
  dialog(`Message ${at + 1}: ${entry.role}`,
    element("p", {}, badge, " ", whyText(entry, detail)),
    element("div", { class: "row" }, moreButton(id, at, detail, original, wanted)),
    element("div", { class: "panes" }, panes));
  original.querySelector("mark")?.scrollIntoView({ block: "center" });
}

function pane(title, about, text) {
  return element("div", {}, element("h2", {}, title, " ", element("span", { class: "soft" }, about)), text);
}

function whyText(entry, detail) {
  const last = detail.because.at(-1);
  const ref = detail.ref ? ` Its original is in the store as ${detail.ref}.` : "";
  if (entry.state === "whole" || !last) return ref;
  const when = last.at > 0 && last.reason !== "admission" ? `, when there were ${plural(last.at, "message")}` : "";
  return `Changed because ${WHY[last.reason] ?? last.reason}${when}.${ref}`;
}

/** Asks for the rest of a text that is too long for one answer. */
function moreButton(id, at, detail, original, wanted) {
  let offset = [...detail.original].length;
  if (offset >= detail.characters) return null;
  const button = element("button", { type: "button", onclick: async () => {
    try {
      const { detail: more } = await get("message", { id, at, offset });
      original.append(...marked(more.original, wanted));
      offset += [...more.original].length;
      if (offset >= detail.characters || more.original === "") button.remove();
      else replace(button, moreText(detail.characters - offset));
    } catch (error) {
      tell(error.message);
    }
  } }, moreText(detail.characters - offset));
  return button;
}

function moreText(left) {
  return `Show more of the original, ${count(left)} characters left`;
}
