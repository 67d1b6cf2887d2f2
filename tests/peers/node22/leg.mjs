// The client that the conformance suite tries, directly or through toolgate:
//
//   node leg.mjs direct URL
//   node leg.mjs through TOOLGATE FOLDER URL
//
// It does what any scenario may wait for: connects in the era that the suite asks for, reads every
// list, and calls, reads and gets all that is in them. What fails on the way is the suite's to judge.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startGate } from '../node/gate.mjs';

const [way, ...words] = process.argv.slice(2);
const url = words.at(-1);
const gate = way === 'through' ? await startGate(words[0], words[1], { suite: { url } }) : undefined;
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION >= '2026';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

const client = new Client(
  { name: 'toolgate-leg', version: '1.0.0' },
  {
    capabilities: { sampling: {}, roots: {}, elicitation: { form: { applyDefaults: true } } },
    ...(modern && { versionNegotiation: { mode: 'auto' } }),
  },
);
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
client.setRequestHandler('roots/list', () => ({ roots: [] }));
client.setRequestHandler('sampling/createMessage', () => ({
  model: 'none',
  role: 'assistant',
  content: { type: 'text', text: 'yes' },
}));

await attempt(() => client.connect(new StreamableHTTPClientTransport(new URL(gate ? gate.url('suite') : url))));
const { tools } = (await attempt(() => client.listTools())) ?? { tools: [] };
const calls = context.toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: made(tool.inputSchema) }));
for (const call of calls) await attempt(() => client.callTool(call));
const { resources } = (await attempt(() => client.listResources())) ?? { resources: [] };
for (const { uri } of resources) await attempt(() => client.readResource({ uri }));
const { prompts } = (await attempt(() => client.listPrompts())) ?? { prompts: [] };
for (const { name } of prompts) await attempt(() => client.getPrompt({ name, arguments: {} }));
await attempt(() => client.close());
await gate?.stop();
process.exit(0);

async function attempt(what) {
  try {
    return await what();
  } catch (error) {
    console.error(`${what}: ${error}`);
  }
}

// Arguments that fit a schema well enough.
function made(schema) {
  const value = { number: 2, integer: 2, boolean: true };
  const properties = Object.entries(schema.properties ?? {});
  return Object.fromEntries(properties.map(([key, { type }]) => [key, value[type] ?? 'text']));
}
