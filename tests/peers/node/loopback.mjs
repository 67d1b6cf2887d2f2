// Preloaded into servers that offer no host option: they listen on 127.0.0.1 alone, and say where.

import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => console.log(`listening on 127.0.0.1:${this.address().port}`));
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, ...rest.filter((r) => typeof r === 'function'));
};
