// What stands on and around the bands of a film strip: axes, levels, switch points, cache breaks.

import { cents, count, plural, short } from "./figures.js";

/** Room around the bands, in pixels. */
export const PAD = { left: 52, right: 14, top: 34, bottom: 26 };
/** Who causes cache breaks. */
const NAMES = { trimtab: "Trimtab", client: "client", provider: "provider", time: "went cold" };
/** Two labels have at least so many pixels between them. */
const APART = 64;
/** A label is so high. */
const LABEL = 15;

export function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** A text that can be read on any band. */
function label(pen, view, text, x, y, colour) {
  const width = pen.measureText(text).width + 6;
  pen.globalAlpha = 0.85;
  pen.fillStyle = view.colours.card;
  pen.fillRect(pen.textAlign === "right" ? x - width + 3 : x - 3, y - 11, width, 15);
  pen.globalAlpha = 1;
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

/** The next of 1, 2 and 5 with zeros. */
function roundStep(least) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return unit * [1, 2, 5, 10].find((factor) => factor * unit >= least);
}

export function drawAxis(view, pen) {
  const { clientWidth: width, clientHeight: height } = view.canvas;
  const columns = view.data.film.columns.length;
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = view.colours.soft;
  pen.strokeStyle = view.colours.line;
  pen.textAlign = "right";
  const apart = roundStep(view.top / 5);
  for (let tokens = 0; tokens <= view.top; tokens += apart) {
    const y = Math.round(view.y(tokens)) + 0.5;
    line(pen, PAD.left, y, width - PAD.right, y);
    pen.fillText(short(tokens), PAD.left - 8, y + 4);
  }
  pen.textAlign = "left";
  pen.fillText("tokens", 4, 14);
  const calls = roundStep(Math.max(1, APART / view.step()));
  pen.fillText("call 1", view.x(0), height - 6);
  pen.textAlign = "center";
  for (let call = calls; call <= columns; call += calls) {
    if (call > 1 && view.x(call) > PAD.left + APART) pen.fillText(String(call), view.x(call - 0.5), height - 6);
  }
}

export function drawLines(view, pen) {
  const { film, window, thresholds } = view.data;
  pen.setLineDash([2, 3]);
  pen.strokeStyle = view.colours.soft;
  path(view, pen, film.columns.map((column) => column.whole + view.base));
  // A condition at the window itself needs no line of its own.
  const levels = (thresholds ?? []).filter(({ tokens }) => tokens && tokens < view.top && tokens !== window)
    .map(({ text, tokens }) => ({ text: `${text}: ${short(tokens)}`, tokens, colour: view.colours.warn, dash: [5, 4] }));
  if (window && window <= view.top) {
    levels.push({ text: `window ${short(window)}`, tokens: window, colour: view.colours.bad, dash: [] });
  }
  let last = { y: -APART, right: 0 };
  for (const entry of levels.sort((a, b) => b.tokens - a.tokens)) last = level(view, pen, entry, last);
  pen.setLineDash([]);
  wholeLabel(view, pen);
}

/** Names the dotted line at its end; most of it is above the picture. */
function wholeLabel(view, pen) {
  const last = view.data.film.columns.at(-1);
  if (!last || last.whole <= last.tokens * 1.1) return;
  const isAbove = last.whole + view.base > view.top;
  const text = `${isAbove ? "↑ " : ""}${short(last.whole + view.base)} without Trimtab`;
  pen.textAlign = "right";
  const right = Math.max(view.x(view.data.film.columns.length), PAD.left + pen.measureText(text).width);
  label(pen, view, text, right, view.y(last.whole + view.base) - 5, view.colours.soft);
}

function path(view, pen, values) {
  pen.beginPath();
  values.forEach((tokens, column) => {
    const y = view.y(tokens);
    pen.lineTo(view.x(column), y);
    pen.lineTo(view.x(column + 1), y);
  });
  pen.stroke();
}

/** Draws a level. Its label stands beside that of the level above if there is no room between them. */
function level(view, pen, { text, tokens, colour, dash }, above) {
  const y = Math.round(view.y(tokens)) + 0.5;
  pen.setLineDash(dash);
  pen.strokeStyle = colour;
  line(pen, PAD.left, y, view.canvas.clientWidth - PAD.right, y);
  pen.setLineDash([]);
  pen.textAlign = "left";
  const x = y - above.y < LABEL ? above.right : PAD.left + 4;
  label(pen, view, text, x, y - 5, colour);
  return { y, right: x + pen.measureText(text).width + 12 };
}

export function drawMarks(view, pen) {
  for (const { column } of view.data.film.switches) diamond(view, pen, view.x(column), 10);
  const cuts = view.data.breaks ?? [];
  for (const cut of cuts) drawCut(view, pen, cut, view.x(cut.column));
  labelCuts(view, pen, cuts);
}

/** Names who caused a cut, its byte and its price, as far as there is room. */
function labelCuts(view, pen, cuts) {
  let free = PAD.left;
  const right = view.canvas.clientWidth - PAD.right;
  cuts.forEach((cut, number) => {
    const x = view.x(cut.column);
    const next = number + 1 < cuts.length ? view.x(cuts[number + 1].column) : right;
    for (const text of cutTexts(cut)) {
      const width = pen.measureText(text).width + 8;
      const isRight = x >= free && x + width <= next;
      if (!isRight && x - width < free) continue;
      pen.textAlign = isRight ? "left" : "right";
      label(pen, view, text, isRight ? x + 6 : x - 6, view.y(0) - 6, view.colours.cut);
      free = isRight ? x + width : x;
      return;
    }
  });
}

/** What a cut says, the longest first. */
function cutTexts({ by, byte, cost }) {
  const price = cost === null ? "" : ` ${cents(cost)}`;
  const place = byte === null ? [] : [`${NAMES[by]}, byte ${count(byte)},${price}`.replace(/,$/, "")];
  return [...place, `${NAMES[by]}${price}`];
}

function diamond(view, pen, x, y) {
  pen.fillStyle = view.colours.ink;
  pen.beginPath();
  pen.moveTo(x, y - 5);
  pen.lineTo(x + 5, y);
  pen.lineTo(x, y + 5);
  pen.lineTo(x - 5, y);
  pen.fill();
}

/** A red cut, from what was still read from the cache up to the top of what was paid again. */
function drawCut(view, pen, { column, kept }, x) {
  const top = view.y(view.data.film.columns[column].tokens + view.base);
  pen.lineWidth = 2.5;
  pen.strokeStyle = view.colours.cut;
  line(pen, x, view.y(kept), x, Math.min(top, view.y(kept)) - 6);
  line(pen, x - 4, view.y(kept), x + 4, view.y(kept));
  pen.lineWidth = 1;
}

/** What the picture shows, for those who cannot see it. */
export function filmSummary({ film, breaks, readBack }) {
  const [first, last] = [film.columns[0], film.columns.at(-1)];
  if (!first) return "No call yet.";
  return `${plural(film.columns.length - readBack.size, "call")}: the messages grew from ${short(first.tokens)} to ` +
    `${short(last.tokens)} tokens, ${short(last.whole)} without Trimtab. ` +
    `${plural(film.switches.length, "switch point")}, ${plural(breaks.length, "cache break")}. ` +
    "Left and right choose a call.";
}
