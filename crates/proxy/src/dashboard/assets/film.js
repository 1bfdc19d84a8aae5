// The film strip: each call a column, each message a band that is as long as it is paid for.
//
// In a scene the bands stand still and only new ones come on top, so a band is one rectangle: from
// the first call that sent it to the end of the scene.

import { short } from "./figures.js";

const PAD = { left: 52, right: 14, top: 26, bottom: 26 };
const OPACITY = { whole: 1, repaired: 1, summary: 1, view: 0.62, placeholder: 0.34, hidden: 0.1 };

export class FilmView {
  constructor(canvas, onSelect) {
    this.canvas = canvas;
    this.onSelect = onSelect;
    this.data = null;
    this.selected = -1;
    canvas.addEventListener("pointermove", (event) => event.buttons && this.pick(event));
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

  /** Shows a film: `{ film, window, thresholds, breaks, other }`. */
  show(data) {
    const wasLast = !this.data || this.selected >= this.data.film.columns.length - 1;
    this.data = data;
    const last = data.film.columns.length - 1;
    this.selected = wasLast ? last : Math.min(this.selected, last);
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
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    this.select(Math.floor((x - PAD.left) / this.step()));
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
    this.colours = colours();
    this.base = (data.tools ?? []).reduce((sum, [, tokens]) => sum + tokens, 0);
    this.top = topOf(data, this.base);
    this.drawAxis(pen);
    this.drawBands(pen);
    this.drawLines(pen);
    this.drawMarks(pen);
    this.drawSelection(pen);
  }

  x(column) {
    return PAD.left + column * this.step();
  }

  y(tokens) {
    const room = this.canvas.clientHeight - PAD.top - PAD.bottom;
    return PAD.top + room * (1 - Math.min(1, tokens / this.top));
  }

  drawAxis(pen) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = this.colours.soft;
    pen.strokeStyle = this.colours.line;
    pen.textAlign = "right";
    const apart = roundStep(this.top / 4);
    for (let tokens = 0; tokens <= this.top; tokens += apart) {
      const y = Math.round(this.y(tokens)) + 0.5;
      line(pen, PAD.left, y, width - PAD.right, y);
      pen.fillText(short(tokens), PAD.left - 8, y + 4);
    }
    pen.textAlign = "left";
    pen.fillText("tokens", 4, 14);
    pen.textAlign = "right";
    pen.fillText(`${this.data.film.columns.length} calls`, width - PAD.right, height - 8);
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
    let from = 0;
    pen.fillStyle = this.colours.tools;
    for (const [, tokens] of this.data.tools ?? []) {
      const [low, high] = [this.y(from), this.y(from + tokens)];
      pen.fillRect(this.x(0), high, this.x(calls) - this.x(0), Math.max(0.2, low - high - 0.7));
      from += tokens;
    }
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

  drawLines(pen) {
    const { film, window, thresholds, other } = this.data;
    pen.setLineDash([2, 3]);
    pen.strokeStyle = this.colours.soft;
    this.path(pen, film.columns.map((column) => column.whole + this.base));
    if (other) {
      pen.setLineDash([]);
      pen.strokeStyle = this.colours.ink;
      this.path(pen, other.columns.map((column) => column.tokens + this.base));
    }
    if (window && window <= this.top) this.level(pen, window, "window", this.colours.bad, []);
    for (const { text, tokens } of thresholds ?? []) {
      if (tokens && tokens < this.top && tokens !== window) this.level(pen, tokens, text, this.colours.warn, [5, 4]);
    }
    pen.setLineDash([]);
  }

  path(pen, values) {
    pen.beginPath();
    values.forEach((tokens, column) => {
      const y = this.y(tokens);
      pen.lineTo(this.x(column), y);
      pen.lineTo(this.x(column + 1), y);
    });
    pen.stroke();
  }

  level(pen, tokens, text, colour, dash) {
    const y = Math.round(this.y(tokens)) + 0.5;
    pen.setLineDash(dash);
    pen.strokeStyle = colour;
    line(pen, PAD.left, y, this.canvas.clientWidth - PAD.right, y);
    pen.fillStyle = colour;
    pen.textAlign = "right";
    pen.fillText(text, this.canvas.clientWidth - PAD.right - 4, y - 5);
  }

  drawMarks(pen) {
    for (const { column } of this.data.film.switches) {
      const x = this.x(column);
      pen.fillStyle = this.colours.ink;
      pen.beginPath();
      pen.moveTo(x, PAD.top - 14);
      pen.lineTo(x + 5, PAD.top - 9);
      pen.lineTo(x, PAD.top - 4);
      pen.lineTo(x - 5, PAD.top - 9);
      pen.fill();
    }
    pen.lineWidth = 2.5;
    pen.strokeStyle = this.colours.cut;
    for (const { column, kept } of this.data.breaks ?? []) {
      const top = this.y(this.data.film.columns[column].tokens + this.base);
      line(pen, this.x(column), this.y(kept), this.x(column), Math.min(top, this.y(kept)) - 6);
      line(pen, this.x(column) - 4, this.y(kept), this.x(column) + 4, this.y(kept));
    }
    pen.lineWidth = 1;
  }

  drawSelection(pen) {
    if (this.selected < 0) return;
    const [x, width] = [this.x(this.selected), Math.max(2, this.step())];
    const height = this.canvas.clientHeight - PAD.top - PAD.bottom;
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x - 0.5, PAD.top - 1, width + 1, height + 2);
    pen.lineWidth = 1;
  }
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** Room for the largest window, and for the limit if it is not far above. */
function topOf({ film, window, other }, base) {
  const columns = [...film.columns, ...(other?.columns ?? [])];
  const largest = base + columns.reduce((most, column) => Math.max(most, column.tokens), 1);
  const limit = window && window < largest * 3 ? window : 0;
  return Math.max(largest, limit) * 1.08;
}

/** The next of 1, 2, 2.5 and 5 with zeros. */
function roundStep(least) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return unit * [1, 2, 2.5, 5, 10].find((factor) => factor * unit >= least);
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["system", "tools", "user", "assistant", "output", "ours", "cut", "ink", "soft", "line",
    "accent", "bad", "warn"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
