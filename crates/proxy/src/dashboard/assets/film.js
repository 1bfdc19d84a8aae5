// The film strip: each call a column, each message a band that is as long as it is paid for.
//
// In a scene the bands stand still and only new ones come on top, so a band is one rectangle: from
// the first call that sent it to the end of the scene.

import { PAD, drawAxis, drawLines, drawMarks, line } from "./film-marks.js";

const OPACITY = { whole: 1, repaired: 1, summary: 1, view: 0.62, placeholder: 0.34, hidden: 0.1 };
const COLOURS = ["system", "tools", "user", "assistant", "output", "ours", "cut", "ink", "soft", "line",
  "accent", "bad", "warn", "card"];

export class FilmView {
  /** `onSelect` is told the number of a call, `onPoint` a band and its place, or nothing. */
  constructor(canvas, onSelect, onPoint) {
    this.canvas = canvas;
    this.onSelect = onSelect;
    this.onPoint = onPoint;
    this.data = null;
    this.selected = -1;
    canvas.addEventListener("pointermove", (event) => (event.buttons ? this.pick(event) : this.point(event)));
    canvas.addEventListener("pointerleave", () => this.onPoint(null));
    canvas.addEventListener("pointerdown", (event) => this.pick(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.resizing = new ResizeObserver(() => this.draw());
    this.resizing.observe(canvas);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw();
    this.scheme.addEventListener("change", this.redraw);
  }

  /** Stops looking at the page. */
  end() {
    this.resizing.disconnect();
    this.scheme.removeEventListener("change", this.redraw);
  }

  /** Shows a film: `{ film, tools, window, thresholds, breaks }`. */
  show(data) {
    const wasLast = !this.data || this.selected >= this.last;
    this.data = data;
    this.last = data.film.columns.length - 1;
    this.selected = wasLast ? this.last : Math.min(this.selected, this.last);
    this.draw();
    this.onSelect(this.selected);
  }

  select(column) {
    const last = this.data.film.columns.length - 1;
    this.selected = Math.max(0, Math.min(last, column));
    this.draw();
    this.onSelect(this.selected);
  }

  key(event) {
    const last = this.data?.film.columns.length - 1;
    const page = Math.max(1, Math.round(last / 20));
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -page, PageDown: page, Home: -last, End: last };
    if (!this.data || !(event.key in steps)) return;
    event.preventDefault();
    this.select(this.selected + steps[event.key]);
  }

  pick(event) {
    if (!this.data?.film.columns.length) return;
    this.select(Math.floor((this.place(event).x - PAD.left) / this.step()));
    this.point(event);
  }

  place(event) {
    const frame = this.canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  /** Tells which band is under the pointer. */
  point(event) {
    if (!this.data) return;
    const { x, y } = this.place(event);
    const column = Math.floor((x - PAD.left) / this.step());
    const room = this.canvas.clientHeight - PAD.top - PAD.bottom;
    const tokens = this.top * (1 - (y - PAD.top) / room);
    const band = tokens >= 0 ? this.bandAt(column, tokens) : null;
    this.onPoint(band, { x, y });
  }

  bandAt(number, tokens) {
    const column = this.data.film.columns[number];
    if (!column || tokens > column.tokens + this.base) return null;
    let end = this.base;
    if (tokens < end) return { region: "tools", tokens: end };
    for (const [message, count, region, state, size] of this.data.film.scenes[column.scene].bands) {
      end += size;
      if (tokens < end) return { message, count, region, state, tokens: size };
    }
    return null;
  }

  step() {
    const room = this.canvas.clientWidth - PAD.left - PAD.right;
    return Math.min(46, room / Math.max(1, this.data.film.columns.length));
  }

  draw() {
    const { canvas, data } = this;
    if (!data || canvas.clientWidth === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    this.colours = colours();
    this.base = data.tools;
    this.top = topOf(data, this.base);
    drawAxis(this, pen);
    this.drawBands(pen);
    drawLines(this, pen);
    drawMarks(this, pen);
    this.drawSelection(pen);
  }

  x(column) {
    return PAD.left + column * this.step();
  }

  y(tokens) {
    const room = this.canvas.clientHeight - PAD.top - PAD.bottom;
    return PAD.top + room * (1 - Math.min(1, tokens / this.top));
  }

  drawBands(pen) {
    const { scenes, columns } = this.data.film;
    this.drawTools(pen, columns.length);
    let first = 0;
    scenes.forEach((scene, number) => {
      let end = first;
      while (end < columns.length && columns[end].scene === number) end += 1;
      this.drawScene(pen, scene.bands, first, end);
      first = end;
    });
    pen.globalAlpha = 1;
  }

  /** Tool definitions stand in front of everything, in every call. */
  drawTools(pen, calls) {
    if (this.base === 0) return;
    pen.fillStyle = this.colours.tools;
    const [low, high] = [this.y(0), this.y(this.base)];
    pen.fillRect(this.x(0), high, this.x(calls) - this.x(0), Math.max(0.2, low - high - 0.7));
  }

  drawScene(pen, bands, first, end) {
    const { columns } = this.data.film;
    const gap = this.step() > 6 ? 0.6 : 0;
    const right = this.x(end) - gap;
    let [from, column] = [this.base, first];
    for (const [, , region, state, tokens] of bands) {
      const to = from + tokens;
      while (column < end - 1 && columns[column].tokens + this.base < to) column += 1;
      const [low, high] = [this.y(from), this.y(to)];
      pen.globalAlpha = OPACITY[state] ?? 1;
      pen.fillStyle = this.colours[region];
      const space = low - high > 3 ? 0.7 : 0;
      pen.fillRect(this.x(column), high, Math.max(0.7, right - this.x(column)), Math.max(0.2, low - high - space));
      from = to;
    }
  }

  drawSelection(pen) {
    if (this.selected < 0) return;
    const [x, width] = [this.x(this.selected), Math.max(2, this.step())];
    const bottom = this.canvas.clientHeight - PAD.bottom;
    const top = this.y(this.data.film.columns[this.selected].tokens + this.base) - 3;
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x - 0.5, top, width + 1, bottom - top + 1);
    line(pen, x, bottom + 5, x + width, bottom + 5);
    pen.lineWidth = 1;
  }
}

/** Room for the largest window, and for the limit if it is not far above. */
function topOf({ film, window }, base) {
  const { columns } = film;
  const largest = base + columns.reduce((most, column) => Math.max(most, column.tokens), 1);
  const limit = window && window < largest * 3 ? window : 0;
  return Math.max(largest, limit) * 1.08;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
