// Asks the proxy for data, gives it orders, and listens to its live feed.

const base = "/dashboard/api/";
/** How far the clock of the proxy is ahead of ours. */
let ahead = 0;

export function serverNow() {
  return Date.now() + ahead;
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new Error("The proxy does not answer. Does it still run?");
  }
  const data = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error(data.error?.message ?? `the proxy answered with status ${response.status}`);
  }
  if (data.now_ms) ahead = data.now_ms - Date.now();
  return data;
}

export async function get(name, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answered(`${base}${name}${query ? `?${query}` : ""}`);
}

export async function post(name, order) {
  const options = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(order),
  };
  return answered(base + name, options);
}

const listeners = new Set();

/** Calls back for every event, until the function that it gives is called. */
export function listen(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

function setState(kind, text) {
  const place = document.getElementById("link-state");
  place.className = `link-state ${kind}`;
  place.textContent = text;
}

let feed = null;

/**
 * Connects to the live feed while the page can be seen: a browser has only a few connections for
 * all its tabs. It connects again by itself; what was missed is asked for then.
 */
export function connect() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : openFeed()));
  if (!document.hidden) openFeed();
}

function disconnect() {
  feed?.close();
  feed = null;
  setState("", "Paused");
}

function openFeed() {
  feed?.close();
  feed = new EventSource(`${base}events`);
  feed.onopen = () => setState("live", "Live");
  feed.onerror = (failure) => {
    if (failure.target !== feed) return;
    setState("lost", "Connection lost, trying again");
    // After an answer that is no feed the browser gives up.
    if (feed.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || openFeed(), 2000);
  };
  feed.onmessage = (message) => {
    const event = JSON.parse(message.data);
    listeners.forEach((callback) => callback(event));
  };
}

/** Many screens hear of a change at the same moment; each asks within so many milliseconds. */
const SPREAD = 200;

/**
 * Runs `work` soon after it is called, and not more often than once in `pause` milliseconds. What
 * happens last is shown after half a second at the latest.
 */
export function calmly(work, pause = 400) {
  let timer = null;
  let last = 0;
  return () => {
    if (timer !== null) return;
    const wait = Math.max(Math.random() * SPREAD, last + pause - Date.now());
    timer = setTimeout(() => {
      timer = null;
      last = Date.now();
      work();
    }, wait);
  };
}
