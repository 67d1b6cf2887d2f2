// Scenarios about people and grants.

import { api, callTool, check, cli, furnish, newPage, signIn, startGate } from "./harness.mjs";

export async function signingIn({ gate, browser }) {
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
    // Signing out ends the live stream too.
    await fresh.goto("/");
    const stream = fresh.evaluate(async () => {
      const answer = await fetch("/console/events");
      window.streaming = true;
      const reader = answer.body.getReader();
      while (!(await reader.read()).done);
      return "ended";
    });
    await fresh.waitForFunction(() => window.streaming);
    await fresh.evaluate(() => fetch("/logout", { method: "POST", headers: { "x-csrf-token": document.body.dataset.csrf } }));
    check(await stream === "ended", "the stream goes on");
    await signIn(fresh, other.token);
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

export async function granting({ gate, browser }) {
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
  // One grant alone.
  await page.goto("/grants");
  await page.getByRole("button", { name: "Freeze ci" }).click();
  await page.getByText("The grant “ci” is frozen.").first().waitFor();
  check((await callTool(gate, token, "desk__read_note", { id: "1" }))._meta.error_code === "frozen", "the grant is not frozen");
  await page.getByRole("button", { name: "Unfreeze ci" }).click();
  await page.getByText("The freeze has ended").waitFor();
  check(!(await callTool(gate, token, "desk__read_note", { id: "1" })).isError, "the grant is still frozen");
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
