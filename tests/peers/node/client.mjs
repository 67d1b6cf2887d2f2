// A client of the TypeScript SDK that can do all a server may ask for, with fixed answers.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

// `name` appears in every answer, so that an answer given by the wrong client shows.
export function makeClient(name, roots = []) {
  const client = new Client(
    { name, version: '1.0.0' },
    { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
  );
  client.setRequestHandler(CreateMessageRequestSchema, (request) => ({
    model: 'none',
    role: 'assistant',
    stopReason: 'endTurn',
    content: { type: 'text', text: `${name} was asked: ${request.params.messages[0].content.text}` },
  }));
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    if (request.params.mode === 'url') return { action: 'decline' };
    return { action: 'accept', content: { name, check: true, integer: 7, number: 1.5 } };
  });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));
  return client;
}
