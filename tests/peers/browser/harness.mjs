// What the scenarios of the console share: a running toolgate, an agent, a browser.

import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));

/** Fails with a message. */
export function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** A toolgate of its own, with the server `desk`. */
export async function startGate(job, name, { hostile = false, config = {} } = {}) {
  const folder = join(job.folder, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Beside the configuration, so that pages show no path of this machine.
  for (const file of ["desk.mjs", "hostile.mjs"]) copyFileSync(join(here, file), join(folder, file));
  const args = ["desk.mjs", ...(hostile ? ["--hostile"] : [])];
  const listen = { mcp: "127.0.0.1:0", sessions: "127.0.0.1:0", admin: "127.0.0.1:0" };
  const document = { version: 1, data: "data", listen, servers: { desk: { command: "node", args } }, ...config };
  writeFileSync(join(folder, "toolgate.yaml"), `${JSON.stringify(document, null, 2)}\n`);
  const child = spawn(job.toolgate, ["serve", "--ready-json", "--config", join(folder, "toolgate.yaml")], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (data) => { log += data; });
  const ready = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(JSON.parse(line)));
    child.once("exit", (code) => reject(new Error(`toolgate exited with ${code}: ${log}`)));
  });
  const token = readFileSync(join(folder, "data", "admin.token"), "utf8").trim();
  const stop = () => new Promise((resolve) => { child.once("exit", resolve); child.kill("SIGTERM"); });
  return { ...ready, folder, token, stop, log: () => log, toolgate: job.toolgate };
}

/** Runs a verb of the CLI on the data folder. */
export async function cli(gate, ...words) {
  const child = spawn(gate.toolgate, [...words, "--data", join(gate.folder, "data")], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (data) => { out += data; });
  child.stderr.on("data", (data) => { err += data; });
  const code = await new Promise((resolve) => child.once("exit", resolve));
  check(code === 0, `toolgate ${words.join(" ")} exited with ${code}: ${err}`);
  return out;
}

/** The admin API. */
export async function api(gate, method, path, body) {
  const headers = { authorization: `Bearer ${gate.token}`, "content-type": "application/json" };
  const response = await fetch(`${gate.admin}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  check(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** One call of an agent, by the sessionless protocol; the result, or the HTTP status. */
export async function callTool(gate, token, name, args) {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "agent", version: "1" } };
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: meta } };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  if (token) headers.authorization = `Bearer ${token}`;
  const response = await fetch(`${gate.mcp}/mcp`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok && response.status !== 400) return { status: response.status };
  const text = await response.text();
  const json = text.startsWith("{") ? text : text.split("\n").filter((line) => line.startsWith("data:")).at(-1).slice(5);
  return JSON.parse(json).result ?? JSON.parse(json);
}

/** A browser with a profile of its own. */
export async function startBrowser() {
  const args = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args });
}

/** A page at 1280x720 that is not signed in; errors of scripts and refused resources fail the scenario. */
export async function newPage(browser, gate, options = {}) {
  const context = await browser.newContext({ baseURL: gate.admin, viewport: { width: 1280, height: 720 }, locale: "en-US", timezoneId: "Europe/Moscow", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`script error: ${error}`));
  page.on("console", (message) => {
    const isStatus = /Failed to load resource.*(401|403|404|409|422|429|503)/.test(message.text());
    if (message.type() === "error" && !isStatus) page.problems.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => dialog.accept());
  return page;
}

/** Signs in with a token. */
export async function signIn(page, token) {
  await page.goto("/login");
  await page.locator("#token").fill(token);
  await page.locator("form.stack button").click();
  await page.waitForURL((url) => url.pathname !== "/login");
}

/** The pages of the console, for a gate that has a grant, a policy and a call. */
export async function everyPage(gate) {
  const rows = await api(gate, "GET", "/audit?kind=intent&limit=1");
  const call = rows.items[0]?.call_id;
  const pages = { overview: "/", approvals: "/approvals", servers: "/servers", tools: "/tools", tool: "/tools/desk/delete_note", policies: "/policies", policy: "/policies/desk-rules", grants: "/grants", people: "/people", sessions: "/sessions?base=trade&grant=laptop", audit: "/audit", catalogue: "/catalog" };
  if (gate.approval) Object.assign(pages, { approval: `/approvals/${gate.approval}`, review: "/tools/desk/read_note" });
  return call ? { ...pages, call: `/audit/${call}` } : pages;
}

/** Stores a policy. */
export async function putPolicy(gate, name, document) {
  const headers = { authorization: `Bearer ${gate.token}` };
  const put = await fetch(`${gate.admin}/api/v1/policies/${name}`, { method: "PUT", headers, body: document });
  check(put.ok, `cannot put the policy: ${await put.text()}`);
}

/** A person with these roles. */
export async function person(gate, name, ...roles) {
  return api(gate, "POST", "/people", { name, roles });
}

/** A call that a policy holds: its approval, and the promise of its result. */
export async function hold(gate, token, name, args) {
  const result = callTool(gate, token, name, args);
  for (;;) {
    const held = await api(gate, "GET", "/approvals?state=pending");
    const found = held.items.find((it) => `${it.server}__${it.tool}` === name && JSON.stringify(it.arguments) === JSON.stringify(args));
    if (found) return { id: found.id, result };
  }
}

/** The server `desk` changes the definition of `read_note`, and toolgate notices. */
export async function rugPull(gate) {
  await api(gate, "GET", "/tools");
  writeFileSync(join(gate.folder, "desk.changed"), "");
  await api(gate, "POST", "/servers/desk/test");
  const tools = await api(gate, "GET", "/tools");
  const tool = tools.items.find((it) => it.name === "read_note");
  check(tool?.state === "quarantined", `not quarantined: ${JSON.stringify(tool)}`);
}

/** A policy, a grant and a few calls, so that pages have something to show. */
export async function furnish(gate) {
  const document = "# rules of the desk\nversion: \"1\"\ndefault: deny\nclasses:\n  read: { action: allow }\n  write: { action: allow, rate_limit: 30/minute }\n  destructive: { action: allow, approve: {} }\ntools:\n  desk/run_script: { action: deny, reason: nothing runs here }\n  desk/write_note:\n    deny_if: [{ conditions: [{ path: args.text, op: contains, value: password }], on_deny: no passwords in notes }]\n";
  await putPolicy(gate, "desk-rules", document);
  const grant = await api(gate, "POST", "/grants", { label: "laptop", policy: "desk-rules", identity: "sales-desk" });
  for (const [tool, args] of [["read_note", { id: "1" }], ["write_note", { id: "1", text: "hello" }], ["run_script", { command: "id" }], ["write_note", { id: "2", text: "password" }], ["read_note", { id: "2" }]]) {
    await callTool(gate, grant.token, `desk__${tool}`, args);
  }
  return { ...grant, document };
}
