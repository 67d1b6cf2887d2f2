// A toolgate process, and a TCP proxy to put before it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// Starts toolgate with these servers; its files and its log are in `folder`. Programs can dial in
// if there is an address for them. `more` are further keys of its configuration.
export async function startGate(binary, folder, servers, sessions = 'off', more = {}) {
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'toolgate.yaml');
  const listen = { mcp: '127.0.0.1:0', sessions, admin: 'off' };
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ version: 1, data: 'data', listen, servers, ...more }, null, 2));
  const log = openSync(join(folder, 'toolgate.log'), 'a');
  const child = spawn(binary, ['serve', '--ready-json', '--config', config], { stdio: ['ignore', 'pipe', log] });
  const exited = once(child, 'exit');
  const first = await Promise.race([once(createInterface(child.stdout), 'line'), exited]);
  assert.equal(typeof first[0], 'string', `toolgate ended at the start with ${first[0]}; see ${folder}/toolgate.log`);
  const { mcp, sessions: dial } = JSON.parse(first[0]);
  return {
    dial,
    port: Number(new URL(mcp).port),
    url: (server) => `${mcp}/mcp/${server}`,
    // Ends it as an operator would; it must end well.
    async stop() {
      child.kill('SIGTERM');
      assert.deepEqual(await exited, [0, null], 'toolgate ends with 0 on SIGTERM');
    },
  };
}

// Forwards TCP to `port` on the loopback interface; it can cut connections and be away for a while.
export async function startProxy(port) {
  const sockets = new Set();
  const proxy = { target: port };
  const server = net.createServer((near) => {
    const far = net.connect(proxy.target, '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]]) {
      sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => (sockets.delete(from), to.destroy()));
      from.pipe(to);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = server.address().port;
  proxy.url = (name) => `http://127.0.0.1:${own}/mcp/${name}`;
  proxy.cut = () => sockets.forEach((socket) => socket.resetAndDestroy());
  proxy.close = () => (server.close(), proxy.cut());
  proxy.open = () => server.listen(own, '127.0.0.1');
  return proxy;
}
