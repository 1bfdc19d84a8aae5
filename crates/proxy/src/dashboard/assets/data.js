// Asks the proxy for data, gives it orders, and listens to its live feed.

const base = "/dashboard/api/";
/** How far the clock of the proxy is ahead of ours. */
let ahead = 0;

export function serverNow() {
  return Date.now() + ahead;
}

async function answered(response) {
  const data = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error(data.error?.message ?? `the proxy answered with status ${response.status}`);
  }
  if (data.now_ms) ahead = data.now_ms - Date.now();
  return data;
}

export async function get(name, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answered(await fetch(`${base}${name}${query ? `?${query}` : ""}`));
}

export async function post(name, order) {
  const options = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(order),
  };
  return answered(await fetch(base + name, options));
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

/** Connects to the live feed. The browser connects again by itself; what was missed is asked for. */
export function connect() {
  const feed = new EventSource(`${base}events`);
  feed.onopen = () => setState("live", "Live");
  feed.onerror = () => {
    setState("lost", "Connection lost, trying again");
    // After an answer that is no feed the browser gives up.
    if (feed.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
  feed.onmessage = (message) => {
    const event = JSON.parse(message.data);
    listeners.forEach((callback) => callback(event));
  };
}

/** Runs `work` soon after it is called, and not more often than once in `pause` milliseconds. */
export function calmly(work, pause = 700) {
  let timer = null;
  let last = 0;
  return () => {
    if (timer !== null) return;
    const wait = Math.max(60, last + pause - Date.now());
    timer = setTimeout(() => {
      timer = null;
      last = Date.now();
      work();
    }, wait);
  };
}
