// Clients of either era with one toolgate and a server of the older one, a scenario a run:
//
//   node eras.mjs NAME JOB.json
//
// Jobs are those of `../node/scenarios.mjs`. Every client sees the tools and calls one; where it
// can be told how to answer the server's questions, it is asked one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { arch } from 'node:process';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startGate } from '../node/gate.mjs';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

const scenarios = {
  'ts2-default': (url) => sdk(url, LEGACY, {}),
  'ts2-auto': (url) => sdk(url, MODERN, { versionNegotiation: { mode: 'auto' } }),
  'inspector-legacy': (url) => inspector(url, 'legacy'),
  'inspector-auto': (url) => inspector(url, 'auto'),
  'inspector-modern': (url) => inspector(url, 'modern'),
  'claude-code': claude,
};

const [name, jobFile] = process.argv.slice(2);
const job = JSON.parse(readFileSync(jobFile, 'utf8'));
assert.ok(scenarios[name], `no scenario ${name}`);
const folder = join(job.folder, name);
const packages = join(import.meta.dirname, 'node_modules');
const gate = await startGate(job.toolgate, folder, { everything: job.everything });
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

async function inspector(url, era) {
  const words = [join(packages, '.bin/mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era, '--method'];
  const listed = await run(process.execPath, [...words, 'tools/list']);
  assert.ok(JSON.parse(listed).tools.some((tool) => tool.name === 'echo'), listed);
  const called = await run(process.execPath, [...words, 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hello']);
  assert.equal(JSON.parse(called).content[0].text, 'Echo: hello', called);
}

async function claude(url) {
  const program = join(packages, `@anthropic-ai/claude-code-linux-${arch}/claude`);
  await run(program, ['mcp', 'add', '--transport', 'http', 'gate', url]);
  const said = await run(program, ['mcp', 'list']);
  assert.match(said, /^gate: .*[Cc]onnected/m, said);
}

// What a program says, run in a home of its own.
async function run(program, words) {
  const home = join(folder, 'home');
  mkdirSync(home, { recursive: true });
  const env = { HOME: home, PATH: process.env.PATH };
  const child = spawn(program, words, { cwd: home, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  const [code] = await once(child, 'close');
  console.log(`$ ${program} ${words.join(' ')}\n${said}`);
  assert.equal(code, 0, said);
  return said;
}
