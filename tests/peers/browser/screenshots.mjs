// Screenshots of every page, in both themes and languages: `node screenshots.mjs JOB FOLDER`.

import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { callTool, everyPage, furnish, newPage, signIn, startBrowser, startGate } from "./harness.mjs";

const [, , jobFile, folder] = process.argv;
const job = JSON.parse(readFileSync(jobFile, "utf8"));
const gate = await startGate(job, "screenshots");
const browser = await startBrowser();
try {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const agent = await furnish(gate);
  for (let n = 0; n < 24; n += 1) await callTool(gate, agent.token, "desk__read_note", { id: `${n}` });
  const pages = await everyPage(gate);
  for (const [colorScheme, locale] of [["light", "en-US"], ["dark", "en-US"], ["light", "ru-RU"], ["dark", "ru-RU"]]) {
    const page = await newPage(browser, gate, { colorScheme, locale });
    const suffix = `${locale.slice(0, 2)}-${colorScheme}`;
    await page.goto("/login?lang=en");
    await signIn(page, gate.token);
    await page.goto(`/?lang=${locale.slice(0, 2)}`);
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(path);
      await page.screenshot({ path: join(folder, `${name}-${suffix}.png`) });
    }
  }
  const phone = await newPage(browser, gate, { viewport: { width: 390, height: 844 } });
  await signIn(phone, gate.token);
  for (const name of ["overview", "approvals", "tool", "policy"]) {
    await phone.goto(pages[name]);
    await phone.screenshot({ path: join(folder, `${name}-phone.png`) });
  }
} finally {
  await browser.close();
  await gate.stop();
}
