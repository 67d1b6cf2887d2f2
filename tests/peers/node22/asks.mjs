// A server of the older era on stdio whose one tool asks its user and then reports progress.

import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const info = { name: 'asks', version: '1.0.0' };
const tools = [{ name: 'ask', description: 'Asks the user, then works in three steps.', inputSchema: { type: 'object' } }];
// Requests that wait for their user, by the id of the question.
const waiting = new Map();

function asked(call) {
  const id = `question-${call.id}`;
  waiting.set(id, call);
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  send({ id, method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema } });
}

function answered(call, { action, content }) {
  const progressToken = call.params._meta?.progressToken;
  for (const progress of [1, 2, 3]) {
    if (progressToken !== undefined) {
      send({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
    }
  }
  send({ id: call.id, result: { content: [{ type: 'text', text: `${action} ${content?.name}` }] } });
}

for await (const line of createInterface(process.stdin)) {
  const message = JSON.parse(line);
  const { id, method, params } = message;
  if (waiting.has(id)) answered(waiting.get(id), message.result);
  else if (method === 'initialize') {
    const { protocolVersion } = params;
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: info } });
  } else if (method === 'tools/list') send({ id, result: { tools } });
  else if (method === 'tools/call') asked(message);
  else if (method === 'ping') send({ id, result: {} });
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'method not found' } });
}
