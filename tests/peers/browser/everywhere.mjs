// Scenarios over all pages: audit, language, phone, keyboard, accessibility, hostile text, live views.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { api, callTool, check, everyPage, furnish, hold, newPage, rugPull, signIn } from "./harness.mjs";
import { hostile } from "./hostile.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function findingDenials({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/audit");
  await page.getByLabel("Kind").selectOption("denied");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("link", { name: "desk/run_script" }).first().click();
  await page.getByText("The call was refused; nothing was sent").waitFor();
  await page.getByText("/tools/desk~1run_script/action").first().waitFor();
  // Rows are found by any text, and why a base is not visible is answered.
  await page.goto("/audit");
  await page.getByRole("searchbox").fill("RUN_SCRIPT");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=RUN_SCRIPT/);
  const found = await page.locator("tbody tr").allTextContents();
  check(found.length > 0 && found.every((it) => it.includes("run_script")), found.join("\n"));
  await page.goto("/sessions");
  await page.getByPlaceholder("Name of the base, or a session id").fill("trade");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("No program with a base “trade” is connected.").waitFor();
  // The audit is verified, and taken out as a file.
  await page.goto("/audit?kind=denied");
  await page.getByRole("button", { name: "Verify the audit" }).click();
  await page.getByText("The audit is intact").waitFor();
  await page.goto("/audit?kind=denied");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export CSV" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  check(lines[0].startsWith("seq,time,kind,") && lines.length === 3 && lines.slice(1).every((it) => it.includes(",denied,")), lines.join("\n"));
  await page.getByRole("link", { name: "desk/run_script" }).first().click();
  // Language.
  await page.locator("details.menu summary").click();
  await page.getByRole("button", { name: "Русский" }).click();
  await page.getByText("Вызов отклонён; ничего не отправлено").waitFor();
  check(await page.locator("html").getAttribute("lang") === "ru", "the page is not marked as Russian");
  await page.goto("/policies/desk-rules?lang=en");
  check(await page.locator("html").getAttribute("lang") === "en", "?lang=en has no effect");
  check(page.problems.length === 0, page.problems.join("\n"));
}

export async function onPhone({ gate, browser }) {
  await fill(gate);
  const page = await newPage(browser, gate, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await signIn(page, gate.token);
  for (const [name, path] of Object.entries(await everyPage(gate))) {
    await page.goto(path);
    // A page that is too wide is zoomed out, so the window tells nothing.
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, window.innerWidth) - screen.width);
    check(wide <= 0, `${name} is ${wide} px too wide on a phone`);
  }
  check(page.problems.length === 0, page.problems.join("\n"));
}

export async function byKeyboard({ gate, browser }) {
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

/** Everything that pages can show: calls, a held one, a quarantined definition. */
async function fill(gate) {
  const agent = await furnish(gate);
  const { id } = await hold(gate, agent.token, "desk__delete_note", { id: "7", text: "x".repeat(200) });
  await rugPull(gate);
  gate.approval = id;
}

export async function accessible({ gate, browser }) {
  await fill(gate);
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

export async function showsHostileText({ gate, browser }) {
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

export async function followsEvents({ gate, browser }) {
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
