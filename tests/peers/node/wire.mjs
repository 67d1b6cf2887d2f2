// What went over the wire: the raw text of every message that reached the client.
//
// The SDK parses and validates what it reads, so a difference could hide in what its types drop.
// Here the bytes are taken before the SDK sees them. Start at `Recorder`.

import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export class Recorder {
  constructor() {
    this.step = undefined;
    this.answers = []; // { step, raw, repeated }: the responses, in order of arrival
    this.incoming = []; // { method, raw, late, repeated }: requests and notifications of the server
    this.http = []; // { method, status, lastEventId }: the HTTP exchanges as they began; status 0: none came
    this.asked = new Map(); // request id -> step
    this.tokens = new Map(); // progress token -> request id
    this.cancelled = new Set(); // request ids
    this.waiting = [];
    this.seen = new Set(); // the raw texts so far
    this.replayed = new Set(); // those of them that came on a resumed stream
  }

  // A message of the client, as it is about to be sent.
  sent(message) {
    if (message.method === 'notifications/cancelled') this.cancelled.add(message.params.requestId);
    if (message.method === undefined || message.id === undefined) return;
    this.asked.set(message.id, this.step);
    const token = message.params?._meta?.progressToken;
    if (token !== undefined) this.tokens.set(token, message.id);
  }

  // The raw text of a message of the server; `resumed` if it came on a stream with Last-Event-ID.
  received(raw, resumed = false) {
    const message = JSON.parse(raw);
    // The replay may overtake the original, which then is the one that comes again.
    // Some servers also replay the empty events that only carried an id.
    const again = this.seen.has(raw) && (resumed || this.replayed.has(raw));
    const repeated = again || (resumed && raw === '{}');
    this.seen.add(raw);
    if (resumed) this.replayed.add(raw);
    if (message.method === undefined) {
      this.answers.push({ step: this.asked.get(message.id) ?? '(nobody asked)', raw, repeated });
    } else {
      // Progress of a call that was cancelled may still arrive or not: both are right.
      const asker = this.tokens.get(message.params?.progressToken);
      this.incoming.push({ method: message.method, raw, late: this.cancelled.has(asker), repeated });
    }
    this.waiting = this.waiting.filter((check) => !check());
  }

  count(method) {
    return this.incoming.filter((entry) => entry.method === method && !entry.repeated).length;
  }

  // Resolves once `count` messages with this method have arrived since the start.
  until(method, count, limit = 30_000) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${this.count(method)} of ${count} ${method} after ${limit} ms`)),
        limit,
      );
      const check = () => {
        if (this.count(method) < count) return false;
        clearTimeout(timer);
        resolve();
        return true;
      };
      if (!check()) this.waiting.push(check);
    });
  }
}

// The transport for a target ({ url } or { command, args, env, cwd }), recorded.
export function transportTo(target, recorder, options = {}) {
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), { fetch: recordingFetch(recorder), ...options })
    : recordedStdio(new StdioClientTransport({ stderr: 'inherit', ...target }), recorder);
  const send = transport.send.bind(transport);
  transport.send = (message, sendOptions) => {
    recorder.sent(message);
    return send(message, sendOptions);
  };
  return transport;
}

function recordedStdio(transport, recorder) {
  const lines = new Lines((line) => line.length > 0 && recorder.received(line));
  const buffer = transport._readBuffer;
  const append = buffer.append.bind(buffer);
  buffer.append = (chunk) => {
    lines.feed(chunk.toString('latin1'));
    append(chunk);
  };
  return transport;
}

function recordingFetch(recorder) {
  return async (url, init) => {
    const entry = { method: init?.method ?? 'GET', status: 0 };
    const lastEventId = new Headers(init?.headers).get('last-event-id');
    if (lastEventId) entry.lastEventId = lastEventId;
    recorder.http.push(entry);
    const response = await fetch(url, init);
    entry.status = response.status;
    if (!response.ok || !response.body) return response;
    const tap = tapOf(response.headers.get('content-type') ?? '', (raw) =>
      recorder.received(raw, lastEventId !== null),
    );
    if (!tap) return response;
    const body = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          tap.feed(Buffer.from(chunk).toString('latin1'));
          controller.enqueue(chunk);
        },
        flush: () => tap.end(),
      }),
    );
    return new Response(body, response);
  };
}

function tapOf(contentType, onMessage) {
  if (contentType.startsWith('application/json')) {
    let text = '';
    return { feed: (chunk) => (text += chunk), end: () => onMessage(utf8(text)) };
  }
  if (!contentType.startsWith('text/event-stream')) return undefined;
  let data = [];
  const lines = new Lines((line) => {
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
    if (line !== '') return;
    const text = data.join('\n');
    data = [];
    if (text !== '') onMessage(text);
  });
  return { feed: (chunk) => lines.feed(chunk), end: () => {} };
}

// Splits chunks into lines; bytes travel as latin1 so that no chunk border cuts a character.
class Lines {
  constructor(onLine) {
    this.rest = '';
    this.onLine = onLine;
  }

  feed(chunk) {
    const lines = (this.rest + chunk).split('\n');
    this.rest = lines.pop();
    for (const line of lines) this.onLine(utf8(line.replace(/\r$/, '')));
  }
}

function utf8(latin1) {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}
