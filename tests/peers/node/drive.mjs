// Drives one server through a tour and writes down what came back.
//
//   node drive.mjs JOB.json
//
// JOB: { tour: FILE, out: FILE, roots: [...], values: {...}, target: { url } | { command, args, env, cwd }, prefix }.
// With a prefix the target shows many servers at once: only the calls of the tour are made, under
// the names that the tools have there, and the names that the list has are written down too.
// The tours' language is described in tests/peers/README.md.

import { readFileSync, writeFileSync } from 'node:fs';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { makeClient } from './client.mjs';
import { Recorder, transportTo } from './wire.mjs';

const LIMIT = 60_000;

const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const tour = JSON.parse(readFileSync(job.tour, 'utf8'));
const recorder = new Recorder();
const client = makeClient('tour', job.roots);
const values = { ...job.values };

recorder.step = 'initialize';
const transport = transportTo(job.target, recorder);
await client.connect(transport, { timeout: LIMIT });
const listed = job.prefix ? await ownTools() : undefined;
for (const step of tour.steps.filter((step) => !job.prefix || isListed(step))) {
  recorder.step = step.name;
  await take(step).catch((error) => {
    throw new Error(`step ${JSON.stringify(step)}: ${error.stack}`);
  });
}
if (job.target.url) await transport.terminateSession();
await client.close();
const { answers, incoming, http } = recorder;
writeFileSync(job.out, JSON.stringify({ answers, incoming, http, listed }, null, 1));
process.exit(0);

// The names of the tour's own tools in the list of all, without the prefix. A server that was slow to
// start joins the list later, and that is announced.
async function ownTools() {
  for (let announced = 1; ; announced += 1) {
    const names = [];
    let cursor;
    do {
      recorder.step = '(listing)';
      const page = await client.request({ method: 'tools/list', params: { cursor } }, ResultSchema, { timeout: LIMIT });
      names.push(...page.tools.map((tool) => tool.name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const own = names.filter((name) => name.startsWith(job.prefix)).map((name) => name.slice(job.prefix.length));
    if (own.length > 0) return own;
    await recorder.until('notifications/tools/list_changed', announced, LIMIT);
  }
}

function isListed(step) {
  return listed.includes(toolOf(step));
}

function toolOf(step) {
  return step.call ?? (step.request === 'tools/call' ? step.params?.name : undefined);
}

async function take(step) {
  if (step.await) return recorder.until(step.await, step.count ?? 1);
  if (step.notify) return client.notification({ method: step.notify, params: filled(step.params) });
  const stop = new AbortController();
  const options = { timeout: LIMIT, signal: stop.signal };
  if (step.progress) options.onprogress = () => step.cancel && stop.abort('the tour cancels');
  const request = step.call
    ? { method: 'tools/call', params: { name: step.call, arguments: step.arguments ?? {} } }
    : { method: step.request, params: step.params };
  if (job.prefix) request.params = { ...request.params, name: job.prefix + toolOf(step) };
  const answer = client.request(filled(request), ResultSchema, options);
  // An error answer is an answer; what came is on record either way.
  const result = await answer.catch((error) => {
    if (error.code === undefined && !stop.signal.aborted) throw error;
    return undefined;
  });
  for (const [name, path] of Object.entries(step.save ?? {})) {
    values[name] = path.split('/').reduce((value, key) => value?.[key], result);
  }
}

// Every "${name}" in the strings of a step, replaced.
function filled(value) {
  if (value === undefined) return undefined;
  const text = JSON.stringify(value);
  return JSON.parse(text.replace(/\$\{(\w+)\}/g, (_, name) => JSON.stringify(values[name]).slice(1, -1)));
}
