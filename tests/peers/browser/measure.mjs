// Times of the console in a browser: `node measure.mjs JOB`; prints JSON.
// JOB: {admin, token, rounds}. The toolgate at `admin` must have a server with 1,000 tools.

import { readFileSync } from "node:fs";
import { api, check, newPage, putPolicy, signIn, startBrowser } from "./harness.mjs";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const browser = await startBrowser();

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

/** The first page of a browser that has nothing in its cache: bytes and time until it is complete. */
async function firstPage() {
  const signedIn = await newPage(browser, job);
  await signIn(signedIn, job.token);
  const state = await signedIn.context().storageState();
  const [bytes, times] = [[], []];
  for (let round = 0; round < job.rounds; round += 1) {
    const page = await newPage(browser, job, { storageState: state });
    await page.goto("/", { waitUntil: "load" });
    const seen = await page.evaluate(() => {
      const [own] = performance.getEntriesByType("navigation");
      const all = [own, ...performance.getEntriesByType("resource")].filter((it) => !it.name.endsWith("/console/events"));
      return { bytes: all.reduce((sum, it) => sum + it.transferSize, 0), ms: own.loadEventStart };
    });
    bytes.push(seen.bytes);
    times.push(seen.ms);
    await page.context().close();
  }
  return { bytes: Math.max(...bytes), ms: median(times), worst_ms: Math.max(...times) };
}

/** A click in the builder: until the choice is painted, and until everything that follows is shown. */
async function builder() {
  const page = await newPage(browser, job);
  await signIn(page, job.token);
  await page.goto("/policies/wide");
  const tools = await page.locator(".choice[data-section=tools]").count();
  check(tools >= 1000, `only ${tools} tools`);
  const [painted, complete] = [[], []];
  for (let round = 0; round < job.rounds; round += 1) {
    const seen = await page.evaluate((index) => new Promise((resolve) => {
      const choice = document.querySelectorAll(".choice[data-section=tools]")[index * 7];
      const radio = choice.querySelector("input:not(:checked)");
      const draft = document.getElementById("draft");
      const from = performance.now();
      let paint = 0;
      const observer = new MutationObserver(() => {
        if (draft.classList.contains("busy")) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve({ paint, complete: performance.now() - from })));
      });
      observer.observe(draft, { attributes: true, attributeFilter: ["class"] });
      radio.click();
      requestAnimationFrame(() => setTimeout(() => { paint = performance.now() - from; }));
    }), round);
    painted.push(seen.paint);
    complete.push(seen.complete);
  }
  return { tools, painted_ms: median(painted), worst_painted_ms: Math.max(...painted), complete_ms: median(complete), worst_complete_ms: Math.max(...complete) };
}

try {
  await putPolicy(job, "wide", "version: \"1\"\ndefault: deny\nclasses:\n  read: { action: allow }\n");
  await api(job, "GET", "/tools");
  const { audit } = await api(job, "GET", "/status");
  console.log(JSON.stringify({ rows: audit.rows, first_page: await firstPage(), builder: await builder() }));
} finally {
  await browser.close();
}
