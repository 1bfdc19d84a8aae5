// Asks the proxy for data, now and then again.

const base = "/dashboard/api/";
/** How often a page that can be seen asks for what it shows, in milliseconds. */
const PAUSE = 2000;
/** How far the clock of the proxy is ahead of ours. */
let ahead = 0;
/** What was answered last, by name: the proxy does not send again what has not changed. */
const last = new Map();

export function serverNow() {
  return Date.now() + ahead;
}

/** Asks for data. If nothing has changed since the last answer of this name, it is the same object. */
export async function get(name, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  const url = `${base}${name}${query ? `?${query}` : ""}`;
  const known = last.get(name)?.url === url ? last.get(name) : null;
  let response;
  try {
    response = await fetch(url, known ? { headers: { "if-none-match": known.tag } } : {});
  } catch {
    throw new Error("The proxy does not answer. Does it still run?");
  }
  const now = Date.parse(response.headers.get("date"));
  if (now) ahead = now - Date.now();
  if (response.status === 304) return known.data;
  const data = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error(data.error?.message ?? `the proxy answered with status ${response.status}`);
  }
  last.set(name, { url, tag: response.headers.get("etag"), data });
  return data;
}

function setState(kind, text) {
  const place = document.getElementById("link-state");
  place.className = `link-state ${kind}`;
  place.textContent = text;
}

/**
 * Runs `work` now and every two seconds while the page can be seen, until the function that it
 * gives is called. `failed` gets the error of a run that failed.
 */
export function watch(work, failed) {
  let timer = null;
  let isRunning = false;
  let isOver = false;
  async function run() {
    clearTimeout(timer);
    if (document.hidden) setState("", "Paused");
    if (document.hidden || isRunning || isOver) return;
    isRunning = true;
    try {
      await work();
      setState("live", "Live");
    } catch (error) {
      setState("lost", "Connection lost, trying again");
      if (!isOver) failed(error);
    }
    isRunning = false;
    if (!isOver) timer = setTimeout(run, PAUSE);
  }
  document.addEventListener("visibilitychange", run);
  run();
  return () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", run);
  };
}
