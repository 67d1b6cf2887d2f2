// Scenarios about servers and policies.

import { api, callTool, check, furnish, newPage, putPolicy, signIn } from "./harness.mjs";

export async function building({ gate, browser }) {
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
  // Problems appear while typing, with a caret below their line, and a failing test blocks saving.
  const text = page.locator("#document");
  await text.fill("version: \"1\"\ndefault: alow\n");
  await page.getByRole("heading", { name: "This document cannot be saved" }).waitFor();
  check(await page.locator(".caret").first().textContent() === "default: alow\n         ^", "no caret");
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

/** Conditions are changed, added and removed in place; comments and other bytes stay. */
export async function editingConditions({ gate, browser }) {
  const agent = await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/policies/desk-rules");
  const text = page.locator("#document");
  const holds = (part) => page.waitForFunction((it) => document.getElementById("document").value.includes(it) && !document.querySelector("#draft.busy"), part);
  const write = page.getByRole("group", { name: "write_note", exact: true });
  await write.getByRole("button", { name: "Edit denied if text contains" }).click();
  await write.getByLabel("Value").fill("secret");
  await write.getByRole("button", { name: "Apply" }).click();
  await holds("value: secret");
  check(await text.inputValue() === agent.document.replace("value: password", "value: secret"), await text.inputValue());
  // Enter applies, and does not save.
  const read = page.getByRole("group", { name: "read_note", exact: true });
  await read.getByRole("button", { name: "Add a condition" }).click();
  await read.getByLabel("What happens").selectOption("deny_if");
  await read.getByLabel("Field").fill("args.id");
  await read.getByLabel("Comparison").selectOption("starts_with");
  await read.getByLabel("Value").fill("private");
  await page.keyboard.press("Enter");
  await holds("desk/read_note: { deny_if: [{ conditions: [{ path: args.id, op: starts_with, value: private }] }] }");
  check((await api(gate, "GET", "/policies/desk-rules")).document === agent.document, "saved by Enter");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("was saved and is active").waitFor();
  const denied = await callTool(gate, agent.token, "desk__read_note", { id: "private-1" });
  check(denied._meta.error_code === "policy_denied", JSON.stringify(denied));
  check(!(await callTool(gate, agent.token, "desk__read_note", { id: "1" })).isError, "all calls are denied");
  await read.getByRole("button", { name: /^Remove denied/ }).click();
  await page.waitForFunction(() => !document.getElementById("document").value.includes("private"));
  // A rule on the page of a tool leads to its line.
  await page.goto("/tools/desk/delete_note");
  await page.getByRole("link", { name: "desk-rules, line 7" }).click();
  await page.waitForFunction(() => document.activeElement.id === "document");
  const line = await text.evaluate((it) => it.value.slice(it.selectionStart, it.selectionEnd));
  check(line === "  destructive: { action: allow, approve: {} }", `line 7 is ${line}`);
  check(page.problems.length === 0, page.problems.join("\n"));
}

/** Limits are changed where they are written; a draft names the terms that differ. */
export async function editingLimits({ gate, browser }) {
  const document = "# limits\nversion: \"1\"\ndefault: deny\nclasses:\n  write: { action: allow, rate_limit: 30/minute } # few\ntools:\n  desk/read_note:\n    limits:\n      - { counter: reads, window: 15m, max: 5 } # odd\n";
  await putPolicy(gate, "limited", document);
  await api(gate, "POST", "/grants", { label: "laptop", policy: "limited" });
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/policies/limited");
  const text = page.locator("#document");
  const holds = (part) => page.waitForFunction((it) => document.getElementById("document").value.includes(it) && !document.querySelector("#draft.busy"), part);
  const write = page.getByRole("group", { name: "write", exact: true });
  await write.getByLabel("Most calls of write").fill("40");
  await page.keyboard.press("Enter");
  await holds("rate_limit: 40/minute } # few");
  const read = page.getByRole("group", { name: "read_note", exact: true });
  await read.getByLabel("Most calls of read_note reads").fill("7");
  await page.keyboard.press("Enter");
  await holds("window: 15m, max: 7 } # odd");
  await read.getByLabel("Window of read_note reads").selectOption("hour");
  await holds("window: hour, max: 7 } # odd");
  const expected = document.replace("30/minute", "40/minute").replace("window: 15m, max: 5", "window: hour, max: 7");
  check(await text.inputValue() === expected, await text.inputValue());
  await text.fill(`${document}    deny_if: [{ conditions: [{ path: args.id, op: eq, value: secret }] }]\n`);
  await page.locator("#changes").getByText('deny_if args.id eq "secret"').waitFor();
  check(page.problems.length === 0, page.problems.join("\n"));
}

export async function addingServers({ gate, browser }) {
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/servers");
  const desk = new URL("./desk.mjs", import.meta.url).pathname;
  await page.getByLabel("Name").fill("second");
  await page.getByLabel(/^Command/).fill(`${process.execPath} ${desk} 'an argument'`);
  await page.getByRole("button", { name: "Look before adding" }).click();
  await page.getByText("'an argument'").first().waitFor();
  // Its tools and their risk are shown, and nothing is saved yet.
  const offered = page.locator("section", { has: page.getByRole("heading", { name: /Add the server/ }) });
  await offered.getByRole("row", { name: /run_script execute/ }).waitFor();
  check((await api(gate, "GET", "/servers")).items.length === 1, "saved before it was confirmed");
  await page.getByRole("button", { name: "Add this server" }).click();
  await page.getByText("The server “second” was added.").waitFor();
  await page.getByRole("button", { name: "Test second" }).click();
  await page.getByText("The server answered").waitFor();
  await page.goto("/servers");
  const card = page.getByRole("article", { name: "second" });
  await card.getByText("Last lines of its stderr").click();
  await card.getByText("desk: ready").first().waitFor();
  // A program that cannot be started is told before it is saved.
  await page.getByLabel("Name").fill("broken");
  await page.getByLabel(/^Command/).fill("/nonexistent/program");
  await page.getByRole("button", { name: "Look before adding" }).click();
  await page.getByText(/It did not answer/).waitFor();
  await page.goto("/tools?server=second");
  await page.getByRole("link", { name: "pay_invoice" }).waitFor();
  await page.goto("/servers");
  await page.getByRole("button", { name: "Remove second" }).click();
  await page.getByText("The server “second” was removed.").waitFor();
  check(page.problems.length === 0, page.problems.join("\n"));
}

/** The recommended rule of a tool, applied to a policy as a draft and saved. */
export async function applyingRules({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/tools/desk/pay_invoice");
  await page.getByText("Apply to policy…").click();
  await page.locator("details.apply").getByRole("link", { name: "desk-rules" }).click();
  await page.getByText("has the recommended rule for desk/pay_invoice").waitFor();
  const text = await page.locator("#document").inputValue();
  check(text.includes("desk/pay_invoice: { approve: {} }") && text.startsWith("# rules of the desk\n"), text);
  await page.locator("#changes").getByText("desk/pay_invoice").waitFor();
  check(!(await api(gate, "GET", "/policies/desk-rules")).document.includes("pay_invoice"), "saved before it was confirmed");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("was saved and is active").waitFor();
  check((await api(gate, "GET", "/policies/desk-rules")).document.includes("desk/pay_invoice: { approve: {} }"), "not saved");
  // The catalogue is searched.
  await page.goto("/catalog");
  await page.getByRole("searchbox").fill("filesystem");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /filesystem/ }).first().click();
  await page.getByRole("heading", { name: "Recommended policy" }).waitFor();
  check(page.problems.length === 0, page.problems.join("\n"));
}

