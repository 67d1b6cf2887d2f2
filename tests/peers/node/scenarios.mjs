// What clients of the TypeScript SDK go through with toolgate, one scenario a run:
//
//   node scenarios.mjs NAME JOB.json
//
// JOB: { toolgate: FILE, folder: DIR, everything: { command, args }, everythingHttp: { url } }.
// No scenario depends on how fast anything is; a wait ends when what it waits for has happened.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CallToolResultSchema,
  ListToolsResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { makeClient } from './client.mjs';
import { startGate, startProxy } from './gate.mjs';
import { Recorder, transportTo } from './wire.mjs';

const LIMIT = 90_000;
const QUICKLY = { initialReconnectionDelay: 100, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1, maxRetries: 300 };

const scenarios = {
  'resume-stdio': () => resume('everything', [1]),
  'resume-http': () => resume('everything-http', [1]),
  'resume-twice': () => resume('everything', [1, 3]),
  'result-while-away': resultWhileAway,
  'resume-after-error': resumeAfterError,
  'two-clients': () => twoClients('everything'),
  'two-clients-http': () => twoClients('everything-http'),
  'many-calls': () => manyCalls('everything'),
  'many-calls-http': () => manyCalls('everything-http'),
  'delete-on-close': deleteOnClose,
  'restart': restart,
  'sessions': sessions,
};

const [name, jobFile] = process.argv.slice(2);
const job = JSON.parse(readFileSync(jobFile, 'utf8'));
assert.ok(scenarios[name], `no scenario ${name}`);
await scenarios[name]();
process.exit(0);

// The connection is cut in the middle of a call, after the given progress steps; the call's
// progress and its result still arrive, each exactly once.
async function resume(server, cuts) {
  const gate = await start();
  const proxy = await startProxy(gate.port);
  const { client, recorder } = await connect(proxy.url(server), 'resumer', { reconnectionOptions: QUICKLY });
  const seen = [];
  const result = await call(client, 'trigger-long-running-operation', { duration: 4, steps: 4 }, (progress) => {
    seen.push(progress.progress);
    if (cuts.includes(progress.progress)) proxy.cut();
  });
  assert.match(result.content[0].text, /completed\. Duration: 4 seconds, Steps: 4/);
  assert.deepEqual(seen, [1, 2, 3, 4]);
  const resumed = recorder.http.filter((entry) => entry.lastEventId && entry.status === 200);
  assert.ok(resumed.length >= cuts.length, `resumed with Last-Event-ID: ${JSON.stringify(recorder.http)}`);
  await still(client);
  assertOnce(recorder);
  proxy.close();
  await gate.stop();
}

// The result comes while the client cannot connect at all: it waits for the client.
async function resultWhileAway() {
  const gate = await start();
  const proxy = await startProxy(gate.port);
  const { client, recorder } = await connect(proxy.url('everything'), 'away', { reconnectionOptions: QUICKLY });
  let failures = 0;
  client.onerror = () => (failures += 1);
  const result = await call(client, 'trigger-long-running-operation', { duration: 1, steps: 2 }, ({ progress }) => {
    if (progress > 1) return;
    proxy.close();
    // Long after the call has ended; were it not, the scenario would only show less.
    setTimeout(proxy.open, 3_000);
  });
  assert.match(result.content[0].text, /completed/);
  assert.ok(failures > 1, 'the client tried to reconnect');
  await still(client);
  assertOnce(recorder);
  proxy.close();
  await gate.stop();
}

// The SDK resumes a stream that ended with an error answer. Nothing may come twice, and it must
// not go on asking for ever.
async function resumeAfterError() {
  const gate = await start();
  for (const server of ['everything', 'everything-http']) {
    const { client, recorder } = await connect(gate.url(server), 'mistaken', { reconnectionOptions: QUICKLY });
    await assert.rejects(client.request({ method: 'no/such/method' }, CallToolResultSchema), { code: -32601 });
    const calls = 8;
    for (let i = 0; i < calls; i++) {
      await call(client, 'trigger-long-running-operation', { duration: 0.25, steps: 1 });
    }
    assertOnce(recorder);
    const gets = recorder.http.filter((entry) => entry.method === 'GET');
    assert.ok(gets.length <= 4, `${gets.length} GETs for one error answer: ${JSON.stringify(gets.slice(0, 8))}`);
    await client.close();
  }
  await gate.stop();
}

// Two clients at once; each is asked what its own server wants to know.
async function twoClients(server) {
  const gate = await start();
  const names = ['alice', 'bob'];
  const pairs = await Promise.all(names.map((each) => connect(gate.url(server), each)));
  const rounds = names.flatMap((each, index) =>
    Array.from({ length: 10 }, async (_, round) => {
      const { client } = pairs[index];
      const prompt = `${each} ${round}`;
      const sampled = await call(client, 'trigger-sampling-request', { prompt, maxTokens: 5 });
      assert.match(sampled.content[0].text, new RegExp(`"${each} was asked: .*context: ${prompt}"`));
      const elicited = await call(client, 'trigger-elicitation-request', {});
      assert.match(JSON.stringify(elicited), new RegExp(`- Name: ${each}\\\\n`));
    }),
  );
  await Promise.all(rounds);
  pairs.forEach(({ recorder }) => assertOnce(recorder));
  await Promise.all(pairs.map(({ client }) => client.close()));
  await gate.stop();
}

// Many calls at once in one session: each gets its own answer.
async function manyCalls(server) {
  const gate = await start();
  const { client, recorder } = await connect(gate.url(server), 'busy');
  const messages = Array.from({ length: 100 }, (_, i) => `message ${i} ${'x'.repeat(i * 37)}`);
  const results = await Promise.all(messages.map((message) => call(client, 'echo', { message })));
  assert.deepEqual(results.map((result) => result.content[0].text), messages.map((message) => `Echo: ${message}`));
  assertOnce(recorder);
  await client.close();
  await gate.stop();
}

