// Clients of either era with one toolgate and a server of the older one, a scenario a run:
//
//   node eras.mjs NAME JOB.json
//
// Jobs are those of `../node/scenarios.mjs`. Every client sees the tools and calls one; where it
// can be told how to answer the server's questions, it is asked one. The server runs already: a
// client that asks which era it is does not wait long for the answer.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { arch } from 'node:process';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startGate } from '../node/gate.mjs';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

const scenarios = {
  'ts2-default': (url) => sdk(url, LEGACY, {}),
  'ts2-auto': (url) => sdk(url, MODERN, { versionNegotiation: { mode: 'auto' } }),
  'ts2-progress': () => progressAfterQuestion(gate.url('asks')),
  'inspector-legacy': (url) => inspector(url, 'legacy'),
  'inspector-auto': (url) => inspector(url, 'auto'),
  'inspector-modern': (url) => inspector(url, 'modern'),
  'claude-code': claude,
  'claude-code-token': claudeWithoutToken,
};

const [name, jobFile] = process.argv.slice(2);
const job = JSON.parse(readFileSync(jobFile, 'utf8'));
assert.ok(scenarios[name], `no scenario ${name}`);
const folder = join(job.folder, name);
const packages = join(import.meta.dirname, 'node_modules');
const claudeCode = join(packages, `@anthropic-ai/claude-code-linux-${arch}/claude`);
// Programs run in a home of their own, which knows nothing of an earlier run.
const home = join(folder, 'home');
rmSync(home, { recursive: true, force: true });
mkdirSync(home, { recursive: true });
const asks = { command: process.execPath, args: [join(import.meta.dirname, 'asks.mjs')] };
const servers = { everything: job.everythingHttp, asks };
const gate = await startGate(job.toolgate, folder, servers);
await scenarios[name](gate.url('everything'));
await gate.stop();
process.exit(0);

async function sdk(url, version, options) {
  const client = new Client({ name, version: '1.0.0' }, { capabilities: { sampling: {} }, ...options });
  client.setRequestHandler('sampling/createMessage', (request) => ({
    model: 'none',
    role: 'assistant',
    content: { type: 'text', text: `${name} was asked: ${request.params.messages[0].content.text}` },
  }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === 'echo'), JSON.stringify(tools));
  const echoed = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  assert.equal(echoed.content[0].text, 'Echo: hello');
  const sampled = await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'why', maxTokens: 5 } });
  assert.match(sampled.content[0].text, new RegExp(`${name} was asked: .*why`));
  await client.close();
}

// A question of the server ends the first request of the call; its progress comes with the second,
// under another token.
async function progressAfterQuestion(url) {
  const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'auto' } };
  const client = new Client({ name, version: '1.0.0' }, options);
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  assert.equal(client.getNegotiatedProtocolVersion(), MODERN);
  const seen = [];
  // The client adds a step of its own, without a total, for the question.
  const onprogress = ({ progress, total }) => total && seen.push(progress);
  const result = await client.callTool({ name: 'ask', arguments: {} }, { onprogress });
  assert.equal(result.content[0].text, 'accept Ada');
  assert.deepEqual(seen, [1, 2, 3]);
  await client.close();
}

async function inspector(url, era) {
  const words = [join(packages, '.bin/mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era, '--method'];
  const listed = await run(process.execPath, [...words, 'tools/list']);
  assert.ok(JSON.parse(listed).tools.some((tool) => tool.name === 'echo'), listed);
  const called = await run(process.execPath, [...words, 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hello']);
  assert.equal(JSON.parse(called).content[0].text, 'Echo: hello', called);
}

async function claude(url) {
  await run(claudeCode, ['mcp', 'add', '--transport', 'http', 'gate', url]);
  const said = await run(claudeCode, ['mcp', 'list']);
  assert.match(said, /^gate: .*[Cc]onnected/m, said);
}

// Without a token it tries OAuth, and shows its user how to send one.
async function claudeWithoutToken() {
  const token = 'the-token-of-claude-code-0123456789';
  const token_sha256 = createHash('sha256').update(token).digest('hex');
  const grants = [{ label: 'claude', token_sha256, policy: 'recommended' }];
  const guarded = await startGate(job.toolgate, join(folder, 'guarded'), servers, 'off', { grants });
  const add = ['mcp', 'add', '--transport', 'http'];
  const url = guarded.url('everything');
  await run(claudeCode, [...add, 'without', url]);
  await run(claudeCode, [...add, 'with', url, '--header', `Authorization: Bearer ${token}`]);
  const said = await run(claudeCode, ['mcp', 'list']);
  assert.match(said, /^without: .*Send the token of a grant with every request/m, said);
  assert.match(said, /^with: .*[Cc]onnected/m, said);
  await guarded.stop();
}

// What a program says, run in a home of its own.
async function run(program, words) {
  const env = { HOME: home, PATH: process.env.PATH };
  const child = spawn(program, words, { cwd: home, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  const [code] = await once(child, 'close');
  console.log(`$ ${program} ${words.join(' ')}\n${said}`);
  assert.equal(code, 0, said);
  return said;
}
