// Builds elements. Text is always a text node, so nothing that came from outside can be markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (value === true) made.setAttribute(name, "");
    else made.setAttribute(name, String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function replace(place, ...children) {
  place.replaceChildren(...children.flat().filter(Boolean));
}

export function tile(name, value, about, tone = "") {
  const figure = element("dd", { class: tone }, value);
  if (about) figure.append(element("small", {}, about));
  return element("div", { class: "tile" }, element("dt", {}, name), figure);
}

export function tiles(...list) {
  return element("dl", { class: "tiles" }, list.flat().filter(Boolean));
}

export function empty(title, text) {
  return element("div", { class: "card empty" }, element("h2", {}, title), element("p", {}, text));
}

/** Says why a page cannot be shown. What is shown already stays: the state of the link tells the rest. */
export function problem(place, title, error) {
  if (!place.querySelector("h1")) replace(place, empty(title, error.message));
}

export function table(columns, rows, kind = "cards") {
  const head = columns.map((column) =>
    element("th", { scope: "col", class: column.number ? "number" : "" }, column.name));
  const body = rows.map((row) => element("tr", {}, columns.map((column) =>
    element("td", { class: column.number ? "number" : "", "data-label": column.name },
      element("div", {}, column.cell(row))))));
  return element("table", { class: kind },
    element("thead", {}, element("tr", {}, head)), element("tbody", {}, body));
}

/** Shows a message for some seconds; screen readers say it. */
export function tell(text, isDone = false) {
  const note = element("p", { class: isDone ? "done" : "" }, text);
  document.getElementById("alerts").append(note);
  setTimeout(() => note.remove(), 8000);
}

/** A list of names and values. */
export function pairs(list) {
  const row = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
  return element("dl", { class: "pairs" }, list.map(row));
}

/** Opens a dialog; it is removed when it is closed. */
export function dialog(title, ...children) {
  const close = element("button", { type: "button", onclick: () => box.close() }, "Close");
  const heading = element("h2", { id: "dialog-title" }, title);
  const box = element("dialog", { "aria-labelledby": "dialog-title" },
    element("div", { class: "row spread" }, heading, close), children);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}