// DELETE ends the session: its id is unknown from then on, and its child is gone.
async function deleteOnClose() {
  const pidFile = join(job.folder, name, 'pid');
  const { command, args } = job.everything;
  const script = 'echo $$ > "$0"; exec "$@"';
  const gate = await start({ everything: { command: 'sh', args: ['-c', script, pidFile, command, ...args] } });
  const { client, transport, recorder } = await connect(gate.url('everything'), 'leaver');
  const session = transport.sessionId;
  assert.ok(session);
  const child = `/proc/${readFileSync(pidFile, 'utf8').trim()}`;
  assert.ok(existsSync(child));
  await transport.terminateSession();
  const end = recorder.http.find((entry) => entry.method === 'DELETE');
  assert.ok([200, 204].includes(end.status), `DELETE was answered ${end.status}`);
  assert.equal((await ping(gate.url('everything'), session)).status, 404);
  assert.equal((await ping(gate.url('everything'), 'never-seen')).status, 404);
  assert.equal((await ping(gate.url('everything'))).status, 400);
  while (existsSync(child)) await new Promise((resolve) => setTimeout(resolve, 50));
  await client.close();
  await gate.stop();
}

// toolgate is restarted: the old session is unknown (404), and the client can begin a new one.
async function restart() {
  const first = await start();
  const proxy = await startProxy(first.port);
  const before = await connect(proxy.url('everything'), 'before');
  await still(before.client);
  await first.stop();
  const second = await start();
  proxy.target = second.port;
  await assert.rejects(before.client.ping(), { code: 404 });
  await before.client.close();
  const after = await connect(proxy.url('everything'), 'after');
  await still(after.client);
  await after.client.close();
  proxy.close();
  await second.stop();
}

// Programs dial in and go: the client is told, sees their tools, calls them, and learns who is missing.
async function sessions() {
  const gate = await startGate(job.toolgate, join(job.folder, name), {}, '127.0.0.1:0');
  const { client } = await connect(gate.url('sessions'), 'agent');
  let told = () => {};
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => told());
  const changed = () => new Promise((resolve) => (told = resolve));
  const list = async () => (await client.listTools()).tools;
  const names = async () => (await list()).map((tool) => tool.name);
  assert.deepEqual(await names(), ['session_list', 'tools_cache_reset', 'my_permissions']);

  const dial = (uid) =>
    spawn(job.toolgate, ['demo', 'onec', '--url', gate.dial, '--uid', uid, '--base', 'торговля'], { stdio: 'ignore' });
  let next = changed();
  const first = dial('u1');
  await next;
  assert.ok((await names()).includes('infobase_info'));
  const info = await call(client, 'infobase_info', {});
  assert.match(info.content[0].text, /УправлениеТорговлей/);

  next = changed();
  const second = dial('u2');
  await next;
  const tool = (await list()).find((one) => one.name === 'timer');
  assert.deepEqual(tool.inputSchema.properties.session_id.enum, ['u1', 'u2']);
  assert.ok(tool.inputSchema.required.includes('session_id'));
  const which = await call(client, 'infobase_info', {});
  assert.equal(which._meta.error_code, 'session_id_required');
  assert.equal((await call(client, 'infobase_info', { session_id: 'u2' })).isError, false);
  // What it was called with comes back, without the selector.
  const sent = { Строка: '№ 1 — Ёлка', Параметры: { Й: ['й', 'и\u0306'] } };
  const back = await call(client, 'system_spawn_1c_client', { ...sent, session_id: 'u2' });
  assert.deepEqual(JSON.parse(back.content[0].text).arguments, sent);
  const { structuredContent } = await call(client, 'session_list', {});
  assert.deepEqual(structuredContent.sessions.map((one) => one.session_id), ['u1', 'u2']);

  for (const program of [first, second]) {
    next = changed();
    program.kill('SIGINT');
    await next;
    // Only after a look is there something to be told of.
    await list();
  }
  const missing = await call(client, 'infobase_info', {});
  assert.equal(missing._meta.error_code, 'no_live_session');
  await client.close();
  await gate.stop();
}

function start(servers) {
  const all = { everything: job.everything, 'everything-http': job.everythingHttp };
  return startGate(job.toolgate, join(job.folder, name), { ...all, ...servers });
}

async function connect(url, who, options) {
  const recorder = new Recorder();
  const client = makeClient(who);
  const transport = transportTo({ url }, recorder, options);
  await client.connect(transport, { timeout: LIMIT });
  return { client, transport, recorder };
}

function call(client, tool, args, onprogress) {
  const params = { name: tool, arguments: args };
  return client.request({ method: 'tools/call', params }, CallToolResultSchema, { timeout: LIMIT, onprogress });
}

// The session is in order.
async function still(client) {
  const { tools } = await client.request({ method: 'tools/list' }, ListToolsResultSchema, { timeout: LIMIT });
  assert.ok(tools.length > 10);
}

// No message came twice: neither an answer, nor anything else that was seen before a resumption.
function assertOnce(recorder) {
  const ids = recorder.answers.map(({ raw }) => JSON.parse(raw).id);
  assert.equal(new Set(ids).size, ids.length, 'an answer came twice');
  const repeated = recorder.incoming.filter((entry) => entry.repeated);
  assert.deepEqual(repeated, []);
}

function ping(url, session) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (session) headers['mcp-session-id'] = session;
  return fetch(url, { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
}
