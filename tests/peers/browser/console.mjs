// Scenarios of the console in a real browser: `node console.mjs NAME JOB`.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { api, callTool, check, cli, everyPage, furnish, newPage, signIn, startBrowser, startGate } from "./harness.mjs";
import { hostile } from "./hostile.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const scenarios = {
  'console-sign-in': signingIn,
  'console-builder': building,
  'console-grants': granting,
  'console-servers': addingServers,
  'console-audit': findingDenials,
  'console-phone': onPhone,
  'console-keyboard': byKeyboard,
  'console-axe': accessible,
  'console-hostile': showsHostileText,
  'console-live': followsEvents,
};

async function signingIn({ gate, browser }) {
  const page = await newPage(browser, gate);
  const first = await page.goto("/servers");
  check(new URL(page.url()).pathname === "/login", `not led to the sign-in page: ${page.url()}`);
  for (const [name, part] of [["content-security-policy", "frame-ancestors 'none'"], ["content-security-policy", "default-src 'none'"], ["x-content-type-options", "nosniff"], ["cache-control", "no-store"]]) {
    check((first.headers()[name] ?? "").includes(part), `${name} lacks ${part}`);
  }
  for (let n = 1; n <= 11; n += 1) {
    await page.getByLabel("Token").fill(`wrong-token-number-${n}`);
    const [response] = await Promise.all([page.waitForResponse((it) => it.request().method() === "POST"), page.getByRole("button", { name: "Sign in" }).click()]);
    check(response.status() === (n <= 10 ? 401 : 429), `attempt ${n}: ${response.status()}`);
  }
  // A link is no guess; it is for one use, confirmed by a form.
  const person = await api(gate, "POST", "/people", { name: "duty", roles: ["viewer"] });
  await page.waitForFunction(() => true);
  const other = await startGate(gate.job, "sign-in-2");
  try {
    const link = (await cli(other, "console", "--no-open")).trim();
    const fresh = await newPage(browser, other);
    await fresh.goto(link);
    await fresh.getByRole("heading", { name: "Sign in as admin" }).waitFor();
    await fresh.getByRole("button", { name: "Sign in" }).click();
    await fresh.getByRole("heading", { name: "Overview" }).waitFor();
    const cookies = await fresh.context().cookies();
    const cookie = cookies.find((it) => it.name === "toolgate");
    check(cookie?.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookies));
    const again = await newPage(browser, other);
    check((await again.goto(link)).status() === 401, "a link works twice");
    // Revoking the token of a person ends what they see.
    const made = await api(other, "POST", "/people", { name: "night", roles: ["viewer"] });
    const viewer = await newPage(browser, other);
    await signIn(viewer, made.token);
    check(await viewer.getByRole("button", { name: "Freeze everything" }).count() === 0, "a viewer may freeze");
    await viewer.goto("/grants");
    check(await viewer.getByRole("heading", { name: "Create a grant" }).count() === 0, "a viewer may create grants");
    await api(other, "DELETE", `/people/${made.id}`);
    await viewer.goto("/grants");
    check(new URL(viewer.url()).pathname === "/login", "a revoked person stays signed in");
    // Signing out.
    await fresh.locator("details.menu summary").click();
    await fresh.getByRole("button", { name: "Sign out" }).click();
    await fresh.waitForURL(/\/login/);
    await fresh.goto("/");
    check(new URL(fresh.url()).pathname === "/login", "still signed in");
    check(fresh.problems.length === 0, fresh.problems.join("\n"));
  } finally {
    await other.stop();
  }
  check(person.token.length > 20, "no token");
}

