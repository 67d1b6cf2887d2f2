// Stands before toolgate and adds a token to every request, for clients that cannot send one:
//
//   node front.mjs ORIGIN TOKEN
//
// Everything else passes as it came, headers with their spelling and order; whoever hangs up on
// one side hangs up on the other.

import http from 'node:http';

const [origin, token] = process.argv.slice(2);
const { hostname, port } = new URL(origin);

const front = http.createServer((request, response) => {
  const headers = [...request.rawHeaders, 'Authorization', `Bearer ${token}`];
  const onward = http.request({ hostname, port, method: request.method, path: request.url, headers, setHost: false });
  onward.on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
front.requestTimeout = 0;
front.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${front.address().port}` }));
});
