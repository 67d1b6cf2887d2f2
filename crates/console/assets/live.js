// Live views: when something happens, the parts marked with data-live are loaded again.

import { enable } from "/assets/console.js";

const LEAST = 1500;
const WITHOUT_STREAM = 10000;
let last = 0;
let waiting = null;

function isBusy(part) {
  const focus = document.activeElement;
  const selects = part.contains(focus) && focus.matches("input, select, textarea");
  return selects || part.querySelector("details[open]") !== null;
}

async function load() {
  waiting = null;
  last = Date.now();
  const response = await fetch(location.href, { headers: { accept: "text/html", "x-page-part": "1" } });
  if (response.redirected && new URL(response.url).pathname === "/login") {
    location.assign("/login");
    return;
  }
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh || isBusy(part)) continue;
    enable(fresh);
    if (fresh.innerHTML === part.innerHTML) continue;
    const focused = part.contains(document.activeElement) ? focusPath(document.activeElement) : null;
    part.replaceChildren(...fresh.childNodes);
    if (focused) document.querySelector(focused)?.focus();
  }
}

function focusPath(element) {
  const link = element.getAttribute("href");
  return link ? `a[href="${CSS.escape(link)}"]` : null;
}

function soon() {
  if (waiting !== null || document.hidden) return;
  waiting = setTimeout(() => load().catch(() => {}), Math.max(50, last + LEAST - Date.now()));
}

let fallback = null;

function follow() {
  const events = new EventSource("/console/events");
  events.addEventListener("row", soon);
  events.addEventListener("error", () => {
    fallback ??= setInterval(soon, WITHOUT_STREAM);
  });
  events.addEventListener("open", () => {
    clearInterval(fallback);
    fallback = null;
  });
}

if (document.readyState === "complete") follow();
else window.addEventListener("load", follow);
document.addEventListener("visibilitychange", soon);