async function building({ gate, browser }) {
  const agent = await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/policies/desk-rules");
  // Saving an unchanged document is byte-identical.
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("was saved and is active").waitFor();
  const same = await api(gate, "GET", "/policies/desk-rules");
  check(same.document === agent.document, `changed by saving:\n${same.document}`);
  // The builder edits the document, keeps comments, and shows what changes.
  check(!(await callTool(gate, agent.token, "desk__read_note", { id: "1" })).isError, "denied before");
  const group = page.getByRole("group", { name: "read_note" });
  await group.getByRole("radio", { name: "Deny" }).check();
  await page.waitForFunction(() => document.getElementById("document").value.includes("desk/read_note: { action: deny }"));
  await page.locator("#changes").getByText("desk/read_note").waitFor();
  check((await page.locator("#document").inputValue()).startsWith("# rules of the desk\n"), "the comment is gone");
  await page.locator("#sentences").getByText("“desk/read_note” is denied.").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("was saved and is active").waitFor();
  const denied = await callTool(gate, agent.token, "desk__read_note", { id: "1" });
  check(denied.isError && denied._meta.error_code === "policy_denied", JSON.stringify(denied));
  // Problems appear while typing, and a failing test blocks saving.
  const text = page.locator("#document");
  await text.fill("version: \"1\"\ndefault: alow\n");
  await page.getByRole("heading", { name: "This document cannot be saved" }).waitFor();
  const failing = `${agent.document}tests:\n  - call: { tool: read_note, server: desk, class: read }\n    expect: deny\n`;
  await text.fill(failing);
  await page.getByText(/fails/).first().waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("fails its own tests").first().waitFor();
  // Rolling back.
  await page.goto("/policies/desk-rules");
  await page.getByRole("link", { name: "Compare with the active one v1" }).click();
  await page.locator(".diff .added").first().waitFor();
  await page.getByRole("button", { name: "Roll back v1" }).click();
  await page.getByText("is active again").waitFor();
  check(!(await callTool(gate, agent.token, "desk__read_note", { id: "1" })).isError, "still denied");
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function granting({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/grants");
  await page.getByLabel("Label").fill("ci");
  const create = page.locator("section", { has: page.getByRole("heading", { name: "Create a grant" }) });
  await create.getByLabel("Policy").selectOption("desk-rules");
  await create.getByRole("button", { name: "Create" }).click();
  const token = (await page.locator("#token").textContent()).trim();
  check((await page.locator("#client-1").textContent()).includes(token), "no configuration to paste");
  check(!(await callTool(gate, token, "desk__read_note", { id: "1" })).isError, "the new grant is denied");
  // Freeze and unfreeze everything.
  await page.goto("/");
  await page.getByRole("button", { name: "Freeze everything" }).click();
  await page.getByText("Everything is frozen").first().waitFor();
  const frozen = await callTool(gate, token, "desk__read_note", { id: "1" });
  check(frozen._meta.error_code === "frozen", JSON.stringify(frozen));
  await page.getByRole("button", { name: "Unfreeze everything" }).click();
  await page.getByText("The freeze has ended").waitFor();
  check(!(await callTool(gate, token, "desk__read_note", { id: "1" })).isError, "still frozen");
  // Try it: through policy, with the person's name.
  await page.goto("/tools/desk/read_note");
  const attempt = page.locator("#try");
  await attempt.getByLabel("With the rights of the grant").selectOption("ci");
  await attempt.getByLabel(/^id/).fill("42");
  await attempt.getByRole("button", { name: "Call" }).click();
  await page.getByText('read_note did {"id":"42"}').first().waitFor();
  const rows = await api(gate, "GET", "/audit?kind=intent&grant=ci&limit=1000");
  const row = rows.items.find((it) => it.via === "console");
  check(row?.person === "admin", JSON.stringify(row));
  await page.goto("/tools/desk/run_script");
  await attempt.getByLabel("With the rights of the grant").selectOption("ci");
  await attempt.getByLabel(/^command/).fill("id");
  await attempt.getByRole("button", { name: "Call" }).click();
  await attempt.getByText("policy_denied").first().waitFor();
  // Revoke, and the agent is refused.
  await page.goto("/grants");
  await page.getByRole("button", { name: "Revoke ci" }).click();
  await page.getByText("The token no longer works").waitFor();
  check((await callTool(gate, token, "desk__read_note", { id: "1" })).status === 401, "the revoked grant still calls");
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function addingServers({ gate, browser }) {
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/servers");
  const desk = new URL("./desk.mjs", import.meta.url).pathname;
  await page.getByLabel("Name").fill("second");
  await page.getByLabel(/^Command/).fill(`${process.execPath} ${desk} 'an argument'`);
  await page.getByRole("button", { name: "Look before adding" }).click();
  await page.getByText("'an argument'").first().waitFor();
  await page.getByRole("button", { name: "Add this server" }).click();
  await page.getByText("The server “second” was added.").waitFor();
  await page.getByRole("button", { name: "Test second" }).click();
  await page.getByText("The server answered").waitFor();
  await page.goto("/tools?server=second");
  await page.getByRole("link", { name: "pay_invoice" }).waitFor();
  await page.goto("/servers");
  await page.getByRole("button", { name: "Remove second" }).click();
  await page.getByText("The server “second” was removed.").waitFor();
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function findingDenials({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/audit");
  await page.getByLabel("Kind").selectOption("denied");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("link", { name: "desk/run_script" }).first().click();
  await page.getByText("The call was refused; nothing was sent").waitFor();
  await page.getByText("/tools/desk~1run_script/action").first().waitFor();
  // Language.
  await page.locator("details.menu summary").click();
  await page.getByRole("button", { name: "Русский" }).click();
  await page.getByText("Вызов отклонён; ничего не отправлено").waitFor();
  check(await page.locator("html").getAttribute("lang") === "ru", "the page is not marked as Russian");
  await page.goto("/policies/desk-rules?lang=en");
  check(await page.locator("html").getAttribute("lang") === "en", "?lang=en has no effect");
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function onPhone({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await signIn(page, gate.token);
  for (const [name, path] of Object.entries(await everyPage(gate))) {
    await page.goto(path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    check(wide <= 0, `${name} is ${wide} px too wide on a phone`);
  }
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function byKeyboard({ gate, browser }) {
  const page = await newPage(browser, gate);
  await page.goto("/login");
  await page.keyboard.type(gate.token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  check(page.url().endsWith("#main"), "the first stop does not skip the navigation");
  await page.goto("/tools");
  await page.getByRole("searchbox").focus();
  await page.keyboard.type("delete");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "delete_note" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /delete_note/ }).first().waitFor();
  check(page.problems.length === 0, page.problems.join("\n"));
}

async function accessible({ gate, browser }) {
  await furnish(gate);
  for (const colorScheme of ["light", "dark"]) {
    const page = await newPage(browser, gate, { colorScheme });
    await page.goto("/login");
    await audited(page, `login ${colorScheme}`);
    await signIn(page, gate.token);
    for (const [name, path] of Object.entries({ ...(await everyPage(gate)), styles: "/console/styles", missing: "/policies/nothing" })) {
      const response = await page.goto(path);
      if (response.status() === 404 && name === "styles") continue;
      await audited(page, `${name} ${colorScheme}`);
    }
    check(page.problems.length === 0, page.problems.join("\n"));
  }
}

async function audited(page, name) {
  // The policy of the page allows no scripts but its own; the browser's evaluation is not bound by it.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  const shown = violations.map((it) => `${it.id}: ${it.help}\n${it.nodes.slice(0, 3).map((node) => `    ${node.html.slice(0, 160)} ${node.failureSummary.split("\n")[1] ?? ""}`).join("\n")}`);
  check(violations.length === 0, `${name}: ${violations.length} violations\n${shown.join("\n")}`);
}

async function showsHostileText({ gate, browser }) {
  for (const string of hostile) {
    const label = string.replace(/\p{Cc}/gu, "").trim().slice(0, 64);
    if (!label) continue;
    await fetch(`${gate.admin}/api/v1/grants`, { method: "POST", headers: { authorization: `Bearer ${gate.token}` }, body: JSON.stringify({ label, policy: "recommended", identity: string }) });
  }
  const grant = await api(gate, "POST", "/grants", { label: "plain", policy: "recommended" });
  for (const string of hostile.slice(0, 60)) await callTool(gate, grant.token, "desk__read_note", { id: string, [string || "x"]: string });
  await api(gate, "GET", "/tools");
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  const tools = (await api(gate, "GET", "/tools")).items.filter((tool) => /^t\d+_/.test(tool.name));
  check(tools.length > 150, `only ${tools.length} hostile tools are listed`);
  const paths = Object.values(await everyPage(gate)).filter((path) => !path.includes("desk-rules"));
  paths.push("/policies/recommended", ...tools.map((tool) => `/tools/desk/${encodeURIComponent(tool.name)}`));
  paths.push(...hostile.slice(0, 34).flatMap((string) => [`/tools?q=${encodeURIComponent(string)}`, `/audit?tool=${encodeURIComponent(string)}`, `/catalog?q=${encodeURIComponent(string)}`]));
  for (const path of paths) {
    const response = await page.goto(path);
    check(response.status() < 500, `${path}: ${response.status()}`);
    const state = await page.evaluate(() => ({ pwned: window.pwned === 1, wide: document.documentElement.scrollWidth - window.innerWidth, main: document.querySelectorAll("main").length, scripts: [...document.scripts].filter((it) => !it.src.startsWith(`${location.origin}/assets/`)).length, frames: document.querySelectorAll("iframe, base, object, embed").length }));
    check(!state.pwned && state.scripts === 0 && state.frames === 0, `${path}: something executed or was injected: ${JSON.stringify(state)}`);
    check(state.main === 1, `${path}: the page is broken: ${JSON.stringify(state)}`);
    check(state.wide <= 0, `${path}: the layout is ${state.wide} px too wide`);
  }
  check(page.problems.length === 0, page.problems.slice(0, 5).join("\n"));
}

async function followsEvents({ gate, browser }) {
  const agent = await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/audit?tool=read_note");
  const rows = () => page.locator("tbody tr").count();
  const before = await rows();
  await callTool(gate, agent.token, "desk__read_note", { id: "live" });
  await page.waitForFunction((count) => document.querySelectorAll("tbody tr").length > count, before);
  check(page.problems.length === 0, page.problems.join("\n"));
}

const [, , name, jobFile] = process.argv;
const job = JSON.parse(readFileSync(jobFile, "utf8"));
check(scenarios[name], `unknown scenario ${name}`);
const gate = await startGate(job, name, { hostile: name === "console-hostile" });
gate.job = job;
const browser = await startBrowser();
try {
  await scenarios[name]({ gate, browser, job });
  console.log(`${name}: ok`);
} catch (error) {
  console.error(gate.log().split("\n").slice(-15).join("\n"));
  throw error;
} finally {
  await browser.close();
  await gate.stop();
}
