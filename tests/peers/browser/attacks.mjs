// Attacks on the console: other sites, and people who try more than their role allows.

import { createServer } from "node:http";
import { api, check, furnish, newPage, person, signIn } from "./harness.mjs";

/** Serves one page on another origin of this machine. */
async function site(html) {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}

/** Clickjacking, forged forms, and a cookie after its token was replaced. */
export async function attacked({ gate, browser }) {
  await furnish(gate);
  const page = await newPage(browser, gate);
  await signIn(page, gate.token);
  const framing = await site(`<iframe id="victim" src="${gate.admin}/"></iframe>`);
  const forging = await site(`<form id="forged" method="post" action="${gate.admin}/freeze"><input name="csrf" value=""></form><script>document.getElementById("forged").submit()</script>`);
  try {
    const other = await page.context().newPage();
    await other.goto(framing.url, { waitUntil: "load" });
    const frame = other.frames().find((it) => it !== other.mainFrame());
    const shown = await frame.evaluate(() => document.querySelector("main") !== null).catch(() => false);
    check(!shown, "the console is shown inside another site");
    const refused = other.waitForResponse((it) => it.url() === `${gate.admin}/freeze`);
    await other.goto(forging.url).catch(() => {});
    check((await refused).status() === 403, "a form of another site was accepted");
    check((await api(gate, "GET", "/freeze")).items.length === 0, "another site froze the gateway");
    // Scripts of another site cannot read a page either.
    await other.goto(framing.url);
    const read = await other.evaluate(async (url) => { try { return (await fetch(url, { credentials: "include" })).status; } catch { return "blocked"; } }, `${gate.admin}/grants`);
    check(read === "blocked", `another site reads pages: ${read}`);
  } finally {
    framing.stop();
    forging.stop();
  }
  // A form without its token, sent by the page itself.
  const forged = await page.evaluate(async () => (await fetch("/freeze", { method: "POST", body: new URLSearchParams({ csrf: "0".repeat(64) }) })).status);
  check(forged === 403, `a form with a wrong token: ${forged}`);
  // Replacing the token of a person ends what they see.
  const made = await person(gate, "night", "viewer");
  const stale = await newPage(browser, gate);
  await signIn(stale, made.token);
  await api(gate, "POST", `/people/${made.id}/rotate`);
  const csrf = await stale.evaluate(() => document.body.dataset.csrf);
  const late = await stale.evaluate(async (token) => (await fetch("/logout", { method: "POST", headers: { "x-csrf-token": token } })).status, csrf);
  check(late === 401, `a form after the token was replaced: ${late}`);
  await stale.goto("/audit");
  check(new URL(stale.url()).pathname === "/login", "a replaced token stays signed in");
}

/** What each role sees, and what happens to forms that it should not have. */
export async function limitedByRole({ gate, browser }) {
  const grant = await furnish(gate);
  const grants = (await api(gate, "GET", "/grants")).items;
  const id = grants.find((it) => it.label === "laptop").id;
  const attempts = [
    ["/freeze", {}], ["/grants", { label: "mine", policy: "recommended" }], [`/grants/${id}/rotate`, {}], [`/grants/${id}/revoke`, {}],
    ["/people", { name: "friend", roles: "admin" }], ["/servers", { name: "mine", command: "id", confirmed: "1" }], ["/servers", { name: "mine", command: "id" }], ["/servers/desk/test", {}],
    ["/tools/desk/read_note/call", { grant: "laptop", "arg.id": "1" }], ["/tools/desk/read_note/approve", { fingerprint: "0".repeat(64) }], ["/tools/desk/read_note/reject", { fingerprint: "0".repeat(64) }],
  ];
  const managing = [["/policies/desk-rules", { document: "version: \"1\"\ndefault: allow\n" }], ["/policies", { name: "mine" }], ["/policies/desk-rules/enforce", {}], [`/grants/${id}/policy`, { policy: "" }]];
  for (const [role, forms] of [["viewer", [...attempts, ...managing]], ["approver", [...attempts, ...managing]], ["policy_manager", attempts]]) {
    const made = await person(gate, role.replace("_", "-"), role);
    const page = await newPage(browser, gate);
    await signIn(page, made.token);
    const rows = (await api(gate, "GET", "/status")).audit.rows;
    for (const [path, fields] of forms) {
      const text = await page.evaluate(async ([target, form]) => {
        const body = new URLSearchParams({ ...form, csrf: document.body.dataset.csrf });
        return (await fetch(target, { method: "POST", body })).text();
      }, [path, fields]);
      check(/this needs the role/.test(text), `${role} ${path}: ${text.slice(0, 300)}`);
    }
    for (const path of ["/servers", "/grants", "/people", "/tools/desk/read_note"]) {
      await page.goto(path);
      const buttons = await page.locator("main button:not([data-copy])").allTextContents();
      const allowed = role === "policy_manager" && path === "/grants" ? /^Attach/ : /^$/;
      check(buttons.every((text) => allowed.test(text)), `${role} sees on ${path}: ${buttons.join(", ")}`);
    }
    check((await api(gate, "GET", "/status")).audit.rows === rows, `${role} changed something`);
  }
  check((await api(gate, "GET", "/policies/desk-rules")).document === grant.document, "the policy changed");
}
