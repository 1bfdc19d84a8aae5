// Figures as people read them.

const whole = new Intl.NumberFormat("en");

export function count(number) {
  return whole.format(Math.round(number ?? 0));
}

/** 1 call, 2 calls */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** 950, 12.3k, 1.2M */
export function short(number) {
  const size = Math.abs(number ?? 0);
  if (size < 1000) return String(Math.round(number ?? 0));
  if (size < 999_500) return `${(number / 1000).toFixed(size < 99_950 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

/** $1.23, and $0.0123 for what is less than ten cents */
export function money(dollars) {
  return dollarText(dollars, Math.abs(dollars) >= 0.1 || dollars === 0 ? 2 : 4);
}

/** $1.23, and $0.0012 only for what is less than a cent */
export function cents(dollars) {
  return dollarText(dollars, Math.abs(dollars) >= 0.01 || dollars === 0 ? 2 : 4);
}

function dollarText(dollars, digits) {
  if (dollars === null || dollars === undefined) return "unknown";
  return `${dollars < 0 ? "\u2212" : ""}$${Math.abs(dollars).toFixed(digits)}`;
}

/** What was saved against a window that holds everything, if that differs. */
export function unbounded({ saved, saved_unbounded: all }, over) {
  return over > 0 && all !== saved
    ? `${cents(all)} saved if the window held everything` : "";
}

export function percent(part, all) {
  return all > 0 ? `${Math.round((100 * part) / all)} %` : "0 %";
}

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let unit = -1;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

export function ago(then, now) {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} days ago`;
}

/** 4:05 */
export function countdown(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export function clock(time) {
  return new Date(time).toLocaleTimeString();
}

/** The last part of the name of a session, which tells it from the others. */
export function sessionName(id) {
  return id.split("/").pop().slice(0, 12);
}
