// What can be done to a session: compact it, take that back, choose a preset.

import { post } from "./data.js";
import { dialog, element, tell } from "./elements.js";
import { count, percent, plural } from "./figures.js";

export function actionRow(data, changed) {
  const button = (text, work, isOff = false) => element("button", { type: "button", disabled: isOff, onclick: async (event) => {
    event.target.disabled = true;
    try {
      await work();
    } catch (error) {
      tell(error.message);
    }
    event.target.disabled = isOff;
  } }, text);
  return [
    button("Compact now…", () => preview(data.id, changed)),
    button("Undo the last change", () => undo(data.id, changed), data.undoable === 0),
    element("label", {}, "Preset for this session ", presetChoice(data, changed)),
    data.pins.length > 0
      ? element("span", { class: "soft" }, `${plural(data.pins.length, "message")} pinned`) : null,
  ].filter(Boolean);
}

function presetChoice(data, changed) {
  const options = data.presets.map((name) => element("option", { value: name, selected: name === data.preset }, name));
  return element("select", { "aria-label": "Preset for this session", disabled: !data.is_loaded, onchange: async (event) => {
    try {
      await post("preset", { id: data.id, preset: event.target.value });
      tell(`From the next call on, ${event.target.value} decides.`, true);
    } catch (error) {
      tell(error.message);
    }
    changed();
  } }, options);
}

async function preview(id, changed) {
  const found = await post("preview", { id });
  const note = found.events.map((event) => event.note).filter(Boolean).join("\n");
  if (!found.done) {
    dialog("Nothing to compact", element("p", {}, note || "A compaction would not make the window smaller."));
    return;
  }
  const { plan } = found;
  const range = ([from, to]) => (to - from > 1 ? `${from + 1} to ${to}` : `${to}`);
  const hidden = plan.hidden.length === 0 ? "No further message is hidden."
    : `${plan.hidden.length === 1 && plan.hidden[0][1] - plan.hidden[0][0] === 1 ? "Message" : "Messages"} ` +
      `${plan.hidden.map(range).join(", ")} will be hidden; they stay in the store, and the model can read them back.`;
  const approve = element("button", { class: "main", type: "button", onclick: async () => {
    try {
      const done = await post("compact", { id });
      tell(done.done ? "Compacted. The next call sends the shorter window." : "Nothing was done.", done.done);
    } catch (error) {
      tell(error.message);
    }
    box.close();
    changed();
  } }, "Compact");
  const box = dialog("Compact this session?",
    element("p", {}, `The window shrinks from ${count(plan.tokens_before)} to ${count(plan.tokens_after)} tokens ` +
      `(${percent(plan.tokens_before - plan.tokens_after, plan.tokens_before)} less). ${hidden}`),
    element("p", { class: "soft" }, "These texts, written without a model, stand in their place. You can undo this."),
    element("div", { class: "panes" }, plan.texts.map((text, number) =>
      element("pre", { tabindex: 0, "aria-label": `Text ${number + 1}` }, text))),
    element("div", { class: "row" }, approve));
  approve.focus();
}

async function undo(id, changed) {
  const { done, events } = await post("undo", { id });
  const last = events.at(-1);
  tell(done && last ? `Taken back: the window has ${count(last.tokens_after)} tokens again.` : "There is nothing to take back.", done);
  changed();
}
