// Screenshots of every page, in both themes and languages: `node screenshots.mjs JOB FOLDER [NAME…]`.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { api, callTool, everyPage, furnish, hold, newPage, person, putPolicy, rugPull, signIn, startBrowser, startGate } from "./harness.mjs";

const [, , jobFile, folder, ...names] = process.argv;
const job = JSON.parse(readFileSync(jobFile, "utf8"));
const gate = await startGate(job, "screenshots");
const browser = await startBrowser();
const programs = [];

/** A program that dials in, and its tools. */
async function dialIn(uid, profile) {
  programs.push(spawn(job.toolgate, ["demo", "onec", "--uid", uid, "--profile", profile, "--data", join(gate.folder, "data")], { stdio: "ignore" }));
  for (;;) {
    const { items } = await api(gate, "GET", "/sessions");
    if (items.some((it) => it.session_id === uid && it.state === "active")) return;
  }
}

/** What a gateway in use has. */
async function fill() {
  const agent = await furnish(gate);
  await putPolicy(gate, "trial", "# a trial before it is enforced\nversion: \"1\"\nmode: shadow\ndefault: deny\nclasses:\n  read: { action: allow }\n");
  const ci = await api(gate, "POST", "/grants", { label: "ci", policy: "trial", identity: "build-server", expires: "2027-12-31" });
  await api(gate, "POST", "/grants", { label: "notebook", policy: "recommended", identity: "kate", groups: ["analysts"] });
  await person(gate, "kate", "approver");
  await person(gate, "oleg", "policy_manager");
  await dialIn("accounting-1", "thin");
  await dialIn("accounting-jobs", "server");
  for (let n = 0; n < 24; n += 1) await callTool(gate, agent.token, "desk__read_note", { id: `${n}` });
  for (const tool of ["write_note", "delete_note", "run_script"]) await callTool(gate, ci.token, `desk__${tool}`, { id: "1", command: "id" });
  await hold(gate, agent.token, "desk__delete_note", { id: "invoice-2031", reason: "the customer asked for it" });
  const approvals = await api(gate, "GET", "/approvals?state=pending");
  gate.approval = approvals.items[0].id;
  await rugPull(gate);
}

try {
  if (names.length === 0) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await fill();
  const pages = Object.entries({ ...(await everyPage(gate)), shadow: "/policies/trial", server: "/catalog?q=filesystem&server=server-filesystem" });
  const wanted = pages.filter(([name]) => names.length === 0 || names.includes(name));
  for (const [colorScheme, locale] of [["light", "en-US"], ["dark", "en-US"], ["light", "ru-RU"], ["dark", "ru-RU"]]) {
    const suffix = `${locale.slice(0, 2)}-${colorScheme}`;
    const page = await newPage(browser, gate, { colorScheme, locale });
    await page.goto("/login");
    if (names.length === 0) await page.screenshot({ path: join(folder, `login-${suffix}.png`) });
    await signIn(page, gate.token);
    for (const [name, path] of wanted) {
      await page.goto(path);
      await page.screenshot({ path: join(folder, `${name}-${suffix}.png`) });
    }
  }
  const phone = await newPage(browser, gate, { viewport: { width: 390, height: 844 } });
  await signIn(phone, gate.token);
  for (const [name, path] of wanted.filter(([it]) => ["overview", "approvals", "approval", "tool", "policy", "grants"].includes(it))) {
    await phone.goto(path);
    await phone.screenshot({ path: join(folder, `${name}-phone.png`) });
  }
} finally {
  for (const program of programs) program.kill();
  await browser.close();
  await gate.stop();
}
