// Scenarios of the console in a real browser: `node console.mjs NAME JOB`.

import { readFileSync } from "node:fs";
import { granting, signingIn } from "./access.mjs";
import { attacked, limitedByRole } from "./attacks.mjs";
import { approving, reviewing } from "./decisions.mjs";
import { accessible, byKeyboard, findingDenials, followsEvents, onPhone, showsHostileText } from "./everywhere.mjs";
import { check, startBrowser, startGate } from "./harness.mjs";
import { addingServers, applyingRules, building, editingConditions, editingLimits, leavingShadow } from "./setup.mjs";

const scenarios = {
  'console-sign-in': signingIn,
  'console-builder': building,
  'console-conditions': editingConditions,
  'console-limits': editingLimits,
  'console-apply': applyingRules,
  'console-shadow': leavingShadow,
  'console-grants': granting,
  'console-servers': addingServers,
  'console-approvals': approving,
  'console-quarantine': reviewing,
  'console-audit': findingDenials,
  'console-phone': onPhone,
  'console-keyboard': byKeyboard,
  'console-axe': accessible,
  'console-hostile': showsHostileText,
  'console-live': followsEvents,
  'console-attacks': attacked,
  'console-roles': limitedByRole,
};

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
