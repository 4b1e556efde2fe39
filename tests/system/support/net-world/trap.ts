// Listens on the host of a world where nothing may come: every address of it at the port of the upstream, and the proxy that its environment names.
import { createServer } from 'node:net';
import { answerLines, listen } from './programs.ts';

const counts = { tunnels: 0, proxied: 0 };
const trap = (name: keyof typeof counts) =>
  createServer((socket) => {
    counts[name] += 1;
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 502 Trap\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
  });
await listen(trap('tunnels'), 443, '::');
await listen(trap('proxied'), 3128, '127.0.0.1');
answerLines(() => counts);
