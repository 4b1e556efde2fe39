// One install or build at a time per checkout and user. The lock is an abstract socket, which the kernel frees when its holder dies,
// so there is no stale lock to judge. Only Linux has those; elsewhere two starts at once are the caller's to avoid.
import { statSync } from 'node:fs';
import { connect, createServer } from 'node:net';

/** Runs `work` while holding the lock of the checkout at `root`; `onWait` is called once when another holder is in the way. */
export async function withBuildLock(root, work, onWait) {
  if (process.platform !== 'linux') return await work();
  const { dev, ino } = statSync(root);
  const address = `\0firecrew-build-${process.getuid()}-${dev}-${ino}`;
  let server = await listen(address);
  if (server === undefined) onWait();
  while (server === undefined) {
    await holderGone(address);
    server = await listen(address);
  }
  try {
    return await work();
  } finally {
    const { server: listening, clients } = server;
    for (const client of clients) client.destroy();
    await new Promise((done) => listening.close(done));
  }
}

function listen(address) {
  const clients = new Set();
  const server = createServer((client) => {
    clients.add(client);
    client.on('error', () => client.destroy());
    client.on('close', () => clients.delete(client));
  });
  return new Promise((done, fail) => {
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? done(undefined) : fail(error)));
    server.listen(address, () => done({ server, clients }));
  });
}

function holderGone(address) {
  return new Promise((done) => {
    const client = connect(address);
    client.on('error', () => {});
    client.on('close', () => done());
    client.resume();
  });
}
