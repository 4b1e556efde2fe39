import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { LoopbackPump } from '../../src/link/loopback-pumps.ts';

describe('a loopback listener', () => {
  it('that cannot start is a state with its reason, and closing it is fine', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const pump = await LoopbackPump.start(port, { t: 'tunnel' }, () => undefined);
    expect(pump.state).toEqual({ up: false, port: 0, error: `cannot listen on 127.0.0.1:${port} (EADDRINUSE)` });
    pump.close();
    taken.close();
  });

  it('closes a connection at once while there is no session', async () => {
    const pump = await LoopbackPump.start(0, { t: 'tunnel' }, () => undefined);
    expect(pump.state).toMatchObject({ up: true, error: null });
    const socket = connect(pump.state.port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'close');
    pump.close();
  });
});