/** A policy in shadow: what it would have refused, then enforced. */
export async function leavingShadow({ gate, browser }) {
  const document = "# a trial\nversion: \"1\"\nmode: shadow\ndefault: deny\nclasses:\n  read: { action: allow }\n";
  await putPolicy(gate, "trial", document);
  const grant = await api(gate, "POST", "/grants", { label: "laptop", policy: "trial" });
  check(!(await callTool(gate, grant.token, "desk__write_note", { id: "1" })).isError, "denied in shadow");
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  // No page takes what is only recorded for a refusal.
  await page.locator("header .mode.shadow").waitFor();
  await page.goto("/tools/desk/write_note");
  await page.getByRole("row", { name: /laptop would be denied/ }).first().waitFor();
  await page.goto("/grants");
  await page.getByText("Its policy is in shadow mode").waitFor();
  await page.goto("/policies/trial");
  await page.getByRole("row", { name: /laptop desk\/write_note would be denied/ }).waitFor();
  await page.getByRole("button", { name: "Enforce this policy" }).click();
  await page.getByText("The policy “trial” is enforced.").waitFor();
  const saved = (await api(gate, "GET", "/policies/trial")).document;
  check(saved.startsWith("# a trial\nversion: \"1\"\n") && !saved.includes("shadow"), saved);
  check((await callTool(gate, grant.token, "desk__write_note", { id: "1" }))._meta.error_code === "policy_denied", "not enforced");
  check(page.problems.length === 0, page.problems.join("\n"));
}
