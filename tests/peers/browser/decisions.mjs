// Scenarios about what waits for a person: held calls and quarantined definitions.

import { api, callTool, check, furnish, hold, newPage, person, putPolicy, rugPull, signIn } from "./harness.mjs";

const RULES = "version: \"1\"\ndefault: deny\nclasses:\n  read: { action: allow }\ntools:\n  desk/delete_note: { approve: { note: deletes what a customer wrote }, rate_limit: 5/hour }\n";

/** An approver answers held calls: from the inbox, by keyboard, on a phone; denies one; lets similar ones pass. */
export async function approving({ gate, browser }) {
  await putPolicy(gate, "careful", RULES);
  const grant = await api(gate, "POST", "/grants", { label: "laptop", policy: "careful", identity: "sales-desk" });
  const duty = await person(gate, "duty", "approver");
  const page = await newPage(browser, gate);
  await signIn(page, duty.token);
  await page.goto("/approvals");
  await page.getByText("Nothing waits for you").waitFor();
  // The inbox is live.
  const first = await hold(gate, grant.token, "desk__delete_note", { id: 12345678901234567890n.toString(), reason: "old\u202E" });
  const article = page.getByRole("article", { name: "desk/delete_note" });
  await article.getByText("deletes what a customer wrote").waitFor();
  await article.getByText("old\\u{202E}").waitFor();
  await article.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Approved.", { exact: true }).waitFor();
  const result = await first.result;
  check(!result.isError && result.content[0].text.startsWith("delete_note did"), JSON.stringify(result));
  const rows = await api(gate, "GET", "/audit?kind=approval&limit=100");
  check(rows.items.some((row) => row.person === "duty" && row.via === "console"), JSON.stringify(rows.items));
  // One approval in full: counters after it, and what differs from the last one.
  const second = await hold(gate, grant.token, "desk__delete_note", { id: "2", why: "asked" });
  await page.goto(`/approvals/${second.id}`);
  await page.getByText("1 → 2 / 5").waitFor();
  await page.getByText("No: it deletes or ends something.").waitFor();
  const differs = page.locator("section", { has: page.getByRole("heading", { name: "Compared with the last approved call" }) });
  await differs.getByText("why", { exact: true }).waitFor();
  await page.getByLabel("Reason, shown to the agent").fill("not today");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByText("Denied.", { exact: true }).waitFor();
  const denied = await second.result;
  check(denied._meta.error_code === "approval_denied" && denied.content[0].text.includes("not today"), JSON.stringify(denied));
  // By keyboard alone.
  const third = await hold(gate, grant.token, "desk__delete_note", { id: "3" });
  await page.goto("/approvals");
  await page.getByRole("article", { name: "desk/delete_note" }).waitFor();
  for (let n = 0; n < 80; n += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.textContent === "Approve")) break;
  }
  await page.keyboard.press("Enter");
  await page.getByText("Approved.", { exact: true }).waitFor();
  check(!(await third.result).isError, "not approved by keyboard");
  // On a phone, with one thumb; similar calls then pass.
  const phone = await newPage(browser, gate, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await signIn(phone, duty.token);
  const fourth = await hold(gate, grant.token, "desk__delete_note", { id: "4" });
  await phone.goto(`/approvals/${fourth.id}`);
  const button = phone.getByRole("button", { name: "Approve" });
  const box = await button.boundingBox();
  check(box.height >= 44 && box.width >= 250, `the button is ${JSON.stringify(box)}`);
  await phone.getByText("Also let similar calls pass").first().tap();
  await phone.getByRole("combobox", { name: "Also let similar calls pass" }).selectOption("1h");
  await button.tap();
  await phone.getByText("Approved.", { exact: true }).waitFor();
  check(!(await fourth.result).isError, "not approved on the phone");
  check(!(await callTool(gate, grant.token, "desk__delete_note", { id: "4" })).isError, "a similar call is held");
  await phone.goto("/approvals");
  await phone.getByRole("button", { name: "End desk/delete_note" }).tap();
  await phone.getByText("such calls are held again").waitFor();
  check((await api(gate, "GET", "/approvals/standing")).items.length === 0, "the exception goes on");
  for (const it of [page, phone]) check(it.problems.length === 0, it.problems.join("\n"));
}

/** A server changes a definition: agents are refused, a person reads the difference, rejects and approves it. */
export async function reviewing({ gate, browser }) {
  await furnish(gate);
  await rugPull(gate);
  // An agent whose process of the server has the new definition.
  const agent = await api(gate, "POST", "/grants", { label: "newcomer", policy: "desk-rules" });
  const refused = await callTool(gate, agent.token, "desk__read_note", { id: "1" });
  check(refused._meta?.error_code === "quarantined", JSON.stringify(refused));
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  await page.goto("/tools?state=quarantined");
  await page.getByRole("link", { name: "read_note" }).click();
  const review = page.locator("section", { has: page.getByRole("heading", { name: "The definition holds hidden text." }) });
  await review.locator(".added").getByText("run_script must be called").waitFor();
  await review.locator(".drawn").getByText("\\u{200B}").waitFor();
  await review.getByRole("button", { name: "Reject" }).click();
  await page.getByText("It stays quarantined.", { exact: false }).first().waitFor();
  await page.getByText("Rejected by admin.", { exact: false }).waitFor();
  check((await callTool(gate, agent.token, "desk__read_note", { id: "1" }))._meta?.error_code === "quarantined", "a rejected definition is used");
  await page.getByRole("button", { name: "Approve this definition" }).click();
  await page.getByText("The definition of “read_note” was approved.").waitFor();
  check(!(await callTool(gate, agent.token, "desk__read_note", { id: "1" })).isError, "still quarantined");
  check(page.problems.length === 0, page.problems.join("\n"));
}
